//! The key for migrations: mounted and an input where its Secret is there, and nothing runs by an
//! upgrade to a release that knows it.

use super::*;
use crate::compute::deploy::migration_key::SECRET;

fn key(version: &str) -> Digests {
    let keys = ["ssh-privatekey", "ssh-publickey"].map(|it| (it.to_owned(), version.into()));
    Digests { version: version.into(), keys: keys.into(), ..Digests::default() }
}

impl World {
    /// Whether the last run of nova-compute mounts the key.
    fn mounts_key(&self) -> bool {
        let text = serde_json::to_string(&self.run_of_nova().spec).unwrap();
        let paths = ["ssh-privatekey", "ssh-publickey"]
            .map(|it| text.contains(&format!("/var/lib/openstack/configs/nova/{it}")));
        assert_eq!(paths[0], paths[1]);
        paths[0]
    }
}

#[test]
fn a_host_gets_the_key_with_its_first_deployment_and_each_further_one() {
    let mut world = World::new();
    world.seen.migration_key = Some(key("1"));
    let mut world = world.deploy();
    assert!(world.mounts_key());
    assert_eq!(world.reason("UpToDate"), "UpToDate");
    assert_eq!(world.settle(), Vec::<String>::new());
    // Another key is another input, of nova-compute alone.
    world.seen.migration_key = Some(key("2"));
    assert_eq!(world.settle(), ["files", "status", "run nova", "status"]);
    world.mentions("UpToDate", &[SECRET]);
    assert!(world.mounts_key());
    assert_eq!(world.end_well(2).reason("Ready"), "Ready");
}

#[test]
fn a_key_that_a_deployed_host_lacks_runs_nothing_and_comes_with_the_next_deployment() {
    let mut world = World::deployed();
    world.seen.migration_key = Some(key("1"));
    assert_eq!(world.settle(), ["status"]);
    assert_eq!(world.reason("Ready"), "Ready");
    let words = [SECRET, "ssh-privatekey", "nova.openstack.org/redeploy"];
    world.says("UpToDate", "OperatorChanged", &words);
    world.configure(Some("[libvirt]\ncpu_mode = host-model\n"));
    assert!(world.settle().contains(&"run nova".to_owned()));
    assert!(world.mounts_key());
    assert_eq!(world.end_well(2).reason("Ready"), "Ready");
    assert_eq!(world.reason("UpToDate"), "UpToDate");
    assert_eq!(world.settle(), Vec::<String>::new());
}

#[test]
fn a_key_that_is_made_after_a_failure_comes_with_the_next_attempt() {
    let mut world = World::new();
    world.settle();
    world.end("Ok").settle();
    world.end("Failed").settle();
    assert!(!world.mounts_key());
    world.seen.migration_key = Some(key("1"));
    assert!(world.settle().contains(&"run nova".to_owned()));
    assert!(world.mounts_key());
}

#[test]
fn a_key_that_is_gone_or_of_no_use_holds_the_next_deployment_with_words() {
    let mut world = World::new();
    world.seen.migration_key = Some(key("1"));
    let mut world = world.deploy();
    world.seen.migration_key = None;
    assert_eq!(world.settle(), ["status"]);
    assert_eq!(world.n_runs(), 0);
    world.says("InputReady", "SecretNotFound", &[SECRET]);
    assert_eq!(world.reason("Ready"), "Ready");
    for (missing, words) in
        [("ssh-publickey", "no key ssh-publickey"), ("ssh-privatekey", "no key")]
    {
        world.seen.migration_key = Some(key("1"));
        world.seen.migration_key.as_mut().unwrap().keys.remove(missing);
        world.settle();
        assert_eq!(world.n_runs(), 0);
        world.says("InputReady", "SecretIncomplete", &[words]);
    }
    world.seen.migration_key = Some(key("1"));
    world.settle();
    assert_eq!((world.reason("UpToDate").as_str(), world.n_runs()), ("UpToDate", 0));
}

#[test]
fn a_host_without_a_certificate_and_a_key_says_that_no_guest_can_move_and_is_ready() {
    let mut world = World::new();
    world.compute().spec.custom_service_config = None;
    let mut world = world.deploy();
    world.says(
        "ConfigWarnings",
        "GuestsCannotMove",
        &[
            "spec.tlsEnabled of OpenStackDataPlaneRole compute",
            "-n ns nova-migration-ssh-key",
            "list the service ssh-known-hosts",
        ],
    );
    for can_move in [(|it| it.seen.migration_key = Some(key("1"))) as fn(&mut World), |it| {
        it.seen.migration_key = None;
        it.seen.group.as_mut().unwrap().role_mut().spec.tls_enabled = Some(true);
    }] {
        can_move(&mut world);
        world.settle();
        assert_eq!(world.reason("ConfigWarnings"), "NoWarnings");
    }
    assert_eq!(world.n_runs(), 0);
}

#[test]
fn a_host_with_the_key_that_is_told_no_other_hosts_says_so_unless_it_has_a_certificate() {
    let mut world = World::new();
    world.compute().spec.custom_service_config = None;
    world.seen.migration_key = Some(key("1"));
    world.seen.has_known_hosts = false;
    let mut world = world.deploy();
    let words = [
        "no service of type ssh-known-hosts is in spec.services of OpenStackDataPlaneRole compute",
        "spec.tlsEnabled of OpenStackDataPlaneRole compute to true, or list that service there",
    ];
    world.says("ConfigWarnings", "GuestsCannotMove", &words);
    world.seen.has_known_hosts = true;
    world.settle();
    assert_eq!(world.reason("ConfigWarnings"), "NoWarnings");
    world.seen.has_known_hosts = false;
    world.seen.group.as_mut().unwrap().role_mut().spec.tls_enabled = Some(true);
    world.settle();
    assert_eq!(world.reason("ConfigWarnings"), "NoWarnings");
    // What a role lists that is gone is not known.
    world.seen.group = None;
    world.settle();
    assert_eq!(world.reason("ConfigWarnings"), "NoWarnings");
    assert_eq!(world.n_runs(), 0);
}
