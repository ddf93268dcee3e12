//! Hosts that were taken out of a node set and that another operator still cleans up after.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::inventories::run;
use super::nodes::other;
use super::*;

impl World {
    /// The user takes n1 out.
    pub(super) fn take_out(&mut self) -> &mut Self {
        self.edit("/nodes", json!({ "n0": { "ansible": { "ansibleHost": "192.0.2.10" } } }))
    }

    fn recorded(&self) -> &api::dataplane::NodeSetStatus {
        self.seen.set.status.as_ref().unwrap()
    }
}

/// Two hosts that are deployed, with finalizers on both.
fn held() -> World {
    let mut world = deployed();
    world.finalize(&["n0", "n1"]);
    world
}

#[test]
fn a_host_that_is_taken_out_stays_in_the_inventory_until_its_finalizer_is_removed() {
    let mut world = held();
    let before = world.inventory()[SET]["hosts"]["n1"].clone();
    assert_eq!(world.take_out().settle(), ["status NodeSet compute"], "the inventory is the same");
    assert_eq!(world.states(), [HostState::Deployed, HostState::Terminating]);
    assert_eq!(world.node("n1").address.as_deref(), Some("192.0.2.11:22"));
    assert_eq!((world.recorded().nodes, world.recorded().ready_nodes), (1, 1));
    // Other changes go on around it.
    world.edit("/nodeTemplate/ansible", json!({ "ansibleVars": { "a": "b" } }));
    assert_eq!(world.settle().len(), 2);
    assert_eq!(world.inventory()[SET]["hosts"]["n1"], before);
    assert_eq!(world.inventory()[SET]["vars"]["a"], "b");
    world.finalize(&["n0"]).settle();
    assert_eq!(world.inventory()[SET]["hosts"].as_object().unwrap().len(), 1);
    assert_eq!(world.states(), [HostState::Deployed]);
    assert_eq!(world.settle(), [""; 0]);
}

#[test]
fn a_node_set_is_as_ready_and_as_up_to_date_as_if_the_host_were_gone() {
    let conditions = |holds: bool| {
        let mut world = held();
        if !holds {
            world.finalize(&[]);
        }
        world.take_out().settle();
        let all = world.recorded().conditions.clone();
        (world.hash(), world.recorded().inputs.clone(), all)
    };
    let (held, gone) = (conditions(true), conditions(false));
    assert_eq!((held.0, held.1), (gone.0, gone.1), "no digest has the host");
    assert_eq!(held.2, gone.2);
    let ready = held.2.iter().find(|it| it.type_ == "Ready").unwrap();
    assert_eq!(format!("{:?}", ready.status), "True", "{ready:?}");
}

#[test]
fn all_hosts_can_be_taken_out() {
    let mut world = held();
    let before = world.content.clone();
    world.edit("/nodes", json!({})).settle();
    assert_eq!(world.content["inventory"], before["inventory"]);
    assert_eq!(world.states(), [HostState::Terminating; 2]);
    world.finalize(&[]).settle();
    assert!(world.inventory()[SET].get("hosts").is_none());
    assert!(world.recorded().hosts.is_empty());
}

#[test]
fn the_learned_key_of_a_terminating_host_stays_known_and_a_changed_one_can_be_accepted() {
    let run = |key: &str| run("n1", "192.0.2.11:22", key);
    let mut world = held();
    world.seen.runs = vec![run(KEY)];
    world.settle();
    world.seen.runs.clear();
    world.take_out().settle();
    assert_eq!(world.content["known_hosts"], format!("192.0.2.11 {KEY}\n"));
    assert_eq!(world.node("n1").host_key.as_deref(), Some(KEY));
    let other = KEY.replace("WOnjFt", "AAAAAA");
    world.seen.runs = vec![run(&other)];
    let print = operator_core::run_engine::host_key::HostKey::parse(&other).unwrap().fingerprint();
    world.with_node("n1", |it| {
        it.annotations_mut().insert("dataplane.openstack.org/accept-host-key".into(), print);
    });
    world.settle();
    assert_eq!(world.content["known_hosts"], format!("192.0.2.11 {other}\n"));
    world.finalize(&[]).settle();
    assert_eq!(world.content["known_hosts"], "");
}

#[test]
fn an_inventory_that_was_lost_is_written_without_the_host_and_nothing_waits_for_it() {
    let mut world = held();
    world.take_out().settle();
    world.seen.inventory = None;
    world.content.clear();
    world.settle();
    assert_eq!(world.inventory()[SET]["hosts"].as_object().unwrap().len(), 1);
    assert_eq!(world.node("n1").address.as_deref(), Some("192.0.2.11:22"), "it stays known");
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
    assert_eq!(world.settle(), [""; 0]);
    // What another field manager wrote is not renewed as if it were the operator's.
    let mut world = held();
    world.take_out().settle();
    world.seen.inventory.as_mut().unwrap().managed_fields = ManagedFields::default();
    world.settle();
    assert_eq!(world.inventory()[SET]["hosts"].as_object().unwrap().len(), 1);
}

#[test]
fn a_deployment_keeps_its_inventory_and_the_host_stays_after_it() {
    let mut world = held();
    world.deploy("e", &json!({}), &[("n0", 1, "Running"), ("n1", 1, "Running")]).settle();
    let before = world.content.clone();
    world.take_out().settle();
    assert_eq!(world.content, before);
    world.deploy("e", &json!({}), &[("n0", 2, "Succeeded")]);
    world.end("e", true, ["c1", "s1"]).settle();
    assert_eq!(world.states(), [HostState::Deployed, HostState::Terminating]);
    assert_eq!(world.content["inventory"], before["inventory"]);
    assert_eq!(world.condition("Ready"), is("True", "Ready"));
}

#[test]
fn terminating_hosts_count_among_the_most_that_a_node_set_may_have() {
    let mut world = held();
    let node = |n: usize| {
        (
            format!("m{n:03}"),
            json!({ "ansible": {
        "ansibleHost": format!("198.51.{}.{}", n / 250, n % 250) } }),
        )
    };
    let nodes: serde_json::Map<String, Value> = (0..499).map(node).collect();
    world.edit("/nodes", json!(nodes)).settle();
    assert_eq!(world.condition("InputReady"), is("False", "TooManyHosts"));
    world.says("InputReady", &["499 nodes and 2 hosts that are still terminating"]);
    world.finalize(&["n0"]).settle();
    assert_eq!(world.condition("InputReady"), is("True", "InputComplete"));
}

#[test]
fn a_host_at_the_address_of_a_terminating_one_waits_for_it() {
    let mut world = held();
    world.edit(
        "/nodes",
        json!({
            "n0": { "ansible": { "ansibleHost": "192.0.2.10" } },
            "n9": { "ansible": { "ansibleHost": "192.0.2.11" } },
        }),
    );
    let before = world.content.clone();
    assert_eq!(world.settled("InputReady"), is("False", "HostTaken"));
    world.says("InputReady", &["Host n9", "address 192.0.2.11 of host n1", "still terminating"]);
    assert_eq!(world.content, before);
    world.finalize(&["n0"]).settle();
    assert_eq!(world.condition("InputReady"), is("True", "InputComplete"));
    let inventory = world.inventory();
    assert_eq!(
        inventory[SET]["hosts"].as_object().unwrap().keys().collect::<Vec<_>>(),
        ["n0", "n9"]
    );
}

#[test]
fn a_terminating_host_belongs_to_its_node_set_until_its_finalizer_is_removed() {
    let mut world = held();
    let mut other = (*other("192.0.2.11")).clone();
    other.metadata.creation_timestamp = Some(Time("2026-01-02T00:00:00Z".parse().unwrap()));
    let taken = |world: &World| {
        let found = Claim::of_node_set(&other).taken(&ClaimIndex::of(&[world.claim()]));
        found.first().map(|it| it.message("OpenStackDataPlaneNodeSet other"))
    };
    world.take_out();
    assert!(taken(&world).is_some(), "the removal was not observed yet");
    world.settle();
    let message = taken(&world).unwrap();
    assert!(message.contains("still terminating there"), "{message}");
    // The other object is older here: this one keeps its inputs all the same.
    other.metadata.creation_timestamp = Some(Time("2025-01-02T00:00:00Z".parse().unwrap()));
    world.seen.neighbours = vec![Claim::of_node_set(&other)];
    assert_eq!(world.settle(), [""; 0]);
    other.metadata.creation_timestamp = Some(Time("2026-01-02T00:00:00Z".parse().unwrap()));
    world.finalize(&[]).settle();
    assert_eq!(Claim::of_node_set(&other).taken(&ClaimIndex::of(&[world.claim()])), []);
}

#[test]
fn a_deleted_node_set_waits_until_no_node_has_a_finalizer_of_others() {
    let mut world = held();
    world.take_out().settle();
    let before = world.content.clone();
    assert_eq!(world.go().settle(), ["status NodeSet compute"]);
    assert_eq!(world.condition("SetupReady"), is("False", "DeletionWaits"));
    let message = world.message("SetupReady");
    for words in ["OpenStackDataPlaneNode n0, n1", OTHER, "docs/removal.md"] {
        assert!(message.contains(words), "{words}: {message}");
    }
    assert_eq!(world.states(), [HostState::Terminating; 2]);
    assert_eq!(world.content, before, "the inventory is complete");
    world.finalize(&["n0"]).settle();
    assert!(!world.message("SetupReady").contains("n1"), "{}", world.message("SetupReady"));
    assert_eq!(world.finalize(&[]).settle().last().unwrap(), "release NodeSet compute");
    assert!(world.seen.inventory.is_none());
}

/// The host names of the reservations, the names for the DNS server, and the certificates.
fn on_networks(world: &World) -> [Vec<String>; 3] {
    let mut reservations: Vec<String> =
        world.seen.infra.ip_sets.iter().map(|it| it.name_any()).collect();
    let entries = world.seen.infra.dns_data.iter().flat_map(|it| &it.spec.hosts);
    let mut names: Vec<String> = entries.flat_map(|it| it.hostnames.clone()).collect();
    reservations.sort();
    names.sort();
    [reservations, names, world.seen.issued.certificates.keys().cloned().collect()]
}

#[test]
fn what_a_terminating_host_has_on_its_networks_stays_until_its_finalizer_is_removed() {
    let mut world = World::issued();
    world.finalize(&["n1"]);
    let (before, status) = (on_networks(&world), world.status());
    assert!(before.iter().all(|it| it.iter().any(|it| it.contains("n1"))), "{before:?}");
    let writes = world.take_out().settle();
    assert!(!writes.iter().any(|it| it.starts_with("delete")), "{writes:?}");
    assert_eq!(on_networks(&world), before);
    for field in ["allIPs", "allHostnames"] {
        assert_eq!(world.status()[field], status[field], "{field}");
    }
    assert_eq!(world.node("n1").address.as_deref(), Some("192.0.2.101:22"));
    // The certificates that runs mount are those of the others.
    world.issue("1").settle();
    assert_eq!(world.condition("NodeSetCertificatesReady"), is("True", "Issued"));
    assert_eq!(world.settle(), [""; 0]);
    let mut unnamed = world.clone();
    unnamed.edit("/nodeTemplate/networks", json!([]));
    unnamed.seen.infra.is_used = false;
    let writes = unnamed.settle();
    for write in ["delete IPSet n1.example.org", "delete DNSData compute"] {
        assert!(!writes.contains(&write.to_owned()), "{write}: {writes:?}");
    }
    assert_eq!(unnamed.recorded().all_ips.keys().collect::<Vec<_>>(), ["n1.example.org"]);
    let writes = world.finalize(&[]).settle();
    for write in [
        "delete IPSet n1.example.org",
        "apply DNSData compute",
        "delete Certificate web-default-n1.example.org",
    ] {
        assert!(writes.contains(&write.to_owned()), "{write}: {writes:?}");
    }
    assert_eq!(world.recorded().all_ips.keys().collect::<Vec<_>>(), ["n0"]);
}
