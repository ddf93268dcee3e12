//! Hosts in service that a deployment begins with only once other operators allow to disturb them.

use api::dataplane::{HostReadiness, HostReadinessSpec, HostState, RunState};
use operator_core::run_engine::host_progress::awaits_disruption;

use super::turns::{deployed, failed_on, look_at_each_other, runs, two_of_one};
use super::*;

/// A report about a node set that lists these hosts, each for the deployment of that UID.
fn report(name: &str, node_set: &str, allowed: &[(&str, &str)]) -> Arc<HostReadiness> {
    let entry = |(host, uid): &(&str, &str)| ((*host).to_owned(), (*uid).to_owned());
    let spec = HostReadinessSpec {
        node_set: node_set.into(),
        condition_type: format!("example.org/{name}"),
        disruption_allowed: Some(allowed.iter().map(entry).collect()),
        ..HostReadinessSpec::default()
    };
    Arc::new(HostReadiness::new(&format!("{node_set}-{name}"), spec))
}

impl World {
    /// Lists hosts of the node set `compute` for this deployment.
    fn allow(&mut self, hosts: &[&str]) {
        let allowed: Vec<(&str, &str)> = hosts.iter().map(|it| (*it, "edpm")).collect();
        self.report_on("compute", vec![report("drain", "compute", &allowed)]);
    }

    fn report_on(&mut self, node_set: &str, reports: Vec<Arc<HostReadiness>>) {
        self.seen.readiness.insert(node_set.into(), reports);
    }

    /// The hosts of the node set `compute` that hold a place and wait.
    fn awaiting(&self) -> Vec<&str> {
        let hosts = &self.status().progress["compute"].hosts;
        hosts.iter().filter(|it| awaits_disruption(it.1)).map(|it| it.0.as_str()).collect()
    }

    fn is_drained(&self, service: &str) -> bool {
        self.run(service).spec.extra_vars.contains_key("edpm_reboot_drained")
    }
}

/// A deployment of hosts in service that no report lets it disturb yet.
fn restricted(count: usize, spec: Value) -> World {
    let mut world = World::with(vec![deployed(count, &["first", "second"])], spec);
    world.allow(&[]);
    world
}

#[test]
fn hosts_go_one_after_the_other_each_from_its_permission_until_it_is_listed_no_more() {
    let mut world = restricted(3, json!({ "maxUnavailable": 1 }));
    assert_eq!(world.settle(), ["hold", "status"]);
    for host in ["n000", "n001", "n002"] {
        assert_eq!(world.awaiting(), [host]);
        let kept = &world.status().progress["compute"].hosts[host];
        assert_eq!((kept.state, kept.attempt, kept.failures), (RunState::Pending, 0, 0));
        world.sleep(900);
        assert_eq!(world.settle(), [""; 0], "it waits, and nothing is written");
        world.allow(&[host]);
        assert_eq!(runs(&world.settle()), [format!("run first on {host}")]);
        assert_eq!(world.awaiting(), [""; 0]);
        world.finish();
        assert_eq!(runs(&world.settle()), [format!("run second on {host}")]);
        assert!(world.is_drained("first") && world.is_drained("second"));
        world.finish();
        // It is done, and still drained.
        assert_eq!(runs(&world.settle()), [""; 0]);
        assert_eq!(world.awaiting(), [""; 0], "the next one begins after that");
        world.allow(&[]);
        world.settle();
    }
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    once(&world);
}

#[test]
fn a_host_on_which_not_all_has_succeeded_may_serve_all_the_same_and_a_new_one_does_not() {
    for (state, waits) in
        [(HostState::Deployed, true), (HostState::Failed, true), (HostState::Undeployed, false)]
    {
        let mut set = deployed(1, &["first", "second"]);
        let host = &mut Arc::make_mut(&mut set).status.as_mut().unwrap().hosts[0];
        (host.state, host.hash) = (state, None);
        let mut world = World::with(vec![set], json!({ "maxUnavailable": 1 }));
        world.allow(&[]);
        let n_runs = runs(&world.settle()).len();
        let expected: &[&str] = if waits { &["n000"] } else { &[] };
        assert_eq!((world.awaiting(), n_runs == 0), (expected.to_vec(), waits), "{state:?}");
        world.allow(&["n000"]);
        world.settle();
        assert_eq!(world.is_drained("first"), waits, "{state:?}");
    }
}

#[test]
fn who_waits_and_for_what_is_in_the_conditions() {
    let mut world = restricted(3, json!({ "maxUnavailable": 1 }));
    world.settle();
    assert_eq!(world.condition("DeploymentReady"), is("False", "AwaitingDisruption"));
    assert_eq!(world.condition("Ready"), is("False", "AwaitingDisruption"));
    assert_eq!(
        world.set_condition("compute", "NodeSetDeploymentReady"),
        Some(is("False", "AwaitingDisruption"))
    );
    assert_eq!(world.set_condition("compute", "ServiceFirstDeploymentReady"), None);
    let message = world.message("DeploymentReady");
    for words in [
        "2 of 3 hosts wait for their turn, as maxUnavailable (1) has it.",
        "1 of 3 hosts of OpenStackDataPlaneNodeSet compute wait until they may be disturbed: n000.",
        "OpenStackDataPlaneHostReadiness compute-drain (example.org/drain) does not list them yet",
        "kubectl describe -n openstack openstackdataplanenodeset/compute",
        "kubectl delete -n openstack openstackdataplanehostreadiness/compute-drain",
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
    assert!(world.status().failures.is_empty());
}

#[test]
fn a_permission_of_another_deployment_and_of_one_of_two_reports_is_none() {
    let mut world = restricted(2, json!({ "maxUnavailable": 2 }));
    world.settle();
    assert_eq!(world.awaiting(), ["n000", "n001"]);
    let both = [("n000", "edpm"), ("n001", "another")];
    world.report_on("compute", vec![report("a", "compute", &both), report("b", "compute", &[])]);
    assert_eq!(runs(&world.settle()), [""; 0]);
    let message = world.message("DeploymentReady");
    assert!(message.contains("OpenStackDataPlaneHostReadiness compute-a"), "{message}");
    world.report_on("compute", vec![report("a", "compute", &both), report("b", "compute", &both)]);
    assert_eq!(runs(&world.settle()), ["run first on n000"]);
    // A report that names no hosts that may be disturbed restricts nothing, and none does when it
    // has gone.
    world.report_on("compute", vec![report("a", "compute", &both)]);
    assert_eq!(runs(&world.settle()), [""; 0]);
    world.seen.readiness.clear();
    assert_eq!(runs(&world.settle()), ["run first on n001"]);
    assert!(!world.seen.runs[1].spec.extra_vars.contains_key("edpm_reboot_drained"));
    world.run_out(|_, _| "Ok");
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
}

#[test]
fn hosts_that_were_never_in_service_go_at_once_and_share_no_run_with_a_drained_one() {
    let mut set = deployed(3, &["first"]);
    Arc::make_mut(&mut set).status.as_mut().unwrap().hosts.truncate(1);
    let mut world = World::with(vec![set], json!({}));
    world.allow(&[]);
    assert_eq!(runs(&world.settle()), ["run first on n001,n002"]);
    assert_eq!(world.awaiting(), ["n000"]);
    assert_eq!(world.condition("DeploymentReady"), is("False", "Requested"));
    assert!(!world.is_drained("first"));
    world.finish();
    world.settle();
    assert_eq!(world.status().progress["compute"].hosts["n002"].done, 1, "reported without delay");
    world.allow(&["n000", "n001"]);
    assert_eq!(runs(&world.settle()), ["run first on n000"]);
    assert_eq!(world.seen.runs[1].spec.extra_vars["edpm_reboot_drained"], json!(true));
    // The user's own value counts.
    let extra = json!({ "ansibleExtraVars": { "edpm_reboot_drained": false } });
    let mut world = restricted(1, extra);
    world.settle();
    world.allow(&["n000"]);
    world.settle();
    assert_eq!(world.run("first").spec.extra_vars["edpm_reboot_drained"], json!(false));
}

#[test]
fn the_first_failure_stops_it_and_a_host_that_waits_is_not_begun_with() {
    let mut world = restricted(4, json!({ "maxUnavailable": 2, "backoffLimit": 1 }));
    world.settle();
    assert_eq!(world.awaiting(), ["n000", "n001"]);
    world.allow(&["n000"]);
    assert_eq!(runs(&world.settle()), ["run first on n000"]);
    world.finish_with(|_, _| "Failed");
    world.settle();
    world.allow(&["n000", "n001"]);
    assert_eq!(runs(&world.settle()), [""; 0]);
    assert_eq!(world.awaiting(), ["n001"], "it keeps its place");
    let message = world.message("DeploymentReady");
    let cause = "3 of 4 hosts wait: OpenStackDataPlaneHostReadiness compute-drain has it that \
                 hosts are disturbed one after the other, and hosts fail: n000.";
    assert!(message.contains(cause), "{message}");
    // A retry that succeeds lets it go on.
    let mut healed = world.clone();
    healed.sleep(16);
    assert_eq!(runs(&healed.settle()), ["run first on n000"]);
    healed.finish();
    let writes = healed.settle();
    assert_eq!(runs(&writes), ["run first on n001", "run second on n000"]);
    // Else it ends, and the others stay as they are.
    world.run_out(|_, _| "Failed");
    assert_eq!(world.condition("Ready"), is("False", "BackoffLimitExceeded"));
    let hosts: BTreeSet<&str> = world.carried.iter().map(|it| it.1.as_str()).collect();
    assert_eq!(hosts.into_iter().collect::<Vec<_>>(), ["n000"]);
    assert!(world.message("Ready").contains("3 of 4 hosts were left as they are"));
}

#[test]
fn a_correction_is_drained_where_the_change_before_it_failed_and_nowhere_else() {
    let names = ["n001", "n002"];
    let set = failed_on(&names, deployed(4, &["first", "second"]));
    let mut world = World::with(vec![set], json!({ "maxUnavailable": 1 }));
    world.report_on("compute", vec![report("drain", "compute", &[("n001", "before")])]);
    world.settle();
    assert_eq!(world.awaiting(), ["n001"], "only as many as may be unavailable are retried");
    world.allow(&["n001"]);
    assert_eq!(runs(&world.settle()), ["run first on n001"]);
    world.finish();
    world.settle();
    world.finish();
    world.allow(&[]);
    world.settle();
    assert_eq!(world.awaiting(), ["n002"]);
    let kept = &world.status().progress["compute"].hosts["n002"];
    assert_eq!((kept.failures, world.status().failures.len()), (1, 0));
}

#[test]
fn a_service_for_all_and_what_leads_to_it_wait_for_no_permission() {
    let services = ["first", "everywhere", "second"];
    let mut other = node_set("other", &["x0"], &["third"]);
    Arc::make_mut(&mut other).status.as_mut().unwrap().hosts =
        deployed(1, &[]).status.as_ref().unwrap().hosts.clone();
    let hosts = &mut Arc::make_mut(&mut other).status.as_mut().unwrap().hosts;
    hosts[0].name = "x0".into();
    let mut world = World::with(vec![deployed(2, &services), other], json!({}));
    world.allow(&[]);
    world.report_on("other", vec![report("drain", "other", &[])]);
    assert_eq!(runs(&world.settle()), ["run first on n000"]);
    let message = world.message("DeploymentReady");
    let cause = "1 of 1 hosts of OpenStackDataPlaneNodeSet other wait until the other node sets \
                 have come to what is for all of them (everywhere): x0.";
    assert!(message.contains(cause), "{message}");
    world.finish();
    assert_eq!(runs(&world.settle()), ["run first on n001"]);
    world.finish();
    assert_eq!(runs(&world.settle()), ["run everywhere on n000,n001,x0"]);
    assert!(!world.is_drained("everywhere"));
    assert!(awaits_disruption(&world.status().progress["other"].hosts["x0"]));
    world.finish();
    world.settle();
    world.report_on("other", vec![report("drain", "other", &[("x0", "edpm")])]);
    assert_eq!(runs(&world.settle()), ["run third on x0"]);
    world.finish();
    world.settle();
    assert_eq!(world.status().progress["other"].hosts["x0"].state, RunState::Succeeded);
    assert_eq!(world.awaiting(), [""; 0]);
    world.report_on("other", vec![report("drain", "other", &[])]);
    world.settle();
    for host in ["n000", "n001"] {
        assert_eq!(world.awaiting(), [host]);
        assert_eq!(world.status().progress["compute"].hosts[host].done, 2);
        assert_eq!(world.settle(), [""; 0]);
        world.allow(&[host]);
        assert_eq!(runs(&world.settle()), [format!("run second on {host}")]);
        world.finish();
        world.settle();
        world.allow(&[]);
        world.settle();
    }
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    once(&world);
}

#[test]
fn a_host_that_waits_for_one_deployment_holds_a_place_in_another_one_too() {
    let specs = [json!({ "maxUnavailable": 2 }), json!({ "maxUnavailable": 1 })];
    let mut worlds = two_of_one(&["first"], specs);
    for world in &mut worlds {
        world.allow(&[]);
    }
    worlds[0].settle();
    assert_eq!(worlds[0].awaiting(), ["n000", "n001"]);
    look_at_each_other(&mut worlds);
    worlds[1].settle();
    assert_eq!(worlds[1].awaiting(), [""; 0]);
    // Nothing new begins with one that is to be deleted.
    let going = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(worlds[0].now));
    worlds[0].deployment().metadata.deletion_timestamp = going;
    look_at_each_other(&mut worlds);
    worlds[1].settle();
    assert_eq!(worlds[1].awaiting(), ["n000"]);
}

#[test]
fn a_restart_and_missing_inputs_take_no_place_from_a_host_that_waits() {
    let mut world = restricted(3, json!({ "maxUnavailable": 1 }));
    world.settle();
    let first = world.seen.services.remove("first");
    world.settle();
    assert_eq!(world.awaiting(), ["n000"]);
    world.allow(&["n000"]);
    assert_eq!(runs(&world.settle()), [""; 0]);
    assert_eq!(world.awaiting(), ["n000"]);
    world.seen.services.extend(first.map(|it| ("first".to_owned(), it)));
    assert_eq!(runs(&world.settle()), ["run first on n000"]);
}
