//! Digests of Secrets' content: always keyed, and an upgrade or a lost key does not run anything.

use operator_core::hash;
use operator_core::keyed::{KEY_LOST, Keys};
use operator_core::plan::EventDraft;
use operator_runtime::source_cache::Content;
use operator_runtime::source_cache::Values;
use testkit::passes::notices;

use super::*;

const VALUE: &str = "hunter2";

fn keys(present: &[u8], former: &[&[u8]]) -> Keys {
    Keys::new(present, former.iter().copied())
}

impl World {
    /// The Secrets as an operator with these keys reads them: variables of the role, and a
    /// service's.
    fn read(&mut self, keys: &Keys, value: &str) {
        let values = [("password".to_owned(), value.as_bytes().to_vec())].into();
        let values = Values::keyed("1", values, keys);
        self.seen.sources.insert(SourceRef::secret(NAMESPACE, "files"), values.digests());
        let content = Content::from(values);
        self.seen.objects.insert(SourceRef::secret(NAMESPACE, "vars"), content);
    }

    /// Everything that others can read of the hosts, their runs and the metadata of their Secrets.
    fn visible(&self) -> String {
        let runs: Vec<&AnsibleEe> = self.seen.runs.iter().map(|it| &**it).collect();
        let nodes: Vec<&Node> = self.seen.nodes.iter().map(|it| &**it).collect();
        let secrets: Vec<&String> =
            self.seen.inventory_secrets.values().map(|it| &it.hash).collect();
        format!("{}{}{}", json!(runs), json!(nodes), json!(secrets))
    }

    /// The prefixes of plain digests of the secret value that others can read.
    fn plain(&self) -> Vec<String> {
        let digest = hash::of_bytes(VALUE);
        let of_object = hash::short(&BTreeMap::from([("password", &digest)]));
        let layout = |file: &str| {
            let group = BTreeMap::from([("password", &digest)]);
            hash::short(&BTreeMap::from([("group", group), (file, BTreeMap::new())]))
        };
        let visible = self.visible();
        let all = [digest.clone(), of_object, layout("n0")];
        all.into_iter().filter(|it| visible.contains(&it[..10])).collect()
    }

    fn touch(&mut self) {
        for node in &mut self.seen.nodes {
            *Arc::make_mut(node).metadata.generation.as_mut().unwrap() += 1;
        }
    }

    fn n_runs(writes: &[String]) -> usize {
        writes.iter().filter(|it| it.starts_with("run")).count()
    }

    /// Runs passes until nothing is written any more; returns what was reported.
    fn told(&mut self) -> Vec<EventDraft> {
        notices(|| self.pass())
    }
}

/// Two hosts with variables from a Secret, and a service with a Secret as data source.
fn world(keys: &Keys) -> World {
    let mut world = World::new();
    let service = Arc::make_mut(world.seen.services.get_mut("run-os").unwrap());
    service.spec.secrets = vec!["files".into()];
    let template = world.template();
    let from = json!([{ "secretRef": { "name": "vars" } }]);
    template.ansible_vars_from = serde_json::from_value(from).unwrap();
    world.read(keys, VALUE);
    world
}

fn deployed(keys: &Keys) -> World {
    let mut world = world(keys);
    world.deploy();
    assert_eq!(world.condition(0, "UpToDate"), is("True", "UpToDate"));
    world
}

#[test]
fn no_plain_digest_of_a_secret_stands_in_a_status_an_annotation_or_a_name() {
    assert_ne!(deployed(&Keys::default()).plain(), [""; 0], "so it was before");
    let mut world = world(&keys(b"key", &[]));
    for _ in 0..2 {
        world.settle();
        assert_eq!(world.plain(), [""; 0]);
        world.finish(&[]);
    }
    world.settle();
    assert_eq!(world.plain(), [""; 0]);
    assert_eq!(world.condition(1, "UpToDate"), is("True", "UpToDate"));
}

#[test]
fn an_upgrade_to_keyed_digests_writes_nothing_and_runs_nothing() {
    let keyed = keys(b"key", &[]);
    let mut world = deployed(&Keys::default());
    world.read(&keyed, VALUE);
    assert_eq!(world.settle(), [""; 0]);
    // A write for another reason replaces them by keyed digests.
    world.touch();
    assert_eq!(world.settle(), ["status DataPlaneNode n0", "status DataPlaneNode n1"]);
    for node in &world.seen.nodes {
        let status = node.status.as_ref().unwrap();
        let inputs = ["Secret files", "ansibleVarsFrom Secret vars"];
        let hashes = status.services.iter().map(|it| &it.hash);
        for text in hashes.chain(inputs.map(|it| &status.deployed_inputs[it])) {
            assert!(text.starts_with('k') && text.contains(':'), "{text}");
        }
    }
    assert_eq!(world.condition(0, "UpToDate"), is("True", "UpToDate"));
    // A changed password is detected before and after.
    let mut before = deployed(&Keys::default());
    for world in [&mut before, &mut world] {
        world.read(&keyed, "another");
        assert_eq!(World::n_runs(&world.settle()), 1);
        world.says(0, "UpToDate", &["Secret files, ansibleVarsFrom Secret vars"]);
    }
}

#[test]
fn an_upgrade_that_leaves_plain_digests_can_be_taken_back_without_a_run() {
    let mut world = deployed(&Keys::default());
    let digests = |world: &World| -> Vec<_> {
        let statuses = world.seen.nodes.iter().map(|it| it.status.clone().unwrap());
        statuses.map(|it| (it.services, it.deployed_inputs)).collect()
    };
    let before = digests(&world);
    for keys in [keys(b"key", &[]).keeping_unkeyed(), Keys::default()] {
        world.read(&keys, VALUE);
        world.touch();
        assert_eq!(world.settle(), ["status DataPlaneNode n0", "status DataPlaneNode n1"]);
        assert_eq!(digests(&world), before);
    }
    // The next upgrade finds the key that the first one created, and may renew the digests.
    world.read(&keys(b"key", &[]), VALUE);
    world.touch();
    assert_eq!(world.settle(), ["status DataPlaneNode n0", "status DataPlaneNode n1"]);
    assert_ne!(digests(&world), before);
    // What is deployed meanwhile has keyed digests, so the earlier release deploys it again.
    let mut world = deployed(&Keys::default());
    world.read(&keys(b"key", &[]).keeping_unkeyed(), "another");
    world.deploy();
    assert!(digests(&world)[0].0.iter().any(|it| it.hash.contains(':')));
    world.read(&Keys::default(), "another");
    assert!(World::n_runs(&world.settle()) > 0);
}

#[test]
fn an_upgrade_in_the_middle_of_a_deployment_goes_on_with_its_runs() {
    let keyed = keys(b"key", &[]);
    for is_queueing in [false, true] {
        for n_before in 0..4 {
            let mut world = world(&Keys::default());
            world.is_queueing = is_queueing;
            let mut n_runs = 0;
            for step in 0..6 {
                if step == n_before {
                    world.read(&keyed, VALUE);
                }
                let writes = world.settle();
                assert!(!writes.iter().any(|it| it.starts_with("delete")), "{writes:?}");
                n_runs += World::n_runs(&writes);
                world.finish(&[]);
            }
            assert_eq!(n_runs, 2, "{n_before}");
            assert_eq!(world.condition(0, "Ready"), is("True", "Ready"));
        }
    }
}

#[test]
fn a_host_that_failed_before_an_upgrade_is_tried_again_when_it_is_due_and_not_for_the_upgrade() {
    let mut world = world(&Keys::default()).at_rest();
    world.finish(&[("n0", "Failed")]).settle();
    world.read(&keys(b"key", &[]), VALUE);
    world.deploy();
    assert_eq!(world.condition(0, "Ready"), is("False", "TaskFailed"));
    assert_eq!(world.condition(1, "Ready"), is("True", "Ready"));
    // The user's correction starts another attempt.
    world.read(&keys(b"key", &[]), "another");
    assert!(World::n_runs(&world.settle()) > 0);
}

#[test]
fn a_rotated_key_runs_nothing_and_the_next_write_has_the_new_one() {
    let (old, new) = (keys(b"old", &[]), keys(b"new", &[b"old"]));
    let mut world = deployed(&old);
    world.read(&new, VALUE);
    assert_eq!(world.told(), []);
    let id = |keys: &Keys| keys.of_bytes(b"").text().split(':').next().unwrap().to_owned();
    world.touch();
    assert_eq!(world.settle().len(), 2);
    let nodes: Vec<&Node> = world.seen.nodes.iter().map(|it| &**it).collect();
    let nodes = json!(nodes).to_string();
    assert!(!nodes.contains(&id(&old)) && nodes.contains(&id(&new)));
}

#[test]
fn a_lost_key_runs_nothing_is_told_once_and_hides_no_change_of_anything_else() {
    let mut world = deployed(&keys(b"lost", &[]));
    world.read(&keys(b"new", &[]), VALUE);
    let told = world.told();
    // One on each host.
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().all(|it| it.warning && it.reason == KEY_LOST), "{told:?}");
    assert!(told[0].note.contains("openstackdataplanenode/n0"), "{}", told[0].note);
    assert_eq!((world.told(), World::n_runs(&world.writes)), (vec![], 0));
    assert_eq!(world.condition(0, "UpToDate"), is("True", "UpToDate"));
    world.writes.clear();
    world.read(&keys(b"new", &[]), "another");
    assert_eq!(World::n_runs(&world.settle()), 1, "from then on changes are seen again");

    let mut world = deployed(&keys(b"lost", &[]));
    world.read(&keys(b"new", &[]), VALUE);
    assert_eq!(World::n_runs(&world.set_var("hello").settle()), 1);
}

#[test]
fn the_values_beside_an_inventory_follow_their_secret_although_the_key_is_lost() {
    let mut world = deployed(&keys(b"lost", &[]));
    world.read(&keys(b"new", &[]), "another");
    assert!(world.settle().contains(&"apply Secret dataplanerole-compute".to_owned()));
}
