//! Digests of Secret content: keyed wherever neighbours do not compare them, and an upgrade or a lost
//! key makes nothing out of date.

use operator_core::hash;
use operator_core::keyed::{KEY_LOST, Keys};
use operator_core::plan::EventDraft;
use testkit::passes::notices;

use super::*;

const VALUE: &str = "hunter2";

fn keys(present: &[u8], former: &[&[u8]]) -> Keys {
    Keys::new(present, former.iter().copied())
}

impl World {
    /// The Secrets as an operator with these keys reads them: variables, and a service's.
    fn read(&mut self, keys: &Keys, value: &str) -> &mut Self {
        let values = [("password".to_owned(), value.as_bytes().to_vec())].into();
        let values = Values::keyed("1", values, keys);
        let secret = SourceRef::secret(NAMESPACE, "web-secret");
        self.seen.sources.insert(secret, values.digests());
        let content = Content::from(values);
        self.seen.objects.insert(SourceRef::secret(NAMESPACE, "vars"), content);
        self.seen.keys = keys.clone();
        self
    }

    /// Returns the digest that a deployment would record of the service's Secret now.
    fn published(&self) -> String {
        self.seen.sources[&SourceRef::secret(NAMESPACE, "web-secret")].published.text()
    }

    fn begin(&mut self) {
        let hosts = ["n0", "n1"].map(|it| (it, 2, "Succeeded"));
        self.deploy("d", &json!({}), &hosts);
    }

    fn finish(&mut self) -> &mut Self {
        let published = self.published();
        self.end("d", true, ["c1", &published])
    }

    /// Returns the prefixes of plain digests of the secret value that the status discloses, besides
    /// `secretHashes`.
    fn plain(&self) -> Vec<String> {
        let mut status = self.seen.set.status.clone();
        status.as_mut().unwrap().secret_hashes.clear();
        let visible = json!([status, self.seen.inventory.as_ref().unwrap().hash]).to_string();
        let digest = hash::of_bytes(VALUE);
        let of_object = hash::short(&BTreeMap::from([("password", &digest)]));
        let data = [("password".to_owned(), ByteString(VALUE.into()))].into();
        let published = operator_core::upstream_hash::of_secret(&data, "Opaque");
        let all = [digest, of_object, published];
        all.into_iter().filter(|it| visible.contains(&it[..10])).collect()
    }

    fn touch(&mut self) -> &mut Self {
        *Arc::make_mut(&mut self.seen.set).metadata.generation.as_mut().unwrap() += 1;
        self
    }

    /// Runs passes until nothing is written any more, and returns the Events.
    fn told(&mut self) -> Vec<EventDraft> {
        notices(|| self.pass())
    }
}

/// A node set with variables from a Secret, and a service with a Secret.
fn world(keys: &Keys) -> World {
    let mut world = World::new();
    let from = json!({ "ansibleVarsFrom": [{ "secretRef": { "name": "vars" } }] });
    world.edit("/nodeTemplate/ansible", from).read(keys, VALUE).settle();
    world
}

fn deployed(keys: &Keys) -> World {
    let mut world = world(keys);
    world.begin();
    world.finish().settle();
    assert_eq!(world.condition("UpToDate"), is("True", "UpToDate"));
    world
}

#[test]
fn no_plain_digest_of_a_secret_stands_in_a_status_or_an_annotation() {
    assert_ne!(deployed(&Keys::default()).plain(), [""; 0], "so it was before");
    assert_eq!(deployed(&keys(b"key", &[])).plain(), [""; 0]);
}

#[test]
fn an_upgrade_to_keyed_digests_writes_nothing_and_makes_nothing_out_of_date() {
    let mut world = deployed(&Keys::default());
    world.read(&keys(b"key", &[]), VALUE);
    assert_eq!((world.settle(), &world.node_writes), (Vec::new(), &Vec::new()));
    // A write for another reason stores the digests keyed.
    assert_eq!(world.touch().settle(), ["status NodeSet compute"]);
    assert_eq!(world.condition("UpToDate"), is("True", "UpToDate"));
    let status = world.seen.set.status.clone().unwrap();
    let vars = &status.deployed_inputs["ansibleVarsFrom Secret vars"];
    let deployed = status.deployed_config_hash.as_ref().unwrap();
    let host = world.node("n0").deployed_config_hash.as_ref().unwrap();
    for text in [&world.hash(), deployed, host, vars] {
        assert!(text.starts_with('k') && text.contains(':'), "{text}");
    }
    assert_eq!(status.deployed_inputs, status.inputs);
    // Another deployment of one of the two hosts completes it again.
    world.read(&keys(b"key", &[]), "another").settle();
    assert_eq!(world.condition("UpToDate"), is("False", "InputsChanged"));
    world.says("UpToDate", &["ansibleVarsFrom Secret vars, Secret web-secret of service web"]);
}

#[test]
fn an_upgrade_in_the_middle_of_a_deployment_leaves_what_it_began_with() {
    for is_renewed in [false, true] {
        let mut world = world(&Keys::default());
        world.begin();
        let plain = world.hash();
        if is_renewed {
            // It began with what its cache had while the node set was written.
            let begun = std::mem::take(&mut world.seen.deployments);
            world.read(&keys(b"key", &[]), VALUE).touch().settle();
            assert_ne!(world.hash(), plain);
            world.seen.deployments = begun;
        }
        world.read(&keys(b"key", &[]), VALUE).touch().settle();
        assert_eq!(world.hash() == plain, !is_renewed);
        world.finish().settle();
        assert_eq!(world.condition("UpToDate"), is("True", "UpToDate"));
        let status = world.seen.set.status.as_ref().unwrap();
        assert_eq!(status.deployed_inputs, status.inputs, "{is_renewed}");
        assert_eq!(status.deployed_config_hash, status.config_hash);
        assert_eq!(world.settle(), [""; 0]);
    }
}

#[test]
fn a_deployment_of_the_other_host_after_an_upgrade_makes_the_node_set_whole() {
    let mut world = world(&Keys::default());
    world.deploy("a", &json!({ "ansibleLimit": "n0" }), &[("n0", 2, "Succeeded")]);
    world.end("a", true, ["c1", "s1"]).settle();
    world.read(&keys(b"key", &[]), VALUE).touch().settle();
    world.deploy("b", &json!({ "ansibleLimit": "n1" }), &[("n1", 2, "Succeeded")]);
    world.end("b", true, ["c1", "s1"]).settle();
    let status = world.seen.set.status.as_ref().unwrap();
    assert_eq!(status.deployed_config_hash, status.config_hash);
    assert!(status.deployed_config_hash.is_some());
}

#[test]
fn a_lost_key_makes_nothing_out_of_date_and_is_told_once() {
    let mut world = deployed(&keys(b"lost", &[]));
    world.read(&keys(b"new", &[]), VALUE);
    let told = world.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((told[0].warning, told[0].reason.as_str()), (true, KEY_LOST));
    assert_eq!(world.told(), []);
    assert_eq!(world.condition("UpToDate"), is("True", "UpToDate"));
    // From then on changes are detected again; those of all other inputs were detected meanwhile.
    world.read(&keys(b"new", &[]), "another").settle();
    assert_eq!(world.condition("UpToDate"), is("False", "InputsChanged"));
    let mut world = deployed(&keys(b"lost", &[]));
    world.read(&keys(b"new", &[]), VALUE);
    world.edit("/env", json!([{ "name": "A", "value": "b" }])).settle();
    assert_eq!(world.condition("UpToDate"), is("False", "InputsChanged"));
    world.says("UpToDate", &["env"]);
}

#[test]
fn the_inventory_follows_its_secret_although_the_key_is_lost() {
    let mut world = deployed(&keys(b"lost", &[]));
    let writes = world.read(&keys(b"new", &[]), "another").settle();
    assert!(writes.iter().any(|it| it == &format!("apply Secret {SECRET}")), "{writes:?}");
    assert!(world.content["inventory"].contains("another"));
}

/// What lib-common's `AreSecretHashesInSync` returns for the node set with the Secrets as they are.
fn is_in_sync(world: &World) -> bool {
    let hashes = &world.seen.set.status.as_ref().unwrap().secret_hashes;
    let present = |name: &str| world.seen.sources.get(&SourceRef::secret(NAMESPACE, name));
    hashes.iter().all(|(name, text)| present(name).is_some_and(|it| it.published.text() == *text))
}

#[test]
fn neighbours_find_the_hashes_in_sync_after_a_deployment_and_not_from_a_change_to_the_next_one() {
    let mut world = deployed(&keys(b"key", &[]));
    let hashes = world.seen.set.status.as_ref().unwrap().secret_hashes.clone();
    let data = [("password".to_owned(), ByteString(VALUE.into()))].into();
    assert_eq!(hashes["web-secret"], operator_core::upstream_hash::of_secret(&data, "Opaque"));
    assert!(is_in_sync(&world));
    world.read(&keys(b"key", &[]), "another").settle();
    assert!(!is_in_sync(&world), "the hosts have the former one");
    let hosts = ["n0", "n1"].map(|it| (it, 2, "Succeeded"));
    world.deploy("e", &json!({}), &hosts);
    let published = world.published();
    world.end("e", true, ["c1", &published]).settle();
    assert!(is_in_sync(&world));
}

#[test]
fn a_keyed_hash_of_a_release_before_becomes_the_one_that_neighbours_compare_if_nothing_changed() {
    for (key, value, is_same) in
        [(b"key", VALUE, true), (b"key", "another", false), (b"new", VALUE, false)]
    {
        let mut world = deployed(&keys(b"key", &[]));
        let data = [("password".to_owned(), ByteString(VALUE.into()))].into();
        let of_before =
            operator_core::upstream_hash::of_secret_by(&keys(b"key", &[]), &data, "Opaque");
        let status = Arc::make_mut(&mut world.seen.set).status.as_mut().unwrap();
        status.secret_hashes.insert("web-secret".to_owned(), of_before.text());
        let writes = world.read(&keys(key, &[]), value).settle();
        assert_eq!(is_in_sync(&world), is_same, "{value}");
        let text = &world.seen.set.status.as_ref().unwrap().secret_hashes["web-secret"];
        assert_eq!(*text == of_before.text(), !is_same);
        assert!(!writes.iter().any(|it| it.contains("AnsibleEE")), "{writes:?}");
    }
}

#[test]
fn the_hash_of_a_secret_that_is_gone_is_dropped_and_holds_nothing_of_neighbours() {
    let mut world = deployed(&keys(b"key", &[]));
    world.seen.sources.remove(&SourceRef::secret(NAMESPACE, "web-secret"));
    world.settle();
    assert_eq!(world.seen.set.status.as_ref().unwrap().secret_hashes.len(), 0);
    assert!(is_in_sync(&world));
}
