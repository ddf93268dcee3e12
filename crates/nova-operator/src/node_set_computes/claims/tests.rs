//! Whether a node set has deployed nova on a host, and who decides about a service where several
//! objects have deployed nova under one name.

use api::ansibleee::JobStatus;
use serde_json::{Value, json};

use super::*;
use crate::node_set_computes::removal::record::{HOSTS, HostRecord, text};

const CREATED: &str = "2026-01-02T00:00:00Z";

/// A node set with hosts `a` and `b`, and what its status has of them.
fn set(hosts: &Value, deployed: Option<&str>) -> NodeSet {
    let node = |name: &str| json!({"hostName": format!("{name}.example.org")});
    let conditions = ["InputReady", "SetupReady", "DeploymentReady"].map(|type_| {
        json!({
            "type": type_, "status": "True", "reason": "Ready", "message": "",
            "lastTransitionTime": CREATED,
        })
    });
    serde_json::from_value(json!({
        "metadata": {
            "name": "set", "namespace": "ns", "creationTimestamp": CREATED, "generation": 2,
        },
        "spec": {
            "nodes": {"a": node("a"), "b": node("b")},
            "nodeTemplate": {"ansibleSSHPrivateKeySecret": "ssh"},
        },
        "status": {
            "hosts": hosts, "deployedConfigHash": deployed, "observedGeneration": 2,
            "conditions": conditions,
            "inputs": {"services": "d1"}, "deployedInputs": {"services": "d1"},
        },
    }))
    .unwrap()
}

/// A run of a service of that type on host `a`, which has ended so there.
fn run(type_: &str, options: &str, created: &str, outcome: &str) -> Arc<AnsibleEe> {
    let run = json!({
        "metadata": {
            "name": "run", "namespace": "ns", "creationTimestamp": created,
            "labels": {"edpm.openstack.org/service": "my-nova"},
            "annotations": {"edpm.openstack.org/attempts": r#"{"a": {"hash": "h", "attempt": 1}}"#},
        },
        "spec": {"inputHash": "h", "cmdLine": options, "extraVars": {"edpm_service_type": type_}},
        "status": {
            "JobStatus": if outcome == "Ok" { "Succeeded" } else { "Failed" },
            "hosts": [{"name": "a", "result": outcome}],
        },
    });
    Arc::new(serde_json::from_value(run).unwrap())
}

fn undeployed() -> NodeSet {
    set(&json!([]), None)
}

#[test]
fn only_a_whole_deployment_of_nova_by_this_node_set_that_succeeded_is_a_proof() {
    let of_run = |run: Arc<AnsibleEe>| deployments(&undeployed(), None, &[run]).get("a").copied();
    let later = "2026-01-03T00:00:00Z";
    let (begun, succeeded) = (Some(NovaDeployment::Begun), Some(NovaDeployment::Succeeded));
    assert_eq!(of_run(run("nova", "", later, "Ok")), succeeded);
    assert_eq!(of_run(run("nova", "--limit 'a,&edpm_run'", later, "Ok")), succeeded);
    for options in ["--tags 'x'", "--limit 'a' --skip-tags 'x'"] {
        assert_eq!(of_run(run("nova", options, later, "Ok")), begun, "{options}");
    }
    assert_eq!(of_run(run("nova", "", later, "Failed")), begun);
    assert_eq!(of_run(run("bootstrap", "", later, "Ok")), None);
    let before = "2026-01-01T00:00:00Z";
    assert_eq!(of_run(run("nova", "", before, "Ok")), None, "of an earlier node set of the name");
    let mut waiting = AnsibleEe::clone(&run("nova", "", later, "Ok"));
    waiting.status = None;
    assert_eq!(of_run(Arc::new(waiting)), None);
}

#[test]
fn where_the_deployments_are_gone_the_digest_of_one_of_all_services_is_the_proof() {
    let of = |hosts: Value, deployed| deployments(&set(&hosts, deployed), None, &[]);
    let host =
        |state: &str, hash: Option<&str>| json!([{"name": "a", "state": state, "hash": hash}]);
    let deployed = || host("Deployed", Some("01234567"));
    let (begun, succeeded) = (NovaDeployment::Begun, NovaDeployment::Succeeded);
    assert_eq!(of(deployed(), Some("0123456789")), [("a".to_owned(), succeeded)].into());
    for other in [None, Some("9876543210")] {
        assert_eq!(of(deployed(), other), [("a".to_owned(), begun)].into());
    }
    assert_eq!(of(host("Deploying", None), None), [("a".to_owned(), begun)].into());
    assert_eq!(of(host("Undeployed", None), Some("0123456789")), [].into());
}

#[test]
fn the_last_run_of_nova_on_a_host_says_until_when_nova_compute_may_have_been_started() {
    let ended = |at: &str| {
        let mut run = AnsibleEe::clone(&run("nova", "", "2026-01-03T00:00:00Z", "Failed"));
        let status = run.status.as_mut().unwrap();
        status.completion_time = serde_json::from_value(json!(at)).unwrap();
        Arc::new(run)
    };
    let (first, last) = ("2026-01-03T00:01:00Z", "2026-01-03T00:02:00Z");
    let of = |runs: &[_]| deployed_at(&undeployed(), runs, "a");
    assert_eq!(of(&[ended(last), ended(first)]), last.parse().ok());
    let mut active = AnsibleEe::clone(&ended(first));
    active.status.as_mut().unwrap().job_status = Some(JobStatus::Running);
    assert_eq!(of(&[ended(last), Arc::new(active)]), Some(Timestamp::MAX));
    assert_eq!(of(&[run("bootstrap", "", last, "Ok")]), None);
    assert_eq!(deployed_at(&undeployed(), &[ended(last)], "b"), None);
}

#[test]
fn a_deployment_of_all_services_before_these_were_listed_is_no_proof() {
    let hosts = json!([{"name": "a", "state": "Deployed", "hash": "01234567"}]);
    let of = |deployed: Value| {
        let mut set = set(&hosts, Some("0123456789"));
        let status = set.status.as_mut().unwrap();
        status.deployed_inputs = serde_json::from_value(deployed).unwrap();
        deployments(&set, None, &[]).get("a").copied()
    };
    assert_eq!(of(json!({"services": "d1"})), Some(NovaDeployment::Succeeded));
    for other in [json!({"services": "d0"}), json!({})] {
        assert_eq!(of(other), Some(NovaDeployment::Begun));
    }
}

/// Its operator has not seen the present list yet, or keeps the one before.
#[test]
fn a_status_that_may_have_an_earlier_list_of_services_is_no_proof() {
    let hosts = json!([{"name": "a", "state": "Deployed", "hash": "01234567"}]);
    let of = |change: &dyn Fn(&mut NodeSet)| {
        let mut set = set(&hosts, Some("0123456789"));
        change(&mut set);
        deployments(&set, None, &[]).get("a").copied()
    };
    assert_eq!(of(&|_| ()), Some(NovaDeployment::Succeeded));
    assert_eq!(of(&|it| it.metadata.generation = Some(3)), Some(NovaDeployment::Begun));
    for idx in 0..3 {
        let unknown = |it: &mut NodeSet| {
            it.status.as_mut().unwrap().conditions[idx].status = ConditionStatus::Unknown;
        };
        assert_eq!(of(&unknown), Some(NovaDeployment::Begun), "{idx}");
    }
}

fn report(records: &[(&str, HostRecord)]) -> HostReadiness {
    let all = records.iter().map(|(name, it)| ((*name).to_owned(), it.clone())).collect();
    let mut report = HostReadiness::default();
    report.annotations_mut().insert(HOSTS.to_owned(), text(&all));
    let finalizer = |name: &str| (name.to_owned(), format!("{name}.example.org"));
    report.spec.host_finalizers = records.iter().map(|it| finalizer(it.0)).collect();
    report
}

fn record(cell: &str, is_unproven: bool) -> HostRecord {
    HostRecord { cell: cell.to_owned(), is_unproven, ..HostRecord::default() }
}

#[test]
fn a_host_finalizer_keeps_the_proof_under_its_name() {
    let report = report(&[("a", record("c1", false)), ("b", record("c1", true))]);
    let found = deployments(&undeployed(), Some(&report), &[]);
    let expected = [("a", NovaDeployment::Succeeded), ("b", NovaDeployment::Begun)];
    assert_eq!(found, expected.map(|(name, it)| (name.to_owned(), it)).into());
    let mut renamed = undeployed();
    renamed.spec.nodes.get_mut("a").unwrap().host_name = Some("a.example.com".to_owned());
    let found = deployments(&renamed, Some(&report), &[]);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn another_node_set_has_the_names_that_it_has_proven_in_cells_of_the_same_nova() {
    let report = report(&[
        ("a", record("c1", false)),
        ("b", record("c1", true)),
        ("c", record("other-nova", false)),
        ("d", record("", false)),
    ]);
    assert_eq!(proven(&report, |cell| cell == "c1"), ["a.example.org", "d.example.org"]);
}

#[test]
fn of_several_only_the_one_with_the_proof_decides_and_where_several_have_it_none_does() {
    let other = || Claim::Other("x".to_owned());
    for (claim, to_enable) in
        [(Claim::Own, Claim::Own), (Claim::Unproven, Claim::Own), (other(), other())]
    {
        assert_eq!(claim.to_enable(), to_enable, "what a release before drained by name alone");
    }
    let compute = |namespace: &str| Some(Key::new(namespace, "n0"));
    let other = Key::new("other", "edpm");
    let of_set = || "OpenStackDataPlaneNodeSet other/edpm".to_owned();
    let of_compute = |namespace: &str| format!("NovaExternalCompute {namespace}/n0");
    for (is_proven, compute, other, expected) in [
        (true, None, None, Claim::Own),
        (false, None, None, Claim::Unproven),
        (true, None, Some(&other), Claim::Contested(of_set())),
        (false, None, Some(&other), Claim::Other(of_set())),
        (true, compute("other"), None, Claim::Contested(of_compute("other"))),
        (false, compute("other"), None, Claim::Other(of_compute("other"))),
        (true, compute("ns"), None, Claim::Other(of_compute("ns"))),
    ] {
        let text = format!("{is_proven} {compute:?} {other:?}");
        assert_eq!(claim("ns", is_proven, compute, other), expected, "{text}");
    }
}
