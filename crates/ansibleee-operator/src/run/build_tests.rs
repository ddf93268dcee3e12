//! Tests of a run's Job: snapshots of what matters, and invariants.

use api::yaml;
use operator_core::plan::Write;

use super::*;

fn run(spec: &str) -> AnsibleEe {
    yaml::from_str(&format!(
        "
metadata:
  name: nova-1
  namespace: openstack
  uid: u1
  labels: {{edpm.openstack.org/service: nova, app: other, job-name: x}}
spec: {spec}
"
    ))
    .unwrap()
}

fn settings() -> Settings {
    Settings::sample()
}

fn job(spec: &str) -> Value {
    let step = creation(&run(spec), "0123456789abcdef", &settings());
    let Write::Create { object, identity } = step.write else { panic!("no creation") };
    assert_eq!(object.pointer(&identity), Some(&json!("0123456789abcdef")));
    object
}

fn pod(spec: &str) -> Value {
    job(spec)["spec"]["template"]["spec"].clone()
}

fn container(spec: &str) -> Value {
    pod(spec)["containers"][0].clone()
}

fn env(spec: &str) -> Vec<(String, String)> {
    let list = container(spec)["env"].as_array().unwrap().clone();
    let text = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
    list.iter().map(|it| (text(it, "name"), text(it, "value"))).collect()
}

const ENGINES: &str = "{playbook: osp.edpm.nova, inputHash: x, activeDeadlineSeconds: 600, \
                       hosts: [{name: a, address: '10.0.0.1:22'}]}";

#[test]
fn a_run_of_the_engine_is_tried_once_and_ends_in_time() {
    let mut spec = job(ENGINES)["spec"].take();
    spec["template"].take();
    let expected = json!({
        "activeDeadlineSeconds": 600,
        "backoffLimit": 0,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": { "rules": [
            {
                "action": "FailJob",
                "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }],
            },
            {
                "action": "FailJob",
                "onExitCodes": {
                    "containerName": "openstackansibleee",
                    "operator": "NotIn",
                    "values": [0],
                },
            },
        ] },
        "template": null,
    });
    assert_eq!(spec, expected);
    assert_eq!(job("{inputHash: x}")["spec"]["activeDeadlineSeconds"], 7200);
    assert_eq!(pod("{inputHash: x, restartPolicy: OnFailure}")["restartPolicy"], "Never");
}

#[test]
fn a_hand_made_run_keeps_upstreams_ways() {
    let job = job("{playbook: a.yml, restartPolicy: OnFailure, backoffLimit: 3}");
    assert_eq!(job["spec"]["backoffLimit"], 3);
    assert_eq!(job["spec"]["template"]["spec"]["restartPolicy"], "OnFailure");
    assert_eq!(job["spec"].get("podFailurePolicy"), None);
}

#[test]
fn every_run_has_a_deadline_and_the_default_makes_no_other_run() {
    let deadline = |spec: &str| job(spec)["spec"]["activeDeadlineSeconds"].clone();
    assert_eq!(deadline("{playbook: a.yml}"), 14_400);
    assert_eq!(deadline("{playbook: a.yml, activeDeadlineSeconds: 60}"), 60);
    // It sleeps for a day by itself.
    assert_eq!(deadline("{debug: true}"), 100_800);
    assert_eq!(deadline("{inputHash: x}"), 7200);
    // An object that an earlier version stored may say more than the schema allows now.
    assert_eq!(deadline("{playbook: a.yml, activeDeadlineSeconds: 2000000000}"), 604_800);
    assert_eq!(deadline("{inputHash: x, activeDeadlineSeconds: 604801}"), 604_800);
    let name = |deadline: i64| {
        let settings = Settings { deadline, ..settings() };
        let run = run("{playbook: a.yml}");
        creation(&run, &content_digest::run_digest(&run), &settings).target.name
    };
    assert_eq!(name(60), name(14_400));
}

#[test]
fn job_and_pod_are_owned_and_labelled_so_that_everybody_finds_them() {
    let job = job(ENGINES);
    let labels = json!({
        "app": "openstackansibleee",
        "edpm.openstack.org/service": "nova",
        "openstackansibleee_cr": "nova-1",
        "osaee": "true",
    });
    assert_eq!(job["metadata"]["labels"], labels);
    let mut on_pod = job["spec"]["template"]["metadata"]["labels"].clone();
    // What meshes are asked is in a test of its own.
    on_pod.as_object_mut().unwrap().retain(|name, _| labels.get(name).is_some());
    assert_eq!(on_pod, labels);
    assert_eq!(job["metadata"]["name"], "nova-1-0123456789");
    let owner = &job["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["uid"], &owner["controller"]), (&json!("u1"), &json!(true)));
    for metadata in [&job["metadata"], &job["spec"]["template"]["metadata"]] {
        let metadata = serde_json::from_value(metadata.clone()).unwrap();
        assert_eq!(crate::objects::addresses(&metadata), ["10.0.0.1:22"]);
        assert_eq!(crate::objects::annotation(&metadata, RUN), "nova-1");
    }
}

#[test]
fn a_run_of_the_engine_checks_the_owner_first_and_a_hand_made_one_does_not() {
    let files = |spec: &str| {
        let mounts = container(spec)["volumeMounts"].clone();
        let paths: Vec<String> = mounts
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["mountPath"].as_str().unwrap().into())
            .collect();
        paths.into_iter().filter(|it| it.starts_with("/opt/edpm/plays/")).collect::<Vec<_>>()
    };
    let both = ["/opt/edpm/plays/owner-check.yaml", "/opt/edpm/plays/main.yaml"];
    assert_eq!(files("{playbook: a.b.c, inputHash: x}"), both);
    assert_eq!(files("{playbook: a.b.c}"), [""; 0]);
}

#[test]
fn arguments_follow_upstreams_contract() {
    let args = |spec: &str| serde_json::from_value::<Vec<String>>(container(spec)["args"].clone());
    let check = |spec: &str, expected: &str| {
        assert_eq!(args(spec).unwrap().join(" "), expected, "{spec}");
    };
    check("{playbook: osp.edpm.nova}", "ansible-runner run /runner -p osp.edpm.nova -i nova-1");
    check("{}", "ansible-runner run /runner -p playbook.yaml -i nova-1");
    let of_engine = "ansible-runner run /runner -p /opt/edpm/plays/main.yaml -i nova-1";
    for spec in ["{playbook: a.b.c, inputHash: x}", "{role: x, inputHash: x}"] {
        check(spec, of_engine);
    }
    check(
        "{playbook: a.yml, playbookContents: '[]'}",
        "ansible-runner run /runner -p playbook.yaml -i nova-1",
    );
    check("{args: [ansible-runner, run, /runner]}", "ansible-runner run /runner -i nova-1");
    check("{args: [ansible-runner, run, /runner, -i, me]}", "ansible-runner run /runner -i me");
    check("{args: [sleep, 1d]}", "sleep 1d");
    check("{play: '[]'}", "ansible-runner run /runner -p playbook.yaml -i nova-1");
    check("{role: osp.edpm.x}", "ansible-runner run /runner -r osp.edpm.x -i nova-1");
    check("{role: x, args: [ansible-runner, run]}", "ansible-runner run -i nova-1");
    check("{playbook: a.yml, debug: true, args: [x]}", "sleep 1d");
}

#[test]
fn the_images_own_entry_point_and_last_words_are_left_to_it() {
    // Upstream's image writes RUNNER_* into files, then executes the arguments. Its summary goes
    // where EDPM_AEE_TERMINATION_LOG says, because the termination message is the callback's.
    let container = container(ENGINES);
    for field in ["command", "terminationMessagePath", "workingDir", "stdin", "lifecycle"] {
        assert_eq!(container.get(field), None, "{field}");
    }
    assert_eq!(container["terminationMessagePolicy"], "File");
    assert_eq!(container["name"], "openstackansibleee");
    let names: Vec<String> = env(ENGINES).into_iter().map(|it| it.0).collect();
    for name in ["RUNNER_INVENTORY", "RUNNER_PLAYBOOK", "RUNNER_CMDLINE", "RUNNER_EXTRA_VARS"] {
        assert!(names.iter().all(|it| it != name), "{name} would be visible in the Job");
    }
}

#[test]
fn every_field_of_the_spec_reaches_its_place() {
    let spec = "
playbook: a.yml
name: runner
image: r/runner:2
envConfigMapName: own-env
restartPolicy: OnFailure
backoffLimit: 2
activeDeadlineSeconds: 90
nodeSelector: {disk: ssd}
tolerations: [{key: a, operator: Exists}]
resources: {requests: {cpu: 100m}, limits: {memory: 1Gi}}
serviceAccountName: runner
dnsConfig: {nameservers: [192.168.122.80], searches: [example.com]}
initContainers: [{name: first, image: x, command: ['true']}]
imagePullSecrets: [{name: registry}]
networkAttachments: [ctlplane]
extraMounts: [{volumes: [{name: v, emptyDir: {}}], mounts: [{name: v, mountPath: /v}]}]
";
    let spec = format!("{{{}}}", spec.trim().replace('\n', ", "));
    let job = job(&spec);
    let made = &job["spec"]["template"]["spec"];
    let container = &made["containers"][0];
    for (found, expected) in [
        (&job["spec"]["backoffLimit"], json!(2)),
        (&job["spec"]["activeDeadlineSeconds"], json!(90)),
        (&made["restartPolicy"], json!("OnFailure")),
        (&made["nodeSelector"], json!({ "disk": "ssd" })),
        (&made["tolerations"], json!([{ "key": "a", "operator": "Exists" }])),
        (&made["serviceAccountName"], json!("runner")),
        (&made["dnsPolicy"], json!("None")),
        (&made["dnsConfig"]["searches"], json!(["example.com"])),
        (&made["initContainers"][0]["command"], json!(["true"])),
        (&made["imagePullSecrets"], json!([{ "name": "registry" }])),
        (&made["volumes"][0], json!({ "name": "v", "emptyDir": {} })),
        (&container["name"], json!("runner")),
        (&container["image"], json!("r/runner:2")),
        (&container["resources"]["limits"]["memory"], json!("1Gi")),
        (&container["resources"]["requests"]["cpu"], json!("100m")),
        (&container["envFrom"][0]["configMapRef"]["name"], json!("own-env")),
        (&container["volumeMounts"][0], json!({ "name": "v", "mountPath": "/v" })),
    ] {
        assert_eq!(found, &expected);
    }
    // Only a run that may name an account gets its token.
    assert_eq!(made.get("automountServiceAccountToken"), None);
    let engines = pod("{inputHash: x, serviceAccountName: runner}");
    assert_eq!(engines["automountServiceAccountToken"], false);
    assert_eq!(pod("{}")["automountServiceAccountToken"], false);
}

#[test]
fn integers_stay_integers_and_texts_texts() {
    let job =
        job("{extraVars: {n: 1, big: 9007199254740993, t: '1', b: true, s: 'true', f: -1.5, \
                   none: null, d: {x: [1, '1', null, {y: true}]}, u: 'é\"'}}");
    let annotations = &job["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(
        annotations[annotation("extravars")],
        r#"{"b":true,"big":9007199254740993,"d":{"x":[1,"1",null,{"y":true}]},"f":-1.5,"n":1,"none":null,"s":"true","t":"1","u":"é\""}"#
    );
}

#[test]
fn the_order_in_which_a_spec_is_written_changes_nothing_in_its_job() {
    let one = "{extraVars: {b: {x: 1, y: 2}, a: [1]}, nodeSelector: {p: q, r: s}, playbook: a.yml, \
               resources: {limits: {cpu: 1, memory: 1Gi}}, env: [{name: A, value: b}]}";
    let other = "{env: [{value: b, name: A}], resources: {limits: {memory: 1Gi, cpu: 1}}, \
                 playbook: a.yml, nodeSelector: {r: s, p: q}, extraVars: {a: [1], b: {y: 2, x: 1}}}";
    assert_eq!(job(one).to_string(), job(other).to_string());
}

/// Returns whether a variable is reserved for the operator or the default ConfigMap.
fn is_decided(name: &str) -> bool {
    let forced = environment::forced(&AnsibleEeSpec::default(), &settings());
    forced.iter().any(|it| it.name == name)
        || environment::FROM_DEFAULT_CONFIG_MAP.contains(&environment::requested(name))
}

/// The value of each variable; empty where it comes from elsewhere.
fn values(spec: &str) -> std::collections::BTreeMap<String, String> {
    let all = env(spec);
    let values: std::collections::BTreeMap<_, _> = all.iter().cloned().collect();
    assert_eq!(values.len(), all.len(), "named twice: {all:?}");
    values
}

#[test]
fn no_run_decides_about_ssh_host_keys_or_facts_whatever_its_environment_says() {
    let hostile = [
        ("ANSIBLE_INJECT_FACT_VARS", "True", "False"),
        ("ANSIBLE_HOST_KEY_CHECKING", "False", "True"),
        ("ANSIBLE_SSH_HOST_KEY_CHECKING", "False", "True"),
        ("ANSIBLE_PARAMIKO_HOST_KEY_CHECKING", "False", "True"),
        ("ANSIBLE_PARAMIKO_HOST_KEY_AUTO_ADD", "True", "False"),
        ("ANSIBLE_SSH_COMMON_ARGS", "-o ProxyCommand=x", "-o StrictHostKeyChecking=yes"),
        ("ANSIBLE_SSH_EXTRA_ARGS", "-o StrictHostKeyChecking=no", ""),
        ("ANSIBLE_SCP_EXTRA_ARGS", "-o ProxyCommand=x", ""),
        ("ANSIBLE_SFTP_EXTRA_ARGS", "-o ProxyCommand=x", ""),
        ("ANSIBLE_SSH_EXECUTABLE", "/tmp/x", "ssh"),
        ("ANSIBLE_SCP_EXECUTABLE", "/tmp/x", "scp"),
        ("ANSIBLE_SFTP_EXECUTABLE", "/tmp/x", "sftp"),
        ("ANSIBLE_PKCS11_PROVIDER", "/tmp/x.so", ""),
        ("ANSIBLE_PARAMIKO_PROXY_COMMAND", "x", ""),
        ("EDPM_OUTPUT_LIMIT", "99999999999", "8388608"),
        ("EDPM_CLEANUP_LIMIT", "99999", "30"),
        ("EDPM_SLOW_LIMIT", "99999", ""),
        ("EDPM_COMPUTE_LIMIT", "99999", ""),
    ];
    for (name, asked, expected) in hostile {
        for spec in [
            "{}".to_owned(),
            format!("{{env: [{{name: {name}, value: '{asked}'}}]}}"),
            format!(
                "{{inputHash: x, envConfigMapName: own, env: [{{name: {name}, valueFrom: \
                 {{configMapKeyRef: {{name: a, key: b}}}}}}]}}"
            ),
        ] {
            assert_eq!(values(&spec).get(name).map(String::as_str), Some(expected), "{spec}");
        }
    }
    let args = values("{env: [{name: ANSIBLE_SSH_ARGS, value: '-o StrictHostKeyChecking=no'}]}");
    let args = &args["ANSIBLE_SSH_ARGS"];
    assert!(args.contains("ServerAliveInterval=15") && !args.contains("StrictHostKey"), "{args}");
}

#[test]
fn a_task_has_a_limit_that_a_run_may_raise_up_to_its_deadline() {
    let limit = |spec: &str| values(spec)["ANSIBLE_TASK_TIMEOUT"].clone();
    let with = |seconds: &str, rest: &str| {
        limit(&format!("{{env: [{{name: ANSIBLE_TASK_TIMEOUT, value: '{seconds}'}}]{rest}}}"))
    };
    assert_eq!(limit("{}"), "900");
    assert_eq!(with("1800", ", inputHash: x"), "1800");
    assert_eq!(with("9000", ", inputHash: x"), "7200");
    assert_eq!(with("9000", ", activeDeadlineSeconds: 10000"), "9000");
    assert_eq!(with("60", ""), "60");
    // None of these is a limit.
    for odd in ["0", "-1", "none", ""] {
        assert_eq!(with(odd, ""), "900", "{odd}");
    }
    assert_eq!(limit("{activeDeadlineSeconds: 60}"), "60");
    assert_eq!(with("9000000000", ""), "2147483647", "more than an alarm takes");
}

#[test]
fn the_default_config_map_decides_nothing_that_names_a_program_or_a_file() {
    let made = container("{env: [{name: ANSIBLE_FORKS, value: '3'}]}");
    assert_eq!(made.get("envFrom"), None);
    let list = made["env"].as_array().unwrap();
    let taken: Vec<&str> = list
        .iter()
        .filter(|it| it["valueFrom"]["configMapKeyRef"]["name"] == "openstack-aee-default-env")
        .map(|it| {
            let from = &it["valueFrom"]["configMapKeyRef"];
            let (key, name) = (from["key"].as_str().unwrap(), it["name"].as_str().unwrap());
            // Upstream's images insert these into YAML unchanged.
            let prefix = if key.starts_with("RUNNER_") { "EDPM_DEFAULT_" } else { "" };
            assert_eq!(
                (&from["optional"], name),
                (&json!(true), format!("{prefix}{key}").as_str())
            );
            name
        })
        .collect();
    assert!(taken.contains(&"ANSIBLE_TIMEOUT") && !taken.contains(&"ANSIBLE_FORKS"), "{taken:?}");
    assert!(taken.contains(&"EDPM_DEFAULT_RUNNER_JOB_TIMEOUT"), "{taken:?}");
    assert!(!taken.iter().any(|it| it.starts_with("RUNNER_")), "{taken:?}");
    for name in [
        "BASH_ENV",
        "LD_PRELOAD",
        "PYTHONPATH",
        "PYTHONWARNINGS",
        "PATH",
        "ANSIBLE_CONFIG",
        "ANSIBLE_LIBRARY",
        "ANSIBLE_PYTHON_INTERPRETER",
        "ANSIBLE_BECOME_EXE",
        "ANSIBLE_REMOTE_USER",
        "ANSIBLE_SSH_ARGS",
    ] {
        assert!(!taken.contains(&name), "{name}");
    }
    let own = values("{env: [{name: RUNNER_JOB_TIMEOUT, value: '5'}]}");
    assert_eq!(own["RUNNER_JOB_TIMEOUT"], "5");
    assert!(!own.contains_key("EDPM_DEFAULT_RUNNER_JOB_TIMEOUT"), "{own:?}");
    let own = json!([{ "configMapRef": { "name": "own", "optional": true } }]);
    let named = container("{envConfigMapName: own}");
    assert_eq!(named["envFrom"], own);
    assert!(!named.to_string().contains("openstack-aee-default-env"));
}

#[test]
fn a_run_that_names_no_resources_has_the_installations() {
    let bounded = Settings {
        resources: Some(serde_json::from_value(json!({ "limits": { "memory": "4Gi" } })).unwrap()),
        ..settings()
    };
    let asks = "{hosts: [{name: a, address: 'x:22', scanHostKey: {}}]}";
    let own = "{resources: {limits: {memory: 1Gi}}}";
    for (spec, settings, expected) in [
        (asks, &bounded, json!({ "limits": { "memory": "4Gi" } })),
        (own, &bounded, json!({ "limits": { "memory": "1Gi" } })),
        (asks, &settings(), Value::Null),
    ] {
        let pod = object(&run(spec), "0123456789", settings)["spec"]["template"]["spec"].take();
        let first = pod["initContainers"].as_array().into_iter().flatten();
        for container in first.chain(pod["containers"].as_array().unwrap()) {
            assert_eq!(container["resources"], expected, "{spec}");
        }
    }
}

#[test]
fn an_images_file_of_variables_decides_nothing_either() {
    let made = job("{playbook: a.yml, env: [{name: ANSIBLE_TASK_TIMEOUT, value: '60'}]}");
    let template = &made["spec"]["template"];
    let text = template["metadata"]["annotations"]["edpm.openstack.org/file-envvars"].clone();
    let found: std::collections::BTreeMap<String, String> =
        serde_json::from_str(text.as_str().unwrap()).unwrap();
    let all = values("{playbook: a.yml, env: [{name: ANSIBLE_TASK_TIMEOUT, value: '60'}]}");
    assert!(found.len() > 15, "{found:?}");
    assert!(found.iter().all(|(name, value)| all[name] == *value), "{found:?}");
    assert_eq!(
        (found["ANSIBLE_TASK_TIMEOUT"].as_str(), found["ANSIBLE_INJECT_FACT_VARS"].as_str()),
        ("60", "False")
    );
    let mounts = template["spec"]["containers"][0]["volumeMounts"].as_array().unwrap().clone();
    let own = mounts.iter().find(|it| it["mountPath"] == "/runner/env/envvars").unwrap();
    assert_eq!((&own["subPath"], &own["readOnly"]), (&json!("envvars"), &json!(true)));
}

#[test]
fn our_variables_come_last_and_the_humans_callbacks_are_kept() {
    let variables =
        env("{env: [{name: A, value: b}, {name: ANSIBLE_HOST_KEY_CHECKING, value: 'False'}, \
         {name: ANSIBLE_CALLBACK_PLUGINS, value: /mine}], \
         hosts: [{name: a, address: 'x:1'}, {name: b, address: 'x:2'}]}");
    let variables: Vec<_> = variables.into_iter().filter(|it| !is_decided(&it.0)).collect();
    let expected = [
        ("A", "b"),
        ("EDPM_RUN_HOSTS", "a,b"),
        ("EDPM_RESULT_FILE", "/dev/termination-log"),
        ("EDPM_RESULT_LIMIT", "4096"),
        ("EDPM_AEE_TERMINATION_LOG", "/tmp/edpm-summary"),
        (
            "ANSIBLE_CALLBACK_PLUGINS",
            "/mine:/opt/edpm/callback:/opt/edpm/bounds:/opt/edpm/key_checks",
        ),
        (
            "ANSIBLE_VARS_PLUGINS",
            "~/.ansible/plugins/vars:/usr/share/ansible/plugins/vars:/opt/edpm/callback",
        ),
    ];
    let expected: Vec<_> = expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    assert_eq!(variables, expected);
    // The kubelet shares 12 KiB among all containers of a pod.
    let many = env("{initContainers: [{name: a}, {name: b}, {name: c}]}");
    assert!(many.contains(&("EDPM_RESULT_LIMIT".into(), "3072".into())), "{many:?}");
    let from_elsewhere = env(
        "{env: [{name: ANSIBLE_CALLBACK_PLUGINS, valueFrom: {configMapKeyRef: {name: a, key: b}}}]}",
    );
    let names: Vec<&str> = from_elsewhere.iter().map(|it| it.0.as_str()).collect();
    assert!(names.contains(&"EDPM_OTHER_CALLBACK_PLUGINS"), "{names:?}");
    let value = |name: &str| from_elsewhere.iter().find(|it| it.0 == name).unwrap().1.clone();
    let expected =
        "$(EDPM_OTHER_CALLBACK_PLUGINS):/opt/edpm/callback:/opt/edpm/bounds:/opt/edpm/key_checks";
    assert_eq!(value("ANSIBLE_CALLBACK_PLUGINS"), expected);
    let own = env("{env: [{name: ANSIBLE_VARS_PLUGINS, value: /mine}]}");
    assert_eq!(own.last().unwrap().1, "/mine:/opt/edpm/callback");
    let twice = env(
        "{env: [{name: ANSIBLE_CALLBACK_PLUGINS, valueFrom: {configMapKeyRef: {name: a, key: b}}}, \
         {name: EDPM_OTHER_CALLBACK_PLUGINS, value: /x}]}",
    );
    let n_set = twice.iter().filter(|it| it.0 == "EDPM_OTHER_CALLBACK_PLUGINS").count();
    assert_eq!(n_set, 1, "{twice:?}");
}

#[test]
fn ansible_runner_gives_up_before_kubernetes_does() {
    let limit = |spec: &str| {
        // Empty where it is the ConfigMap's.
        values(spec).remove("RUNNER_JOB_TIMEOUT").filter(|it| !it.is_empty())
    };
    assert_eq!(limit("{inputHash: x}").as_deref(), Some("7080"));
    assert_eq!(limit("{inputHash: x, activeDeadlineSeconds: 60}").as_deref(), Some("30"));
    assert_eq!(limit("{inputHash: x, activeDeadlineSeconds: 1}").as_deref(), Some("1"));
    assert_eq!(limit("{playbook: a.yml, activeDeadlineSeconds: 60}"), None);
    let own = limit("{inputHash: x, env: [{name: RUNNER_JOB_TIMEOUT, value: '5'}]}");
    assert_eq!(own.as_deref(), Some("5"));
}

#[test]
fn texts_travel_in_annotations_and_arrive_as_files() {
    let job = job(
        "{playbookContents: P, inventory: I, cmdLine: --tags a, extraVars: {n: 1, l: [true, x]}}",
    );
    let template = &job["spec"]["template"];
    let annotation = |name: &str| &template["metadata"]["annotations"][annotation(name)];
    assert_eq!(annotation("playbook"), "P");
    assert_eq!(annotation("inventory"), "I");
    assert_eq!(annotation("cmdline"), "--tags a");
    assert_eq!(annotation("extravars"), r#"{"l":[true,"x"],"n":1}"#);
    let mounts = template["spec"]["containers"][0]["volumeMounts"].as_array().unwrap();
    let paths: Vec<_> = mounts.iter().map(|it| it["mountPath"].as_str().unwrap()).collect();
    assert_eq!(
        paths,
        [
            "/opt/edpm/callback/edpm_result.py",
            "/opt/edpm/bounds/edpm_bounds.py",
            "/opt/edpm/key_checks/edpm_key_checks.py",
            "/runner/env/envvars",
            "/runner/env/cmdline",
            "/runner/env/extravars",
            "/runner/project/playbook.yaml",
            "/runner/inventory/inventory.yaml",
        ]
    );
    let items = &template["spec"]["volumes"][0]["downwardAPI"]["items"];
    let names = ["callback", "bounds", "key-checks", "envvars", "cmdline"];
    for (idx, name) in names.into_iter().enumerate() {
        let field = format!("metadata.annotations['edpm.openstack.org/file-{name}']");
        assert_eq!(items[idx]["fieldRef"]["fieldPath"], json!(field));
    }
    assert_eq!(job["metadata"]["annotations"].get("edpm.openstack.org/file-playbook"), None);
}

#[test]
fn the_plugins_travel_with_the_job_and_are_no_objects_that_somebody_else_may_write() {
    let job = job("{}");
    let template = &job["spec"]["template"];
    let pod = &template["spec"];
    assert!(pod["volumes"].as_array().unwrap().iter().all(|it| it.get("configMap").is_none()));
    for (idx, plugin) in callback::PLUGINS.into_iter().enumerate() {
        let key = annotation(plugin.name);
        assert_eq!(template["metadata"]["annotations"][&key], plugin.text);
        assert!(plugin.text.contains("class CallbackModule"));
        assert_eq!(job["metadata"]["annotations"].get(&key), None);
        let expected = json!({
            "name": "edpm-run-files",
            "mountPath": format!("{}/{}", plugin.folder, plugin.file),
            "subPath": plugin.name,
            "readOnly": true,
        });
        assert_eq!(pod["containers"][0]["volumeMounts"][idx], expected);
        // No mount of a run may hide it.
        assert!(plugin.folder.starts_with(callback::DIR));
    }
    assert_eq!(
        values("{}")["ANSIBLE_CALLBACK_PLUGINS"],
        "/opt/edpm/callback:/opt/edpm/bounds:/opt/edpm/key_checks"
    );
}

#[test]
fn only_mounts_that_are_meant_for_runs_reach_them() {
    let extra = |propagation: &str| {
        let spec = format!(
            "{{extraMounts: [{{propagation: {propagation}, volumes: [{{name: a, emptyDir: {{}}}}], \
             mounts: [{{name: a, mountPath: /a}}]}}]}}"
        );
        container(&spec)["volumeMounts"].as_array().unwrap().len()
    };
    assert_eq!((extra("[]"), extra("[Compute]"), extra("[Glance]")), (5, 5, 4));
}

#[test]
fn pods_have_no_rights_and_no_root() {
    let pod = pod(ENGINES);
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(
        pod["securityContext"],
        json!({
            "runAsNonRoot": true,
            "runAsUser": 1001,
            "runAsGroup": 0,
            "fsGroup": 0,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": { "type": "RuntimeDefault" },
        })
    );
    assert_eq!(
        pod["containers"][0]["securityContext"],
        json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } })
    );
    let platform = Settings { uid: None, ..settings() };
    let step = creation(&run(ENGINES), "0123456789", &platform);
    let Write::Create { object, .. } = step.write else { panic!("no creation") };
    let security = &object["spec"]["template"]["spec"]["securityContext"];
    assert_eq!((security.get("runAsUser"), security.get("fsGroup")), (None, None));
}

#[test]
fn a_run_that_asks_for_host_keys_has_one_more_container_in_front() {
    let spec = "{initContainers: [{name: mine, image: i}], resources: {limits: {cpu: 1}}, \
                hosts: [{name: a, address: 'x:22', scanHostKey: {}}]}";
    let pod = pod(spec);
    let first = pod["initContainers"].as_array().unwrap();
    assert_eq!((&first[0]["name"], &first[1]["name"]), (&json!("mine"), &json!("edpm-host-keys")));
    assert_eq!(first[1]["image"], pod["containers"][0]["image"]);
    assert_eq!(first[1]["securityContext"], pod["containers"][0]["securityContext"]);
    assert_eq!(first[1]["resources"], pod["containers"][0]["resources"]);
    let place = |it: &Value| {
        let mounts = it["volumeMounts"].as_array().unwrap();
        let mount = mounts.iter().find(|it| it["name"] == "edpm-host-keys").unwrap();
        (mount["mountPath"].clone(), mount["readOnly"] == true)
    };
    assert_eq!(place(&first[1]), (json!("/runner/host_keys"), false));
    assert_eq!(place(&pod["containers"][0]), (json!("/runner/host_keys"), true));
    let volumes = pod["volumes"].as_array().unwrap();
    assert!(volumes.iter().any(|it| it["name"] == "edpm-host-keys" && it["emptyDir"].is_object()));
}

#[test]
fn a_run_that_asks_for_none_has_no_trace_of_it() {
    let text = pod(ENGINES).to_string();
    assert!(!text.contains("host-keys") && !text.contains("initContainers"), "{text}");
}

#[test]
fn networks_are_asked_of_multus_only_where_there_are_some() {
    let annotations = |spec: &str| job(spec)["spec"]["template"]["metadata"]["annotations"].clone();
    let key = "k8s.v1.cni.cncf.io/networks";
    assert_eq!(annotations("{}").get(key), None);
    assert_eq!(
        annotations("{networkAttachments: [a-very-long-network]}")[key],
        r#"[{"interface":"a-very-long-net","name":"a-very-long-network","namespace":"openstack"}]"#
    );
}

#[test]
fn no_two_networks_have_one_interface() {
    let names = |of: &[&str]| interfaces(&of.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
    assert_eq!(
        names(&["internalapi-rack-one", "internalapi-rack-two", "internalapi-rac", "tenant"]),
        ["internalapi-rac", "internalapi-r-1", "internalapi-r-2", "tenant"]
    );
    assert_eq!(
        names(&["internalapi-r-1", "internalapi-rack", "internalapi-rack-2"])[2],
        "internalapi-r-2"
    );
    let many: Vec<String> = (0..30).map(|it| format!("internalapi-rack-{it}")).collect();
    let found = interfaces(&many);
    let distinct: std::collections::BTreeSet<&String> = found.iter().collect();
    assert_eq!(distinct.len(), 30);
    assert!(found.iter().all(|it| it.len() <= 15), "{found:?}");
}

#[test]
fn pods_ask_meshes_for_no_container() {
    let metadata = job(ENGINES)["spec"]["template"]["metadata"].clone();
    for (name, value) in NO_MESH_LABELS {
        assert_eq!(metadata["labels"][name], value);
    }
    for (name, value) in NO_MESH_ANNOTATIONS {
        assert_eq!(metadata["annotations"][name], value);
    }
}
