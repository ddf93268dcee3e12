//! Tests of every command against an in-memory API server: requests, output and exit code.

use clap::Parser as _;
use kube::Client;
use nova_config::annotations::DEFAULT_CONFIG;
use serde_json::Value;
use testkit::fake_api::{FakeApi, Request};

use super::*;
use crate::color::Paint;
use crate::config_files::files;
use crate::testdata;

const RUNS: &str = "apis/ansibleee.openstack.org/v1beta1";

/// The API server, in whose namespace everything is.
struct Server(FakeApi);

/// The output and exit code of a command.
struct Printed {
    out: String,
    err: String,
    code: ExitCode,
}

impl Server {
    /// The objects of the tests, with the options of the first compute rendered and deployed.
    fn new() -> Self {
        let server = Self(FakeApi::default());
        let mut snapshot = testdata::snapshot();
        testdata::deployed_with_present_inputs(&mut snapshot);
        let options = snapshot.computes[0].spec.custom_service_config.clone().unwrap_or_default();
        for object in testdata::objects() {
            server.put_typed(&object);
        }
        server.put(
            "apis/nova.openstack.org/v1beta1",
            "novaexternalcomputes",
            &snapshot.computes[0],
        );
        let rendered = testdata::rendered(&options);
        let files = files(&rendered);
        server.put("api/v1", "secrets", &rendered);
        testdata::set_report(&mut snapshot.runs[0], &files);
        server.put(RUNS, "openstackansibleees", &snapshot.runs[0]);
        let report = testdata::report(&files, "02-nova-override.conf", "Nehalem");
        let named = |name: &str| json!({ "metadata": { "name": name } });
        let defaults = json!({
            "metadata": { "name": "compute-defaults" },
            "data": { "02-nova-default.conf": testdata::DEFAULTS },
        });
        server.put("api/v1", "configmaps", &defaults);
        let run = "nova-edpm-compute-0-5555555555-abcdef0123";
        server.put("apis/batch/v1", "jobs", &testdata::job(&snapshot.runs[0]));
        server.put("api/v1", "pods", &named(&format!("{run}-xyz12")));
        server.runs_end(json!({ "JobStatus": "Succeeded", "report": report }));
        server
    }

    /// The same, with a node set whose host has the option from a ConfigMap.
    fn with_node_set() -> Self {
        let server = Self::new();
        for object in testdata::node_set_objects() {
            server.put_typed(&object);
        }
        let snapshot = testdata::node_set();
        let group = "apis/dataplane.openstack.org/v1beta1";
        server.put(group, "openstackdataplanedeployments", &snapshot.deployments[0]);
        server.put(RUNS, "openstackansibleees", &snapshot.runs[1]);
        server.put("apis/batch/v1", "jobs", &testdata::job(&snapshot.runs[1]));
        server
    }

    fn put_typed(&self, object: &Value) {
        let group = match object["apiVersion"].as_str().unwrap() {
            "v1" => "api/v1".to_owned(),
            version => format!("apis/{version}"),
        };
        self.put(&group, &(object["kind"].as_str().unwrap().to_lowercase() + "s"), object);
    }

    fn put(&self, group: &str, plural: &str, object: &impl serde::Serialize) {
        let object = json!(object);
        let name = object["metadata"]["name"].as_str().unwrap();
        self.0.put(&format!("/{group}/namespaces/openstack/{plural}/{name}"), object);
    }

    /// Ends each run that is created at once, with this status.
    fn runs_end(&self, status: Value) {
        let pods = "/api/v1/namespaces/openstack/pods";
        let objects = self.0.clone();
        self.0.intercept(move |request| {
            if request.verb == "POST" {
                request.body["status"] = status.clone();
            }
            if let Some(pod) = request.path.strip_suffix("/log") {
                let log = json!("PLAY RECAP\nedpm-compute-0 : ok=7\n");
                return objects.get(pod).map(|_| (200, log));
            }
            // Pods of a Job are listed by label; its own pod is gone.
            (request.path == pods).then(|| (200, json!({ "metadata": {}, "items": [] })))
        });
    }

    /// Returns the requests so far with this verb.
    fn requests(&self, verb: &str) -> Vec<Request> {
        self.0.requests().into_iter().filter(|it| it.verb == verb).collect()
    }

    async fn run(&self, words: &[&str]) -> std::result::Result<Printed, String> {
        let args = Args::try_parse_from([&["kubectl-edpm"], words].concat()).unwrap();
        let client = Client::new(self.0.clone(), "openstack");
        let cluster = Cluster::of_client(client, "server:6443", "openstack");
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut terminal = Terminal { out: &mut out, err: &mut err, paint: Paint::default() };
        let code = answer(&cluster, &args.command, &mut terminal).await;
        let text = |it: Vec<u8>| String::from_utf8(it).unwrap();
        let (out, err) = (text(out), text(err));
        match code {
            Ok(code) => Ok(Printed { out, err, code }),
            Err(error) => Err(format!("{out}{error}")),
        }
    }
}

#[tokio::test]
async fn a_cluster_without_the_kinds_and_one_without_nodes_are_told_apart() {
    let error = Server(FakeApi::default()).run(&["status"]).await.err().unwrap();
    let text = "error: the server doesn't have a resource type \"openstackdataplanenodes\": the \
                operators' chart is not installed in this cluster, ";
    assert!(error.starts_with(text), "{error}");
    let server = Server::new();
    server.0.forget("novaexternalcomputes");
    let printed = server.run(&["explain", "edpm-compute-0"]).await.unwrap();
    assert!(printed.out.starts_with("edpm-compute-0 is ready."), "{}", printed.out);
}

#[tokio::test]
async fn the_short_explanation_ends_with_the_cause() {
    let server = Server::new();
    let long = server.run(&["explain", "edpm-compute-2"]).await.unwrap().out;
    let short = server.run(&["explain", "--short", "edpm-compute-2"]).await.unwrap().out;
    assert!(long.starts_with(&short), "{short}");
    let last = short.lines().last().unwrap();
    assert!(last.contains("No package matching 'podmann' is available"), "{short}");
}

#[tokio::test]
async fn trace_and_diff_read_what_options_are_made_from() {
    let server = Server::new();
    let words = ["trace", "nova.conf", "[libvirt]", "cpu_models", "--node", "edpm-compute-0"];
    let pod = "nova-edpm-compute-0-5555555555-abcdef0123-xyz12";
    let expected = include_str!("../testdata/trace.txt").replace("nova-pod", pod);
    let printed = server.run(&words).await.unwrap();
    assert_eq!((printed.out, printed.code), (expected, ExitCode::SUCCESS));
    let same = server.run(&["diff", "edpm-compute-0"]).await.unwrap();
    assert_eq!((same.out.as_str(), same.code), ("", ExitCode::SUCCESS));
    let other = server.run(&["diff", "edpm-compute-2"]).await.unwrap();
    assert_eq!(other.code, ExitCode::from(1));
    assert!(other.out.contains("nothing was deployed yet"), "{}", other.out);
}

#[tokio::test]
async fn a_nodes_own_default_configuration_counts_before_its_roles() {
    let server = Server::new();
    let mut node = testdata::snapshot().nodes.remove(0);
    node.annotations_mut().insert(DEFAULT_CONFIG.to_owned(), "own-defaults".to_owned());
    server.put("apis/dataplane.openstack.org/v1beta1", "openstackdataplanenodes", &node);
    let text = server.run(&TRACE).await.unwrap().out;
    let words =
        "ConfigMap openstack/own-defaults, which the node or its role names, has no such text";
    assert!(text.contains(words), "{text}");
}

const TRACE: [&str; 6] =
    ["trace", "nova.conf", "[libvirt]", "cpu_models", "--node", "edpm-compute-0"];

#[tokio::test]
async fn trace_asks_a_host_by_a_run_that_goes_afterwards() {
    let server = Server::new();
    let printed = server.run(&[&TRACE[..], &["--ask"]].concat()).await.unwrap();
    let pod = "nova-edpm-compute-0-5555555555-abcdef0123-xyz12";
    let expected = include_str!("../testdata/trace-asked.txt").replace("nova-pod", pod);
    assert_eq!(printed.out, expected);
    assert!(printed.err.starts_with("# run edpm-question-x7 asks nova-compute on edpm-compute-0"));
    let path = format!("/{RUNS}/namespaces/openstack/openstackansibleees/edpm-question-x7");
    let made = server.requests("POST").remove(0).body;
    assert_eq!(made["spec"]["extraVars"]["edpm_ask_option"], "cpu_models");
    let deleted = server.requests("DELETE");
    let [Request { path: gone, body, .. }] = deleted.as_slice() else { panic!("{deleted:?}") };
    assert_eq!((gone, &body["preconditions"]["uid"]), (&path, &json!("edpm-question-x7")));
}

#[tokio::test]
async fn a_run_that_could_not_ask_is_told_and_goes_too() {
    let server = Server::new();
    server.runs_end(json!({ "JobStatus": "Failed", "reason": "HostUnreachable" }));
    let printed = server.run(&[&TRACE[..], &["--ask"]].concat()).await.unwrap();
    let words = "nova-compute could not be asked: HostUnreachable";
    assert!(printed.out.contains(words), "{}", printed.out);
    assert_eq!(printed.code, ExitCode::from(1));
    assert_eq!(server.requests("DELETE").len(), 1);
    server.0.forget("openstackansibleees");
    let printed = server.run(&[&TRACE[..], &["--ask"]].concat()).await.unwrap();
    assert!(printed.out.contains("no run of an operator that has reached it"), "{}", printed.out);
    assert_eq!(server.requests("DELETE").len(), 1);
}

#[tokio::test]
async fn a_node_without_a_compute_is_followed_by_its_service() {
    let server = Server::new();
    server.0.forget("novaexternalcomputes");
    let error = server.run(&TRACE).await.err().unwrap();
    assert!(error.contains("no service of type nova"), "{error}");
    let service = json!({
        "apiVersion": "dataplane.openstack.org/v1beta1",
        "kind": "OpenStackDataPlaneService",
        "metadata": { "name": "nova-custom", "namespace": "openstack" },
        "spec": {
            "playbook": "osp.edpm.nova",
            "edpmServiceType": "nova",
            "dataSources": [{ "configMapRef": { "name": "nova-extra-config" } }],
        },
    });
    let group = "apis/dataplane.openstack.org/v1beta1";
    server.put(group, "openstackdataplaneservices", &service);
    let error = server.run(&TRACE).await.err().unwrap();
    assert!(error.contains("no service of type nova"), "{error}");
    let extra = json!({
        "metadata": { "name": "nova-extra-config" },
        "data": { "25-nova-extra.conf": "[libvirt]\ncpu_models = Nehalem\n" },
    });
    server.put("api/v1", "configmaps", &extra);
    let text = server.run(&TRACE).await.unwrap().out;
    assert!(text.contains("OpenStackDataPlaneRole openstack/edpm-compute does not list"), "{text}");
    assert!(text.contains("It stops at step 3, listed"), "{text}");
}

#[tokio::test]
async fn hosts_of_node_sets_are_beside_those_of_roles() {
    let server = Server::with_node_set();
    let printed = server.run(&["status"]).await.unwrap();
    assert_eq!(printed.out.lines().count(), 7, "{}", printed.out);
    let gone = server.run(&["logs", "edpm-compute-6"]).await.err().unwrap();
    assert!(gone.contains("No package matching 'podmann'"), "{gone}");
    let printed = server.run(&["diff", "edpm-compute-5"]).await.unwrap();
    assert_eq!((printed.out.as_str(), printed.code), ("", ExitCode::SUCCESS));
}

#[tokio::test]
async fn the_option_of_a_node_sets_host_is_read_from_the_cluster_step_by_step() {
    let server = Server::with_node_set();
    let words = ["trace", "25-nova-extra.conf", "[libvirt]", "cpu_models", "--node"];
    let printed = server.run(&[&words[..], &["edpm-compute-5"]].concat()).await.unwrap().out;
    for step in ["2. generated    ok", "6. deployment   ok", "8. job          ok"] {
        assert!(printed.contains(step), "{step} is not in: {printed}");
    }
    let words = "in force: cpu_models = Nehalem, from 25-nova-extra.conf of ConfigMap \
                 openstack/nova-extra-config.\n";
    assert!(printed.ends_with(words), "{printed}");
    assert!(!printed.contains("NOT YET") && !printed.contains("STALE"), "{printed}");
}

#[tokio::test]
async fn retry_of_a_node_sets_host_creates_a_deployment_of_it_alone() {
    let server = Server::with_node_set();
    let printed = server.run(&["retry", "edpm-compute-6"]).await.unwrap();
    let created = "openstackdataplanedeployment.dataplane.openstack.org/openstack-edpm-x7abc-x7 \
                   created\n";
    assert_eq!(printed.out, created);
    let made = server.requests("POST");
    let specs: Vec<&Value> = made.iter().map(|it| &it.body["spec"]["ansibleLimit"]).collect();
    assert_eq!(specs, [&json!("edpm-compute-6")]);
}

#[tokio::test]
async fn logs_are_the_pods_or_what_the_run_recorded() {
    let server = Server::new();
    let printed = server.run(&["logs", "edpm-compute-0"]).await.unwrap();
    assert_eq!(printed.out, "PLAY RECAP\nedpm-compute-0 : ok=7\n");
    assert!(printed.err.starts_with("# run nova-edpm-compute-0-5555555555, service nova, pod "));
    let gone = server.run(&["logs", "edpm-compute-2"]).await.err().unwrap();
    for words in ["No package matching 'podmann'", "error: the pod of run install-os-", "is gone"] {
        assert!(gone.contains(words), "{gone}");
    }
}

#[tokio::test]
async fn retry_writes_the_annotation_and_nothing_else() {
    let server = Server::new();
    let printed = server.run(&["retry", "edpm-compute-2"]).await.unwrap();
    let annotated = "openstackdataplanenode.dataplane.openstack.org/edpm-compute-2 annotated\n";
    assert_eq!(printed.out, annotated);
    let patched = server.requests("PATCH");
    let [Request { path, body, .. }] = patched.as_slice() else { panic!("{patched:?}") };
    assert!(path.ends_with("/openstackdataplanenodes/edpm-compute-2"), "{path}");
    let value = &body["metadata"]["annotations"]["dataplane.openstack.org/redeploy"];
    assert!(value.as_str().is_some_and(|it| it.parse::<i64>().is_ok()), "{body}");
    let only = json!({ "dataplane.openstack.org/redeploy": value });
    assert_eq!(*body, json!({ "metadata": { "annotations": only } }));
}

#[tokio::test]
async fn a_shells_completion_is_written_without_a_cluster() {
    for (shell, word) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef kubectl-edpm"),
        ("fish", "complete -c kubectl-edpm"),
    ] {
        let args = Args::try_parse_from(["kubectl-edpm", "completion", shell]).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut terminal = Terminal { out: &mut out, err: &mut err, paint: Paint::default() };
        run(&args, &mut terminal).await.unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(word) && text.contains("explain"), "{shell}");
    }
}
