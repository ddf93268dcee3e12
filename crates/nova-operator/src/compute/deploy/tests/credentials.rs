//! What a compute logs in with is held before the first run with it, and recorded by name.

use api::nova::{Credential, CredentialKind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::*;

fn user(name: &str) -> Credential {
    Credential { kind: CredentialKind::RabbitMqUser, name: name.to_owned() }
}

impl World {
    /// Others have rotated the user of the message bus.
    fn rotate(&mut self, name: &str) {
        let url = format!("rabbit://{name}:bus-password@192.0.2.2/v");
        self.seen.message_bus = Some(content(&[("transport_url", &url)]));
        self.seen.held.present = vec![user(name)];
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some("ns".into()),
            ..ObjectMeta::default()
        };
        self.seen.held.objects.push(HeldObject { credential: user(name), metadata });
    }

    fn credentials(&self) -> Vec<&str> {
        let status = self.seen.compute.status.as_ref().unwrap();
        status.credentials.iter().map(|it| it.name.as_str()).collect()
    }
}

#[test]
fn a_user_is_recorded_and_held_before_the_first_run_with_it() {
    let mut world = World::new();
    world.rotate("a");
    assert_eq!(world.settle()[..4], ["files", "status", "hold RabbitMQUser a", "run libvirt"]);
    assert_eq!(world.credentials(), ["a"]);
}

#[test]
fn a_running_and_a_failed_deployment_keep_both_and_a_completed_one_the_newer() {
    let mut world = World::new();
    world.rotate("a");
    let mut world = world.deploy();
    assert_eq!(world.credentials(), ["a"]);
    world.rotate("b");
    assert_eq!(world.settle()[..4], ["files", "status", "hold RabbitMQUser b", "run nova"]);
    assert_eq!(world.credentials(), ["a", "b"]);
    world.end("Failed").settle();
    assert_eq!(world.credentials(), ["a", "b"]);
    world.rotate("c");
    world.now += SignedDuration::from_hours(1);
    world.settle();
    assert_eq!(world.credentials(), ["a", "b", "c"]);
    world.end("Ok").settle();
    assert_eq!(world.credentials(), ["a", "b", "c"], "it has not registered yet");
    world.end("Ok").settle();
    assert_eq!(world.credentials(), ["c"]);
}

#[test]
fn an_upgrade_holds_what_a_deployed_compute_uses_and_runs_nothing() {
    let mut world = World::deployed();
    world.rotate("nova");
    world.seen.message_bus =
        Some(content(&[("transport_url", "rabbit://nova:bus-password@192.0.2.2/v")]));
    assert_eq!(world.settle(), ["status", "hold RabbitMQUser nova"]);
    assert_eq!(world.credentials(), ["nova"]);
}

#[test]
fn an_upgrade_holds_what_a_deployed_compute_uses_whose_change_waits() {
    let mut world = World::deployed();
    world.rotate("nova");
    world.compute().spec.deploy = Some(false);
    world.compute().spec.nova_compute_container_image = Some("quay.io/nova:next".into());
    assert_eq!(world.settle(), ["files", "status", "hold RabbitMQUser nova"]);
    assert_eq!(world.credentials(), ["nova"]);
    world.rotate("b");
    world.settle();
    assert_eq!(world.credentials(), ["nova"], "the host has not got it");
}

#[test]
fn a_hold_that_was_taken_away_is_made_again_and_none_on_what_is_being_deleted() {
    let mut world = World::new();
    world.rotate("a");
    let mut world = world.deploy();
    world.seen.held.objects[0].metadata.finalizers = None;
    assert_eq!(world.settle(), ["hold RabbitMQUser a"]);
    world.seen.held.objects[0].metadata.finalizers = None;
    world.seen.held.objects[0].metadata.deletion_timestamp = Some(Time(world.now));
    assert_eq!(world.settle(), [""; 0]);
}

#[test]
fn empty_keys_of_an_application_credential_are_no_input() {
    let mut world = World::deployed();
    let secret = [("ServicePassword", "keystone-password"), ("ACID", ""), ("ACSecret", "")];
    world.seen.cell_secret = Some(content(&secret));
    assert_eq!(world.settle(), [""; 0]);
    let secret = [("ServicePassword", "keystone-password"), ("ACID", "1"), ("ACSecret", "2")];
    world.seen.cell_secret = Some(content(&secret));
    assert_eq!(world.settle()[..3], ["files", "status", "run nova"]);
}

#[test]
fn the_bus_of_notifications_is_an_input_only_where_it_is_set() {
    let mut world = World::deployed();
    let key = "notification_transport_url";
    for (url, steps) in [("", &[][..]), ("rabbit://n:p@h/n", &["files", "status", "run nova"])] {
        let secret = [("ServicePassword", "keystone-password"), (key, url)];
        world.seen.cell_secret = Some(content(&secret));
        let settled = world.settle();
        assert_eq!(settled[..settled.len().min(3)], *steps, "{url}");
    }
    assert!(world.files["01-nova.conf"].contains("transport_url = rabbit://n:p@h/n\ndriver = m"));
}
