//! Host keys: learned at first contact, kept, rejected when they change, and accepted by a user.

use api::ansibleee::HostKeyScan;
use operator_core::run_engine::host_key::{ACCEPT, HostKey};
use operator_core::run_engine::ssh_secret::KNOWN_HOSTS;

use super::*;
use crate::annotations::ACCEPT_SHARED;
use crate::host::conflicts::Claim;

const KEYS: [&str; 3] = [
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIWOnjFtgHBGBoLBE0E8K1SBXAJAwqFXKF1sTvZlPo8+",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA14qTh+9rb8TwV5yGHttuXErUjIfElTMfOXZACEJV4L",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEZvtfoScQVwAXtXmNssy8Rm79PsyzMRPTG5MoQVEsmv",
];

fn fingerprint(idx: usize) -> String {
    HostKey::parse(KEYS[idx]).unwrap().fingerprint()
}

/// Known hosts that name every host, so that nothing is learned.
pub(super) fn all_known() -> BTreeMap<String, Arc<str>> {
    BTreeMap::from([(KNOWN_HOSTS.to_owned(), Arc::from(format!("* {}", KEYS[2])))])
}

impl World {
    /// Nodes that another operator holds, and an ssh Secret without known hosts.
    fn unknown() -> Self {
        let mut world = Self::new().held();
        world.set_known_hosts(None);
        world
    }

    fn set_known_hosts(&mut self, text: Option<&str>) {
        let secret = SourceRef::secret(NAMESPACE, "key");
        let digests = self.seen.sources.get_mut(&secret).unwrap();
        digests.version = format!("{text:?}");
        digests.texts.clear();
        digests.keys.remove(KNOWN_HOSTS);
        if let Some(text) = text {
            digests.texts.insert(KNOWN_HOSTS.into(), Arc::from(text));
            digests.keys.insert(KNOWN_HOSTS.into(), "d".into());
        }
    }

    /// Ends every open run; scanned hosts present these keys, by their index.
    fn tell(&mut self, keys: &[(&str, usize)], fails: &[(&str, &str)]) -> &mut Self {
        self.now = self.now.saturating_add(SignedDuration::from_secs(1)).unwrap();
        let is_open = |it: &&Arc<AnsibleEe>| is_open(it);
        let open: Vec<String> =
            self.seen.runs.iter().filter(is_open).map(|it| it.name_any()).collect();
        self.finish(fails);
        for run in self.seen.runs.iter_mut().filter(|it| open.contains(&it.name_any())) {
            let asked = run.spec.hosts.iter().filter(|it| it.scan_host_key.is_some());
            let told = asked.filter_map(|host| {
                let (_, idx) = keys.iter().find(|it| it.0 == host.name)?;
                Some(json!({ "name": host.name, "key": KEYS[*idx] }))
            });
            let told: Vec<Value> = told.collect();
            let status = Arc::make_mut(run).status.as_mut().unwrap();
            status.host_keys = serde_json::from_value(json!(told)).unwrap();
        }
        self
    }

    /// Two hosts that are deployed, and whose keys were learned.
    fn learned() -> Self {
        let mut world = Self::unknown();
        world.settle();
        world.tell(&[("n0", 0), ("n1", 1)], &[]);
        world.deploy();
        assert_eq!((world.host_key(0), world.host_key(1)), (Some(KEYS[0]), Some(KEYS[1])));
        world
    }

    fn host_key(&self, node: usize) -> Option<&str> {
        self.seen.nodes[node].status.as_ref()?.host_key.as_deref()
    }

    /// The host keys that the newest run scans, by host.
    fn asked(&self) -> Vec<(String, Option<HostKeyScan>)> {
        let run = self.seen.runs.last().unwrap();
        let asked = run.spec.hosts.iter().map(|it| (it.name.clone(), it.scan_host_key.clone()));
        asked.collect()
    }

    /// The data of an inventory object as it would be written now.
    fn data(&self, name: &str) -> Value {
        let mut seen = self.seen.clone();
        seen.inventories.remove(name);
        let plan = recorded(decide::decide(&seen, None, self.now));
        let step = plan.steps.iter().find(|it| it.target.name == name).unwrap();
        let Write::Apply { object, .. } = &step.write else { panic!("not applied") };
        object["data"].clone()
    }

    fn accept(&mut self, node: usize, fingerprint: &str) -> &mut Self {
        self.node(node).annotations_mut().insert(ACCEPT.into(), fingerprint.into());
        self
    }

    fn wait(&mut self) -> &mut Self {
        self.now = self.now.saturating_add(SignedDuration::from_mins(11)).unwrap();
        self
    }
}

fn any(host: &str) -> (String, Option<HostKeyScan>) {
    (host.into(), Some(HostKeyScan::default()))
}

fn only(host: &str, idx: usize) -> (String, Option<HostKeyScan>) {
    (host.into(), Some(HostKeyScan { fingerprint: Some(fingerprint(idx)) }))
}

fn nothing(host: &str) -> (String, Option<HostKeyScan>) {
    (host.into(), None)
}

#[test]
fn a_nodes_own_inventory_waits_for_no_key_that_no_run_reports() {
    let mut world = World::unknown();
    world.role().spec.services.clear();
    assert!(world.settle().contains(&"apply ConfigMap dataplanenode-n0".to_owned()));
    let mut world = World::unknown();
    world.deploy();
    assert_eq!((world.host_key(0), world.condition(0, "Ready")), (None, is("True", "Ready")));
    assert!(world.seen.inventories.contains_key("dataplanenode-n0"));
}

#[test]
fn a_first_contact_learns_the_keys_and_costs_one_more_inventory_of_the_role_and_no_status() {
    let mut world = World::unknown();
    let mut expected = World::new().held().settle();
    // Those of the nodes are written once, with the keys.
    expected.retain(|it| !it.contains("dataplanenode-"));
    assert_eq!(world.settle(), expected);
    assert_eq!(world.asked(), [any("n0"), any("n1")]);
    // The operator owns the data key from the beginning.
    assert_eq!(world.data("dataplanerole-compute")["known_hosts"], "");
    world.tell(&[("n0", 0), ("n1", 1)], &[]);
    assert_eq!(
        world.settle(),
        [
            "apply ConfigMap dataplanenode-n0",
            "apply ConfigMap dataplanenode-n1",
            "apply ConfigMap dataplanerole-compute",
            "run run-os on n0,n1",
            "status DataPlaneRole compute",
        ]
    );
    assert_eq!(world.asked(), [nothing("n0"), nothing("n1")]);
    let lines = format!("192.0.2.10 {}\n192.0.2.11 {}\n", KEYS[0], KEYS[1]);
    assert_eq!(world.data("dataplanerole-compute")["known_hosts"], lines);
    let line = format!("192.0.2.10 {}\n", KEYS[0]);
    assert_eq!(world.data("dataplanenode-n0")["known_hosts"], line);
    world.tell(&[], &[]);
    assert_eq!(
        world.settle(),
        ["status DataPlaneNode n0", "status DataPlaneNode n1", "status DataPlaneRole compute"]
    );
    assert_eq!((world.host_key(0), world.host_key(1)), (Some(KEYS[0]), Some(KEYS[1])));
    assert_eq!(world.wait().settle(), [""; 0]);
}

#[test]
fn what_was_learned_is_no_input() {
    let hashes = |world: &World| {
        let status = world.seen.nodes[0].status.clone().unwrap();
        let hashes: Vec<String> = status.services.into_iter().map(|it| it.hash).collect();
        (hashes, status.deployed_inputs)
    };
    let known = World::deployed();
    let mut learned = World::learned();
    assert_eq!(hashes(&known), hashes(&learned));
    // Naming the hosts in the user's `known_hosts`, or removing them again, deploys nothing either.
    for text in [Some(format!("* {}", KEYS[2])), None] {
        learned.set_known_hosts(text.as_deref());
        assert_eq!(runs(&learned.settle()), [""; 0]);
        assert_eq!(learned.condition(0, "UpToDate"), is("True", "UpToDate"));
    }
}

#[test]
fn a_failing_host_is_learned_all_the_same_and_known_when_it_is_tried_again() {
    let mut world = World::unknown().at_rest();
    world.tell(&[("n0", 0), ("n1", 1)], &[("n1", "Unreachable")]).settle();
    assert_eq!(world.host_key(1), Some(KEYS[1]), "with the write that tells of the failure");
    world.tell(&[], &[]).wait().settle();
    assert_eq!(world.asked(), [nothing("n1")]);
}

#[test]
fn a_host_that_told_nothing_is_asked_again() {
    let mut world = World::unknown().at_rest();
    world.tell(&[("n0", 0)], &[("n1", "HostKeyMismatch")]).settle();
    assert_eq!(world.host_key(1), None);
    world.tell(&[], &[]).wait().settle();
    assert_eq!(world.asked(), [any("n1")]);
}

#[test]
fn a_changed_key_is_refused_and_told_until_the_human_accepts_it() {
    let mut world = World::learned();
    world.set_var("hello").settle();
    assert_eq!(world.asked(), [nothing("n0"), nothing("n1")]);
    world.tell(&[], &[("n0", "HostKeyMismatch")]);
    world.deploy();
    assert_eq!(world.condition(0, "Ready"), is("False", "HostKeyMismatch"));
    let command = "kubectl annotate --overwrite -n openstack openstackdataplanenode/n0 \
                   dataplane.openstack.org/accept-host-key=";
    world.says(0, "Ready", &[&format!("{command}SHA256:…")]);
    // The next attempt scans the key to report its fingerprint; it trusts only the known one.
    world.wait().settle();
    assert_eq!(world.asked(), [only("n0", 0)]);
    world.tell(&[("n0", 2)], &[("n0", "HostKeyMismatch")]).settle();
    let with_fingerprint = format!("{command}{}", fingerprint(2));
    world.says(0, "Ready", &[&with_fingerprint]);
    assert_eq!(world.host_key(0), Some(KEYS[0]));
    assert_eq!(world.settle(), [""; 0]);
    // Once accepted, the host is retried at once.
    assert!(world.accept(0, &fingerprint(2)).settle().contains(&"run install-os on n0".to_owned()));
    assert_eq!(world.asked(), [only("n0", 2)]);
    world.deploy();
    assert_eq!(world.host_key(0), Some(KEYS[2]));
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    assert_eq!(world.wait().settle(), [""; 0]);
}

#[test]
fn a_fingerprint_that_is_accepted_before_it_was_seen_is_asked_for_at_once() {
    let mut world = World::learned();
    world.set_var("hello").settle();
    world.tell(&[], &[("n0", "HostKeyMismatch")]);
    world.deploy();
    assert!(world.accept(0, &fingerprint(2)).settle().contains(&"run install-os on n0".to_owned()));
    assert_eq!(world.asked(), [only("n0", 2)]);
    world.tell(&[("n0", 2)], &[]);
    world.deploy();
    assert_eq!(world.host_key(0), Some(KEYS[2]));
}

#[test]
fn another_key_than_the_accepted_one_replaces_nothing_and_is_not_tried_without_end() {
    let mut world = World::learned();
    world.set_var("hello").settle();
    world.tell(&[], &[("n0", "HostKeyMismatch")]);
    world.deploy();
    world.accept(0, &fingerprint(1)).settle();
    world.tell(&[("n0", 2)], &[("n0", "HostKeyMismatch")]).settle();
    assert_eq!(world.host_key(0), Some(KEYS[0]));
    let line = format!("192.0.2.10 {}\n", KEYS[0]);
    assert_eq!(world.data("dataplanenode-n0")["known_hosts"], line);
    world.says(0, "Ready", &[&fingerprint(2)]);
    assert_eq!(world.settle(), [""; 0], "the pause holds");
}

#[test]
fn an_accepted_fingerprint_pins_the_first_contact() {
    for (offered, expected) in [(0, Some(KEYS[0])), (1, None)] {
        let mut world = World::unknown();
        world.accept(0, &fingerprint(0)).settle();
        assert_eq!(world.asked(), [only("n0", 0), any("n1")]);
        world.tell(&[("n0", offered), ("n1", 1)], &[]);
        world.deploy();
        assert_eq!(world.host_key(0), expected);
    }
}

#[test]
fn a_key_of_the_humans_wins_over_a_learned_one() {
    let mut world = World::learned();
    world.set_known_hosts(Some(&format!("192.0.2.10 {}", KEYS[2])));
    assert_eq!(
        world.settle(),
        [
            "apply ConfigMap dataplanenode-n0",
            "apply ConfigMap dataplanerole-compute",
            "status DataPlaneNode n0",
        ]
    );
    assert_eq!((world.host_key(0), world.host_key(1)), (None, Some(KEYS[1])));
    let of_role = world.data("dataplanerole-compute");
    assert_eq!(of_role["known_hosts"], format!("192.0.2.11 {}\n", KEYS[1]));
    assert_eq!(world.data("dataplanenode-n0").get("known_hosts"), None);
    world.set_var("hello").settle();
    world.tell(&[], &[("n0", "HostKeyMismatch")]);
    world.deploy();
    world.says(0, "Ready", &["known_hosts of the ssh Secret"]);
    // An accepted key has no effect when `known_hosts` decide.
    assert_eq!(world.accept(0, &fingerprint(0)).settle(), [""; 0]);
    assert!(!world.message(0, "Ready").contains(ACCEPT));
}

#[test]
fn with_known_hosts_for_all_the_inventory_is_as_it_always_was() {
    let world = World::deployed();
    let data = world.data("dataplanerole-compute");
    assert_eq!(data.get("known_hosts"), None);
    let text = data["inventory"].as_str().unwrap();
    let option =
        "-o UserKnownHostsFile=/runner/env/known_hosts/key -o GlobalKnownHostsFile=/dev/null";
    assert!(text.contains(option), "{text}");
}

#[test]
fn a_key_that_another_owners_run_was_told_is_taken_only_if_it_is_accepted() {
    let mut world = World::learned();
    let mut run = AnsibleEe::clone(&world.seen.runs[0]);
    run.metadata.name = Some("of-another-owner".into());
    let told = json!([{ "name": "n0", "key": KEYS[2] }]);
    run.status.as_mut().unwrap().host_keys = serde_json::from_value(told).unwrap();
    world.seen.others.push(Arc::new(run));
    assert_eq!(world.settle(), [""; 0]);
    world.accept(0, &fingerprint(2));
    assert_eq!(
        world.settle(),
        [
            "apply ConfigMap dataplanenode-n0",
            "apply ConfigMap dataplanerole-compute",
            "status DataPlaneNode n0",
        ]
    );
    assert_eq!(world.host_key(0), Some(KEYS[2]));
}

#[test]
fn keys_of_another_address_or_of_an_earlier_node_are_not_taken() {
    let learned = World::learned();
    let changes: [fn(&mut Node); 2] = [
        |it| it.spec.ansible_host = Some("192.0.2.99".into()),
        |it| {
            it.metadata.creation_timestamp =
                serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap();
        },
    ];
    for change in changes {
        let mut world = learned.clone();
        let node = world.node(0);
        node.status = None;
        change(node);
        world.settle();
        assert_eq!(world.host_key(0), None);
        assert_eq!(world.asked(), [any("n0")]);
    }
}

#[test]
fn a_host_whose_human_has_ssh_in_their_own_hands_is_not_asked() {
    let mut world = World::unknown();
    let vars = &mut world.template().ansible_vars;
    vars.insert("ansible_ssh_common_args".into(), json!("-J jump.example.org"));
    world.settle();
    assert_eq!(world.asked(), [nothing("n0"), nothing("n1")]);
}

/// Updates the observed claims from the recorded nodes.
fn look_around(world: &mut World) {
    world.seen.claims = world.seen.nodes.iter().map(|it| Claim::of_node(it, None)).collect();
}

#[test]
fn the_younger_of_two_hosts_with_one_key_waits_until_that_is_accepted_and_in_service_it_goes_on() {
    let mut world = World::unknown();
    let deploys = |world: &mut World, it: bool| {
        let strategy = serde_json::from_value(json!({ "deploy": it })).unwrap();
        world.node(1).spec.deploy_strategy = Some(strategy);
    };
    deploys(&mut world, false);
    world.settle();
    world.tell(&[("n0", 0)], &[]);
    world.deploy();
    deploys(&mut world, true);
    world.settle();
    look_around(&mut world);
    world.tell(&[("n1", 0)], &[]).settle();
    assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
    assert_eq!(world.condition(1, "InputReady"), is("False", "HostKeyShared"));
    assert_eq!(world.condition(1, "HostKeyUnique"), is("False", "HostKeyShared"));
    assert!(!world.seen.runs.iter().any(|it| is_open(it)), "its second service waits");
    let print = fingerprint(0);
    let way = format!("openstackdataplanenode/n1 {ACCEPT_SHARED}={print}");
    world.says(1, "InputReady", &["host n0 of OpenStackDataPlaneNode n0", &way]);
    world.node(1).annotations_mut().insert(ACCEPT_SHARED.into(), format!("SHA256:x, {print}"));
    world.deploy();
    assert_eq!(world.condition(1, "Ready"), is("True", "Ready"));
    assert_eq!(world.condition(1, "InputReady"), is("True", "InputComplete"));
    let status = world.seen.nodes[1].status.clone().unwrap();
    assert!(find(&status.conditions, "HostKeyUnique").is_none());

    // As after an upgrade: the host is in service, and no key was accepted.
    world.node(1).annotations_mut().clear();
    host_edit(&mut world);
    look_around(&mut world);
    assert_eq!(world.settled(1, "UpToDate"), is("False", "InputsChanged"));
    world.deploy();
    assert_eq!(world.condition(1, "UpToDate"), is("True", "UpToDate"), "a change is deployed");
    assert_eq!(world.condition(1, "Ready"), is("True", "Ready"));
    assert_eq!(world.condition(1, "InputReady"), is("True", "InputComplete"));
    assert_eq!(world.condition(1, "HostKeyUnique"), is("False", "HostKeyShared"));
}

/// A change of the second host.
fn host_edit(world: &mut World) {
    let node = world.node(1);
    let own = node.spec.node.get_or_insert_default();
    own.ansible_vars.insert("changed".into(), json!("yes"));
}

#[test]
fn a_node_tells_that_a_variable_of_its_role_turns_the_check_of_host_keys_off() {
    let mut world = World::deployed();
    let has = |world: &World| {
        let status = world.seen.nodes[0].status.clone().unwrap();
        status.conditions.iter().any(|it| it.type_ == "HostKeysChecked")
    };
    assert!(!has(&world));
    let edit = |world: &mut World, args: &str| {
        let role = world.seen.role.as_mut().map(Arc::make_mut).unwrap();
        let vars = &mut role.spec.node_template.as_mut().unwrap().ansible_vars;
        vars.insert("ansible_ssh_common_args".into(), json!(args));
        world.settle();
    };
    edit(&mut world, "-o StrictHostKeyChecking=no");
    assert_eq!(world.condition(0, "HostKeysChecked"), is("False", "HostKeyCheckingOff"));
    world.says(0, "HostKeysChecked", &["have ansible_ssh_common_args: any machine"]);
    edit(&mut world, "-J bastion");
    assert!(!has(&world));
}
