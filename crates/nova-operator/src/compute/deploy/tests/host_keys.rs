//! The host key: the node publishes it, and the user must accept a new one here too.

use operator_core::run_engine::host_key::ACCEPT;
use operator_core::run_engine::ssh_secret::KNOWN_HOSTS;

use super::*;

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIWOnjFtgHBGBoLBE0E8K1SBXAJAwqFXKF1sTvZlPo8+";
const FINGERPRINT: &str = "SHA256:we3NhHv6qoWDZyJEgGkUdR8Wt3uFq2IQZFuEdYnEPQg";
const OTHER: &str = "SHA256:qfjns8u+mffg5thVDh//jqSmjYPM9ckImYjORFeaUdc";

impl World {
    /// A node whose host key was learned, and an ssh Secret without known hosts.
    fn learned() -> Self {
        let mut world = Self::new();
        world.node().status.as_mut().unwrap().host_key = Some(KEY.into());
        world.seen.ssh.as_mut().unwrap().keys.remove(KNOWN_HOSTS);
        world
    }

    /// The host of the newest run.
    fn host(&self) -> Value {
        serde_json::to_value(&self.seen.runs.last().unwrap().spec.hosts[0]).unwrap()
    }

    fn mounts_known_hosts(&self) -> bool {
        let spec = serde_json::to_string(&self.seen.runs.last().unwrap().spec).unwrap();
        spec.contains("/runner/env/known_hosts/key")
    }
}

#[test]
fn a_learned_key_is_taken_from_the_nodes_inventory_and_nothing_is_asked() {
    let mut world = World::learned();
    let writes = world.settle();
    assert_eq!(world.host(), json!({ "name": "n0", "address": "192.0.2.7:22" }));
    assert!(!world.mounts_known_hosts());
    let mut known = World::new();
    assert_eq!(known.settle(), writes);
    assert!(known.mounts_known_hosts());
    let hashes = |it: &World| {
        let services = &it.seen.compute.status.as_ref().unwrap().services;
        services.iter().map(|it| it.hash.clone()).collect::<Vec<_>>()
    };
    assert_eq!(hashes(&world), hashes(&known), "what was learned is no input");
}

#[test]
fn a_changed_key_is_told_with_the_nodes_command_and_tried_at_once_when_it_is_accepted() {
    let mut world = World::learned();
    world.settle();
    world.end("HostKeyMismatch").settle();
    let message = world.condition("Ready").message;
    let command = "kubectl annotate --overwrite -n ns openstackdataplanenode/n0 \
                   dataplane.openstack.org/accept-host-key=SHA256:";
    assert!(message.contains(command), "{message}");
    world.node().annotations_mut().insert(ACCEPT.into(), OTHER.into());
    assert!(world.settle().contains(&"run libvirt".to_owned()));
    assert_eq!(world.host()["scanHostKey"], json!({ "fingerprint": OTHER }));
    // It is rejected again: after the pause, a scan fetches the key to report it.
    world.end("HostKeyMismatch").settle();
    assert_eq!(world.settle(), [""; 0]);
    world.node().annotations_mut().remove(ACCEPT);
    world.settle();
    assert_eq!(world.host()["scanHostKey"], json!({ "fingerprint": FINGERPRINT }));
}

#[test]
fn without_a_learned_key_known_hosts_decide() {
    let mut world = World::new();
    world.node().annotations_mut().insert(ACCEPT.into(), OTHER.into());
    world.settle();
    assert_eq!(world.host().get("scanHostKey"), None);
    world.end("HostKeyMismatch").settle();
    world.mentions("Ready", &["correct known_hosts of the ssh Secret"]);
}
