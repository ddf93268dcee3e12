//! Hosts in service that a deployment begins with only once other operators allow to disturb them.

use api::dataplane::{DisruptionHolder, DisruptionTarget, NodeDeployment};

use super::*;

const HOLDER: &str = "drain.example.org";

impl World {
    /// An operator lets this deployment disturb these hosts of the node set `compute`, and no others.
    fn allow(&mut self, hosts: &[&str]) -> &mut Self {
        let allowed: Vec<(&str, &str)> = hosts.iter().map(|it| (*it, "edpm")).collect();
        self.hold("compute", &[(HOLDER, &allowed)]);
        self
    }

    /// These operators hold the hosts of a node set, and let deployments disturb these of them, each
    /// the one of that UID.
    fn hold(&mut self, node_set: &str, holders: &[(&str, &[(&str, &str)])]) -> &mut Self {
        let hosts: Vec<String> = self.seen.nodes[node_set].keys().cloned().collect();
        for host in &hosts {
            self.with_node(node_set, host, |node| {
                let status = node.status.as_mut().unwrap();
                let disruption = status.disruption.get_or_insert_default();
                let number = disruption.last;
                let target = |uid: &str| DisruptionTarget { deployment: uid.to_owned(), number };
                let holder = |(name, allowed): &(&str, &[(&str, &str)])| DisruptionHolder {
                    name: (*name).to_owned(),
                    holds: true,
                    allowed: allowed.iter().find(|it| it.0 == host).map(|it| target(it.1)),
                    seen: None,
                };
                disruption.holders = holders.iter().map(holder).collect();
            });
        }
        self
    }

    /// The hosts that hold a place and wait.
    fn awaiting(&self) -> Vec<&str> {
        let waits =
            |node: &&Arc<Node>| node.disruption_target().is_some_and(|it| it.deployment == "edpm");
        let nodes = self.seen.nodes.values().flat_map(BTreeMap::values);
        nodes.filter(waits).filter_map(|it| it.metadata.name.as_deref()).collect()
    }

    fn is_drained(&self, service: &str) -> bool {
        self.run(service).spec.extra_vars.contains_key("edpm_reboot_drained")
    }
}

/// A deployment of hosts in service that an operator does not let it disturb yet.
fn restricted(count: usize, spec: Value) -> World {
    let mut world = World::deployed(count, &["first", "second"], spec);
    world.allow(&[]);
    world
}

#[test]
fn hosts_go_one_after_the_other_each_from_its_permission_until_that_is_taken_back() {
    let mut world = restricted(3, json!({ "maxUnavailable": 1 }));
    assert_eq!(world.settle(), ["hold", "status", "nodes n000"]);
    for host in ["n000", "n001", "n002"] {
        assert_eq!(world.awaiting(), [host]);
        assert_eq!(world.host_state(host), HostState::Deployed, "nothing has begun there");
        assert_eq!(world.sleep(900).settle(), [""; 0], "it waits, and nothing is written");
        assert_eq!(runs(&world.allow(&[host]).settle()), [format!("run first on {host}")]);
        assert_eq!(world.awaiting(), [""; 0]);
        assert_eq!(runs(&world.finish().settle()), [format!("run second on {host}")]);
        assert!(world.is_drained("first") && world.is_drained("second"));
        world.finish();
        // It is done, and still drained.
        assert_eq!(runs(&world.settle()), [""; 0]);
        assert_eq!(world.awaiting(), [""; 0], "the next one begins after that");
        world.allow(&[]).settle();
    }
    world.succeeds();
}

#[test]
fn a_host_on_which_not_all_has_succeeded_may_serve_all_the_same_and_a_new_one_does_not() {
    let before =
        [HostState::Deployed, HostState::Failed, HostState::Undeployed, HostState::Deploying];
    for state in before.into_iter().map(Some).chain([None]) {
        let waits = state.is_some();
        let mut world = restricted(1, json!({ "maxUnavailable": 1 }));
        world.with_node("compute", "n000", |it| {
            let status = it.status.as_mut().unwrap();
            (status.deployed, status.deployed_config_hash) = (None, None);
            // One with tags that mends a failed first one brings no host to the node set's inputs.
            let partial = |state| NodeDeployment {
                state,
                partial: true,
                ..status.deployment.clone().unwrap()
            };
            status.deployment = state.map(partial);
            status.services.retain(|_| waits);
        });
        let n_runs = runs(&world.settle()).len();
        let expected: &[&str] = if waits { &["n000"] } else { &[] };
        assert_eq!((world.awaiting(), n_runs == 0), (expected.to_vec(), waits), "{state:?}");
        world.allow(&["n000"]).settle();
        assert_eq!(world.is_drained("first"), waits, "{state:?}");
        world.finish().settle();
        assert_eq!(world.is_drained("second"), waits, "{state:?}");
    }
}

#[test]
fn who_waits_and_for_what_is_in_the_conditions() {
    let mut world = restricted(3, json!({ "maxUnavailable": 1 }));
    world.settle();
    assert_eq!(world.condition("DeploymentReady"), is("False", "AwaitingDisruption"));
    assert_eq!(world.condition("Ready"), is("False", "AwaitingDisruption"));
    assert_eq!(world.of_set("compute", "NodeSetDeploymentReady"), "False AwaitingDisruption");
    assert_eq!(world.of_set("compute", "ServiceFirstDeploymentReady"), "");
    let words = [
        "2 of 3 hosts wait for their turn, as maxUnavailable (1) has it.",
        "1 of 3 hosts of OpenStackDataPlaneNodeSet compute wait until they may be disturbed: n000.",
        "drain.example.org does not let it go on at OpenStackDataPlaneNode n000 yet",
        "kubectl describe -n openstack openstackdataplanenode/n000",
        "kubectl patch -n openstack openstackdataplanenode/n000 --subresource=status --type=json -p \
         '[{\"op\":\"test\",\"path\":\"/status/disruption/holders/0/name\",\
         \"value\":\"drain.example.org\"},\
         {\"op\":\"remove\",\"path\":\"/status/disruption/holders/0\"}]'",
    ];
    world.says("DeploymentReady", &words);
    assert!(world.status().failures.is_empty());
}

#[test]
fn a_permission_of_another_deployment_and_of_one_of_two_operators_is_none() {
    let mut world = restricted(2, json!({ "maxUnavailable": 2 }));
    world.settle();
    assert_eq!(world.awaiting(), ["n000", "n001"]);
    let both = [("n000", "edpm"), ("n001", "another")];
    assert_eq!(runs(&world.hold("compute", &[("a.org", &both), ("b.org", &[])]).settle()), [""; 0]);
    world.says("DeploymentReady", &["b.org does not let it go on at OpenStackDataPlaneNode n000"]);
    world.hold("compute", &[("a.org", &both), ("b.org", &both)]);
    assert_eq!(runs(&world.settle()), ["run first on n000"]);
    // An operator that has no entry any more restricts nothing.
    assert_eq!(runs(&world.hold("compute", &[("a.org", &both)]).settle()), [""; 0]);
    assert_eq!(runs(&world.hold("compute", &[]).settle()), ["run first on n001"]);
    assert!(!world.seen.runs[1].spec.extra_vars.contains_key("edpm_reboot_drained"));
    world.succeeds();
}

#[test]
fn hosts_that_were_never_in_service_go_at_once_and_share_no_run_with_a_drained_one() {
    let set = node_set("compute", &strs(&names(3)), &["first"]);
    let mut world = World::with(vec![set], json!({}));
    world.was(HostState::Deployed, &["n000"]);
    assert_eq!(runs(&world.allow(&[]).settle()), ["run first on n001,n002"]);
    assert_eq!(world.awaiting(), ["n000"]);
    assert_eq!(world.condition("DeploymentReady"), is("False", "Requested"));
    assert!(!world.is_drained("first"));
    world.finish().settle();
    assert_eq!(world.host_state("n002"), HostState::Deployed, "it waits for no other host");
    assert_eq!(runs(&world.allow(&["n000", "n001"]).settle()), ["run first on n000"]);
    assert_eq!(world.seen.runs[1].spec.extra_vars["edpm_reboot_drained"], json!(true));
    // The user's own value counts.
    let extra = json!({ "ansibleExtraVars": { "edpm_reboot_drained": false } });
    let mut world = restricted(1, extra);
    world.settle();
    world.allow(&["n000"]).settle();
    assert_eq!(world.run("first").spec.extra_vars["edpm_reboot_drained"], json!(false));
}

#[test]
fn the_first_failure_stops_it_and_a_host_that_waits_is_not_begun_with() {
    let mut world = restricted(4, json!({ "maxUnavailable": 2, "backoffLimit": 1 }));
    world.settle();
    assert_eq!(world.awaiting(), ["n000", "n001"]);
    assert_eq!(runs(&world.allow(&["n000"]).settle()), ["run first on n000"]);
    world.finish_with(|_, _| "Failed").settle();
    assert_eq!(runs(&world.allow(&["n000", "n001"]).settle()), [""; 0]);
    assert_eq!(world.awaiting(), ["n001"], "it keeps its place");
    let cause = "3 of 4 hosts wait: drain.example.org (see OpenStackDataPlaneNode n000) has it that \
                 hosts are disturbed one after the other, and hosts fail: n000.";
    world.says("DeploymentReady", &[cause]);
    // A retry that succeeds lets it go on.
    let mut healed = world.clone();
    assert_eq!(runs(&healed.sleep(16).settle()), ["run first on n000"]);
    assert_eq!(runs(&healed.finish().settle()), ["run first on n001", "run second on n000"]);
    // Else it ends, and the others stay as they are.
    world.run_out(|_, _| "Failed");
    assert_eq!(world.condition("Ready"), is("False", "BackoffLimitExceeded"));
    let hosts: BTreeSet<&str> = world.carried.iter().map(|it| it.1.as_str()).collect();
    assert_eq!(hosts.into_iter().collect::<Vec<_>>(), ["n000"]);
    world.says("Ready", &["3 of 4 hosts were left as they are"]);
    assert_eq!(world.awaiting(), [""; 0], "it is over, and disturbs no host any more");
}

#[test]
fn a_correction_is_drained_where_the_change_before_it_failed_and_nowhere_else() {
    let mut world = restricted(4, json!({ "maxUnavailable": 1 }));
    world.was(HostState::Failed, &["n001", "n002"]);
    world.hold("compute", &[(HOLDER, &[("n001", "before")])]).settle();
    assert_eq!(world.awaiting(), ["n001"], "only as many as may be unavailable are retried");
    assert_eq!(runs(&world.allow(&["n001"]).settle()), ["run first on n001"]);
    world.finish().settle();
    world.finish();
    world.allow(&[]).settle();
    assert_eq!(world.awaiting(), ["n002"]);
    assert_eq!(world.status().failures.len(), 0, "what failed before is not this one's");
}

#[test]
fn a_service_for_all_and_what_leads_to_it_wait_for_no_permission() {
    wait_for_no_permission(HostState::Deployed);
    // Where not all has ever succeeded, guests may run all the same.
    wait_for_no_permission(HostState::Failed);
}

fn wait_for_no_permission(before: HostState) {
    let compute = node_set("compute", &["n000", "n001"], &["first", "everywhere", "second"]);
    let other = node_set("other", &["x0"], &["third"]);
    let mut world = World::with(vec![compute, other], json!({}));
    world.was(before, &["n000", "n001", "x0"]);
    for (set, host) in [("compute", "n000"), ("compute", "n001"), ("other", "x0")] {
        world.with_node(set, host, |it| {
            let status = it.status.as_mut().unwrap();
            status.deployed_config_hash.take_if(|_| before == HostState::Failed);
        });
    }
    world.allow(&[]);
    assert_eq!(runs(&world.hold("other", &[(HOLDER, &[])]).settle()), ["run first on n000"]);
    let cause = "1 of 1 hosts of OpenStackDataPlaneNodeSet other wait until the other node sets \
                 have come to what is for all of them (everywhere): x0.";
    world.says("DeploymentReady", &[cause]);
    assert_eq!(runs(&world.finish().settle()), ["run first on n001"]);
    assert_eq!(runs(&world.finish().settle()), ["run everywhere on n000,n001,x0"]);
    assert!(!world.is_drained("everywhere"));
    assert_eq!(world.awaiting(), ["x0"]);
    world.finish().settle();
    world.hold("other", &[(HOLDER, &[("x0", "edpm")])]);
    assert_eq!(runs(&world.settle()), ["run third on x0"]);
    world.finish().settle();
    assert_eq!(world.host_state("x0"), HostState::Deployed);
    assert_eq!(world.awaiting(), [""; 0]);
    world.hold("other", &[(HOLDER, &[])]).settle();
    for host in ["n000", "n001"] {
        assert_eq!(world.awaiting(), [host]);
        assert_eq!(world.settle(), [""; 0]);
        assert_eq!(runs(&world.allow(&[host]).settle()), [format!("run second on {host}")]);
        world.finish().settle();
        world.allow(&[]).settle();
    }
    world.succeeds();
}

#[test]
fn a_restart_and_missing_inputs_take_no_place_from_a_host_that_waits() {
    let mut world = restricted(3, json!({ "maxUnavailable": 1 }));
    world.settle();
    let first = world.seen.services.remove("first");
    world.settle();
    assert_eq!(world.awaiting(), ["n000"]);
    assert_eq!(runs(&world.allow(&["n000"]).settle()), [""; 0]);
    assert_eq!(world.awaiting(), ["n000"]);
    world.seen.services.extend(first.map(|it| ("first".to_owned(), it)));
    assert_eq!(runs(&world.settle()), ["run first on n000"]);
}

#[test]
fn a_permission_for_an_earlier_target_of_the_same_deployment_is_none() {
    let mut world = restricted(1, json!({ "maxUnavailable": 1 }));
    world.settle();
    world.allow(&["n000"]);
    world.with_node("compute", "n000", |it| drop(set_nodes::target(it, "edpm")));
    assert_eq!(runs(&world.settle()), [""; 0], "the host was given back in between");
    assert_eq!(runs(&world.allow(&["n000"]).settle()), ["run first on n000"]);
}

/// A deployment of one host in service, of whose second service an operator reports a gate.
fn gated() -> World {
    let mut world = World::deployed(1, &["first", "second"], json!({}));
    // The deployment before was long ago.
    world.sleep(3600);
    world.gate("second", &format!("{HOLDER}/Up"));
    world.deployment().spec.services_override = vec!["first".into()];
    world
}

#[test]
fn a_host_of_which_the_operator_of_a_gate_has_said_nothing_yet_waits_five_minutes_for_its_word() {
    let now = gated().now;
    let is_new: [fn(&mut World); 2] = [
        |world| world.deployment().metadata.creation_timestamp = Some(Time(world.now)),
        |world| {
            let now = Time(world.now);
            world.with_node("compute", "n000", |it| it.metadata.creation_timestamp = Some(now));
        },
    ];
    for is_new in is_new {
        let mut world = gated();
        is_new(&mut world);
        world.settle();
        assert_eq!(world.awaiting(), ["n000"]);
        let cause = "drain.example.org, which reports a readiness gate, has no entry in \
                     status.disruption.holders of OpenStackDataPlaneNode n000 yet; the host waits for it \
                     until 2026-01-01T01:05:00Z.";
        world.says("DeploymentReady", &[cause]);
        let pause = world.pass().requeue_after.unwrap();
        assert!((300..301).contains(&pause.as_secs()), "{pause:?}");
        let mut told = world.clone();
        told.allow(&[]);
        assert_eq!(runs(&told.sleep(400).settle()), [""; 0], "it holds the host");
        told.hold("compute", &[]);
        told.with_node("compute", "n000", |it| {
            let name = HOLDER.to_owned();
            set_nodes::hold(it, DisruptionHolder { name, ..DisruptionHolder::default() });
        });
        told.now = now;
        assert_eq!(runs(&told.settle()), ["run first on n000"], "it does not hold the host");
        assert_eq!(runs(&world.sleep(299).settle()), [""; 0]);
        assert_eq!(runs(&world.sleep(1).settle()), ["run first on n000"]);
    }
    let mut world = gated();
    assert_eq!(runs(&world.settle()), ["run first on n000"], "neither is new");
}

/// Another operator says that a host is down, or up.
fn up(world: &mut World, host: &str, is_up: bool) {
    let status = if is_up { "True" } else { "False" };
    let conditions = vec![stated("example.org/ServiceUp", status, "R", "")];
    world.with_node("compute", host, |it| it.status.as_mut().unwrap().conditions = conditions);
}

#[test]
fn a_host_that_is_down_counts_as_unavailable_and_may_begin_itself() {
    let mut world = World::deployed(3, &["first"], json!({ "maxUnavailable": 1 }));
    up(&mut world, "n001", false);
    assert_eq!(runs(&world.settle()), ["run first on n001"]);
    assert_eq!(runs(&world.finish().settle()), [""; 0], "it holds the only place");
    assert!(!world.is_over());
    let cause = "2 of 3 hosts wait: all places that maxUnavailable (1) allows are held by hosts that \
                 fail or are down: n001.";
    world.says("DeploymentReady", &[cause]);
    up(&mut world, "n001", true);
    assert_eq!(runs(&world.settle()), ["run first on n000"]);
    world.succeeds();
}
