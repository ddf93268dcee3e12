//! Digests of Secret contents: keyed everywhere; an upgrade or a lost key runs nothing.

use operator_core::hash;
use operator_core::keyed::KEY_LOST;
use operator_core::plan::EventDraft;
use testkit::passes::notices;

use super::*;

const PASSWORD: &str = "keystone-password";
const URL: &str = "rabbit://nova:bus-password@192.0.2.2/v";

fn keys(present: &[u8], former: &[&[u8]]) -> Keys {
    Keys::new(present, former.iter().copied())
}

impl World {
    /// The Secrets as an operator with these keys reads them.
    fn keyed(mut self, keys: &Keys) -> Self {
        self.read(keys, PASSWORD);
        self
    }

    fn read(&mut self, keys: &Keys, password: &str) {
        let content = |key: &str, text: &str| {
            let values = [(key.to_owned(), text.as_bytes().to_vec())].into();
            Some(Content::from(Values::keyed("1", values, keys)))
        };
        self.seen.keys = keys.clone();
        self.seen.cell_secret = content("ServicePassword", password);
        self.seen.message_bus = content("transport_url", URL);
    }

    /// Everything that other users can read of the compute, its runs and the metadata of its
    /// Secret.
    fn visible(&self) -> String {
        let rendered = self.seen.rendered.as_ref().unwrap();
        let runs: Vec<&AnsibleEe> = self.seen.runs.iter().map(|it| &**it).collect();
        format!(
            "{}{}{}",
            json!(*self.seen.compute),
            json!(runs),
            json!([rendered.hash, rendered.files])
        )
    }

    /// Prefixes of plain digests of secrets that others could read.
    fn plain(&self) -> Vec<String> {
        let mut digests = Vec::new();
        for value in [PASSWORD, URL] {
            digests.push(hash::of_bytes(value));
            digests.push(hash::short(&hash::of_bytes(value)));
        }
        digests.extend(
            self.files
                .iter()
                .filter(|it| it.0.ends_with("nova.conf"))
                .map(|it| hash::of_bytes(it.1)),
        );
        let visible = self.visible();
        digests.into_iter().filter(|it| visible.contains(&it[..10])).collect()
    }

    /// The hashes of services and inputs as a release without keys writes them.
    fn is_plain(&self) -> bool {
        let status = self.seen.compute.status.as_ref().unwrap();
        let hashes =
            status.services.iter().flat_map(|it| [Some(&it.hash), it.deployed_hash.as_ref()]);
        let hashes =
            hashes.flatten().chain(status.deployed_inputs.values()).chain(status.hash.values());
        !self.plain().is_empty() && hashes.into_iter().all(|it| !it.contains(':'))
    }

    /// A write of the status for another reason.
    fn touch(&mut self) {
        *self.compute().metadata.generation.as_mut().unwrap() += 1;
    }

    /// Reconciles until nothing is written; returns the Events.
    fn told(&mut self) -> Vec<EventDraft> {
        notices(|| self.pass())
    }
}

#[test]
fn no_plain_digest_of_a_secret_stands_in_a_status_an_annotation_or_a_name() {
    assert_ne!(World::deployed().plain(), [""; 0], "so it was before");
    let mut world = World::new().keyed(&keys(b"key", &[]));
    for _ in 0..3 {
        world.settle();
        assert_eq!(world.plain(), [""; 0]);
        world.end("Ok");
    }
    world.settle();
    assert_eq!(world.plain(), [""; 0]);
    assert_eq!(world.reason("UpToDate"), "UpToDate");
}

#[test]
fn an_upgrade_to_keyed_digests_writes_nothing_and_runs_nothing() {
    let mut world = World::deployed().keyed(&keys(b"key", &[]));
    assert!(world.is_plain());
    assert_eq!(world.settle(), [""; 0]);
    // The next write for another reason has them keyed.
    world.touch();
    assert_eq!(world.settle(), ["files", "status"]);
    assert_eq!(world.plain(), [""; 0]);
    assert_eq!((world.n_runs(), world.reason("UpToDate")), (0, "UpToDate".to_owned()));
    // A changed password is noticed before and after.
    for mut world in [world, World::deployed()] {
        world.read(&keys(b"key", &[]), "another");
        assert!(world.settle().contains(&"run nova".to_owned()));
        assert!(world.condition("UpToDate").message.contains("Secret nova-cell1 ServicePassword"));
    }
}

#[test]
fn an_upgrade_that_leaves_plain_digests_can_be_taken_back_without_a_run() {
    let mut world = World::deployed();
    let digests = |world: &World| {
        let status = world.seen.compute.status.clone().unwrap();
        (status.services, status.deployed_inputs, status.hash)
    };
    let before = digests(&world);
    for keys in [keys(b"key", &[]).keeping_unkeyed(), Keys::default()] {
        world = world.keyed(&keys);
        // The digests of the files are no inputs: new files have keyed digests.
        world.seen.rendered = None;
        world.touch();
        assert_eq!(world.settle(), ["files", "status"]);
        assert_eq!((digests(&world), world.n_runs()), (before.clone(), 0));
    }
    let mut world = world.keyed(&keys(b"key", &[]).keeping_unkeyed());
    world.touch();
    assert_eq!(world.settle(), ["status"], "plain files stay too");
    // The next upgrade finds the key of the first one, and may renew them.
    let mut world = world.keyed(&keys(b"key", &[]));
    world.touch();
    assert_eq!(world.settle(), ["files", "status"]);
    assert_eq!((digests(&world) == before, world.n_runs()), (false, 0));
}

#[test]
fn an_upgrade_in_the_middle_of_a_deployment_goes_on_with_its_runs() {
    let keyed = keys(b"key", &[]);
    for n_before in 0..8 {
        for result in ["Ok", "Failed"] {
            let mut world = World::new();
            let mut n_steps = 0;
            // Ends of runs and reconciliations alternate; the upgrade follows after so many of
            // them.
            for _ in 0..4 {
                for is_end in [false, true] {
                    if n_steps == n_before {
                        world = world.keyed(&keyed);
                        let n_runs = world.n_runs();
                        let has_open = world.seen.runs.iter().any(is_open);
                        world.settle();
                        assert!(!has_open || world.n_runs() == n_runs, "{:?}", world.writes);
                    }
                    n_steps += 1;
                    if is_end && world.seen.runs.iter().any(is_open) {
                        world.end(if n_steps == n_before { result } else { "Ok" });
                    } else {
                        world.settle();
                    }
                }
            }
            if result == "Ok" {
                assert_eq!(
                    (world.n_runs(), world.reason("Ready")),
                    (3, "Ready".into()),
                    "{n_before}"
                );
            } else {
                // Each service has run at most once: a failed one waits for the user.
                assert!(world.n_runs() <= 3, "{:?}", world.writes);
            }
        }
    }
}

#[test]
fn a_rotated_key_runs_nothing_and_the_next_write_has_the_new_one() {
    let (old, new) = (keys(b"old", &[]), keys(b"new", &[b"old"]));
    let mut world = World::new().keyed(&old).deploy().keyed(&new);
    assert_eq!(world.told(), []);
    let id = |keys: &Keys| keys.of_bytes(b"").text().split(':').next().unwrap().to_owned();
    assert!(world.visible().contains(&id(&old)) && !world.visible().contains(&id(&new)));
    world.touch();
    world.seen.runs.clear();
    assert_eq!(world.settle(), ["files", "status"]);
    assert!(!world.visible().contains(&id(&old)) && world.visible().contains(&id(&new)));
    // The old key is not needed any more.
    let mut world = world.keyed(&keys(b"new", &[]));
    assert_eq!((world.settle(), world.n_runs()), (vec![], 0));
}

#[test]
fn a_lost_key_runs_nothing_and_is_told_once() {
    let mut world = World::new().keyed(&keys(b"lost", &[])).deploy();
    world.read(&keys(b"new", &[]), PASSWORD);
    let told = world.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((told[0].warning, told[0].reason.as_str()), (true, KEY_LOST));
    assert!(told[0].note.contains("novaexternalcompute/n0"), "{}", told[0].note);
    assert_eq!(world.told(), []);
    assert_eq!((world.n_runs(), world.reason("UpToDate")), (0, "UpToDate".to_owned()));
    // From then on changes are noticed again.
    world.read(&keys(b"new", &[]), "another");
    assert!(world.settle().contains(&"run nova".to_owned()));
}

#[test]
fn a_lost_key_hides_no_change_of_anything_else() {
    let mut world = World::new().keyed(&keys(b"lost", &[])).deploy();
    world.read(&keys(b"new", &[]), PASSWORD);
    world.configure(Some("[libvirt]\ncpu_mode = host-model\n"));
    assert!(world.settle().contains(&"run nova".to_owned()));
    assert!(world.condition("UpToDate").message.contains("customServiceConfig"));
}
