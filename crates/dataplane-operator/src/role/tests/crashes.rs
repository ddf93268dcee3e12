//! The operator dies before and after each of its writes about machines: no host is requested
//! twice, none loses a machine that its node needs, and the final state is the same.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use testkit::crash::{Death, Died, Life, ends_alike};

use super::machines::OTHER;
use super::*;
use crate::host::machines::set::IN_USE;
use crate::host::machines::test_model::Provisioner;

/// The number of chapters of the story.
const CHAPTERS: usize = 5;

/// A cluster in which other actors react to what was written.
struct Play {
    world: World,
    provisioner: Provisioner,
    life: Life,
    /// How often each host was requested.
    asked: BTreeMap<String, u32>,
}

impl Play {
    fn new(death: Option<Death>) -> Self {
        let mut world = World::bare();
        for node in ["n0", "n1"] {
            world.finalize(node, &[]);
        }
        world.change("DataPlaneRole", "compute", |it| it.finalizers = None);
        let life = Life { death, ..Life::default() };
        Self { world, provisioner: Provisioner::default(), life, asked: BTreeMap::new() }
    }

    /// The actions of users and other operators, in chapters; each begins when the one before has
    /// settled.
    fn story(&mut self, chapter: usize) {
        let at = Time(self.world.now);
        match chapter {
            0 => {}
            1 => {
                self.world.finalize("n1", &[INVENTORY_FINALIZER, OTHER]);
                self.world.remove("n1");
            }
            2 => {
                self.world.finalize("n1", &[INVENTORY_FINALIZER]);
            }
            3 => self.world.change("DataPlaneRole", "compute", |it| {
                it.deletion_timestamp = Some(at);
            }),
            _ => {
                self.world.remove("n0");
            }
        }
    }

    fn pass(&mut self) -> Result<(), Died> {
        if self.world.seen.role.is_none() && self.world.seen.nodes.is_empty() {
            return Ok(());
        }
        let plan = recorded(decide::decide(&self.world.seen, None, self.world.now));
        for step in plan.all() {
            let before = self.hosts();
            let died = self.life.call(|| self.world.take(std::slice::from_ref(step)));
            for host in self.hosts().into_iter().filter(|it| !before.contains(it)) {
                *self.asked.entry(host).or_default() += 1;
            }
            self.check(step);
            died?;
        }
        Ok(())
    }

    fn hosts(&self) -> Vec<String> {
        self.world.seen.machines.hosts().into_iter().map(str::to_owned).collect()
    }

    /// Checks the invariants after each write.
    fn check(&self, step: &Step) {
        let hosts = self.hosts();
        let (seen, title) =
            (&self.world.seen, || format!("{:?} of {}", step.write, step.target.name));
        for name in self.asked.keys() {
            let node = seen.nodes.iter().find(|it| it.name_any() == *name);
            let is_needed = node.is_some_and(|it| {
                let is_others = it.finalizers().iter().any(|it| it == OTHER);
                it.metadata.deletion_timestamp.is_none() || is_others
            });
            let has = hosts.contains(name);
            let is_of = |it: &AnsibleEe| it.spec.hosts[0].name == *name && !is_open(it);
            let was_looked_at = seen.looks.iter().any(|it| is_of(it));
            assert!(has || was_looked_at, "{name} may have had guests at {}", title());
            assert!(has || !is_needed, "{name} was left out by {}", title());
            let set = seen.machines.set.as_ref().and_then(|it| it.status.as_ref());
            let is_known = has || set.is_some_and(|it| it.baremetal_hosts.contains_key(name));
            assert!(!is_known || node.is_some(), "{name} went before its machine by {}", title());
        }
        assert!(
            seen.machines.set.is_none() || seen.role.is_some(),
            "the role went first by {}",
            title()
        );
    }

    /// Lets the other actors do their next step; returns whether there was one.
    fn others(&mut self) -> bool {
        let mut has_acted = self.provisioner.act(&mut self.world.seen.machines);
        for (host, address) in [("n0", "192.0.2.10"), ("n1", "192.0.2.11")] {
            let told = self.world.seen.machines.set.as_ref().and_then(|it| it.host_status(host));
            if told.is_some_and(|it| it.provisioning_state == "active") {
                self.world.seen.machines.answer(address);
            }
        }
        if self.world.seen.runs.iter().any(|it| is_open(it)) {
            self.world.finish(&[]);
            has_acted = true;
        }
        self.world.end_looks() || has_acted
    }

    /// Runs passes and the other actors' steps until nothing happens any more.
    fn rest(&mut self) -> Result<(), Died> {
        for _ in 0..100 {
            let before = self.world.writes.len();
            self.pass()?;
            if self.world.writes.len() == before && !self.others() {
                return Ok(());
            }
        }
        panic!("no end: {:?}", self.world.writes);
    }

    /// The state that must be the same at the end of each chapter, wherever the operator died.
    fn end(&self) -> Value {
        let seen = &self.world.seen;
        let set = seen.machines.set.as_ref();
        let nodes = seen.nodes.iter();
        let mut runs: Vec<_> = self.world.writes.iter().collect();
        runs.retain(|it| it.starts_with("run") && !it.starts_with("run last-look"));
        json!({
            "set": set.map(|it| json!([it.spec, it.finalizers(), it.labels()])),
            "nodes": nodes.map(|it| json!([it.name_any(), it.status, it.finalizers()]))
                .collect::<Vec<_>>(),
            "role": seen.role.as_ref().map(|it| json!([it.status, it.finalizers()])),
            "inventories": seen.inventories.keys().collect::<Vec<_>>(),
            "runs": runs,
            "asked": self.asked,
            "did": self.provisioner.did,
        })
    }
}

/// Plays the story with one death, after which the other actors go on and another operator starts.
///
/// Returns the states at the ends of the chapters, and the number of calls.
fn ends(death: Option<Death>) -> (Vec<Value>, usize) {
    let mut play = Play::new(death);
    let mut ends = Vec::new();
    for chapter in 0..CHAPTERS {
        play.story(chapter);
        while play.rest().is_err() {
            play.life.death = None;
            play.others();
        }
        ends.push(play.end());
    }
    (ends, play.life.n_calls)
}

#[test]
fn wherever_the_operator_dies_each_node_gets_one_machine_and_keeps_it_as_long_as_it_needs_it() {
    let (expected, n_calls) = ends(None);
    let hosts = |chapter: usize| {
        let hosts = expected[chapter]["set"][0]["baremetalHosts"].as_object();
        hosts.map(|it| it.keys().cloned().collect::<Vec<_>>())
    };
    assert_eq!(hosts(0).unwrap(), ["n0", "n1"]);
    assert_eq!(expected[0]["runs"], json!(["run install-os on n0,n1", "run run-os on n0,n1"]));
    assert_eq!(expected[0]["set"][1], json!([IN_USE]));
    assert_eq!(hosts(1).unwrap(), ["n0", "n1"]);
    assert_eq!((hosts(2).unwrap(), hosts(3).unwrap()), (vec!["n0".into()], vec!["n0".into()]));
    let last = &expected[CHAPTERS - 1];
    assert_eq!(
        (&last["set"], &last["nodes"], &last["role"]),
        (&Value::Null, &json!([]), &Value::Null)
    );
    assert_eq!(last["inventories"], json!([]));
    assert_eq!(last["runs"], expected[0]["runs"]);
    assert_eq!(last["asked"], json!({ "n0": 1, "n1": 1 }));
    let once =
        json!({ "deployed n0": 1, "deployed n1": 1, "given back n0": 1, "given back n1": 1 });
    assert_eq!(last["did"], once);
    assert!(n_calls > 20, "{n_calls}");
    ends_alike(&expected, n_calls, |it| ends(Some(it)).0);
}
