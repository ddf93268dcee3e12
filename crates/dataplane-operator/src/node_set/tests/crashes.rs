//! The operator crashes before and after each of its writes for a node set's machines: no host is
//! requested twice, none loses its machine while it is needed, nothing stays deployed on one that was
//! installed anew, and the result is the same.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use testkit::crash::{Death, Died, Life, ends_alike};

use super::*;
use crate::host::machines::set::IN_USE;
use crate::host::machines::test_model::Provisioner;

/// Number of chapters of the story.
const CHAPTERS: usize = 6;
/// Each host with its address.
const HOSTS: [(&str, &str); 2] = [("n0", "192.0.2.10"), ("n1", "192.0.2.11")];

/// A simulation in which other operators act on what was written.
struct Play {
    world: World,
    provisioner: Provisioner,
    life: Life,
    /// How often each host was requested.
    asked: BTreeMap<String, u32>,
}

impl Play {
    fn new(death: Option<Death>) -> Self {
        let life = Life { death, ..Life::default() };
        let (world, provisioner) = (World::bare_metal(), Provisioner::default());
        Self { world, provisioner, life, asked: BTreeMap::new() }
    }

    /// Runs one chapter of what users and other operators do. Each begins when the one before has
    /// settled.
    fn story(&mut self, chapter: usize) {
        let world = &mut self.world;
        match chapter {
            0 => {}
            1 => {
                world.deploy("d", &json!({}), &[("n0", 1, "Running"), ("n1", 1, "Running")]);
            }
            2 => {
                world.edit("/nodes", json!({ "n0": { "ansible": { "ansibleHost": HOSTS[0].1 } } }));
            }
            3 => {
                world.end("d", true, ["c1", "s1"]);
            }
            4 => {
                world.now += SignedDuration::from_hours(1);
                let again = json!({ "provisioningState": "active", "instance": "i-2" });
                world.seen.machines.say("n0", &again);
            }
            _ => {
                let at = Some(Time(world.now));
                Arc::make_mut(&mut world.seen.set).metadata.deletion_timestamp = at;
            }
        }
    }

    fn is_gone(&self) -> bool {
        let set = &self.world.seen.set;
        set.metadata.deletion_timestamp.is_some() && set.finalizers().is_empty()
    }

    fn pass(&mut self) -> Result<(), Died> {
        if self.is_gone() {
            return Ok(());
        }
        let plan = self.world.plan();
        for step in std::mem::take(&mut self.world.node_steps) {
            self.life.call(|| self.world.take_node(&step))?;
        }
        for step in plan.all() {
            let before = self.hosts();
            let died = self.life.call(|| self.world.take(step));
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
        let (seen, hosts) = (&self.world.seen, self.hosts());
        let title = || format!("{:?} of {}", step.write, step.target.name);
        let is_busy = seen.is_in_use();
        let is_deleted = seen.set.metadata.deletion_timestamp.is_some();
        for name in self.asked.keys() {
            let is_needed = is_busy || !is_deleted && seen.set.spec.nodes.contains_key(name);
            assert!(hosts.contains(name) || !is_needed, "{name} was left out by {}", title());
        }
        let is_last = seen.machines.set.is_none();
        assert!(is_last || !self.is_gone(), "the node set went before its machines by {}", title());
    }

    /// Lets the other operators take one step, and returns whether there was any.
    fn others(&mut self) -> bool {
        let machines = &mut self.world.seen.machines;
        let has_acted = self.provisioner.act(machines);
        for (host, address) in HOSTS {
            let told = machines.set.as_ref().and_then(|it| it.host_status(host));
            if told.is_some_and(|it| it.provisioning_state == "active") {
                machines.answer(address);
            }
        }
        self.world.end_looks() || has_acted
    }

    /// Runs passes and the other operators until nothing changes any more.
    fn rest(&mut self) -> Result<(), Died> {
        for _ in 0..100 {
            let n_writes = |world: &World| world.writes.len() + world.node_writes.len();
            let before = n_writes(&self.world);
            self.pass()?;
            if n_writes(&self.world) == before && !self.others() {
                return Ok(());
            }
        }
        panic!("no end: {:?}", self.world.writes);
    }

    /// Returns what must be the same at the end of each chapter, wherever the operator crashed.
    fn end(&self) -> Value {
        let seen = &self.world.seen;
        let set = seen.machines.set.as_ref();
        json!({
            "set": set.map(|it| json!([it.spec, it.finalizers(), it.labels()])),
            "status": (!self.is_gone()).then_some(&seen.set.status),
            "nodes": seen.nodes.all().map(|(_, it)| json!(it.status)).collect::<Vec<_>>(),
            "held": seen.set.finalizers(),
            "inventory": seen.inventory.as_ref().map(|it| &it.hash),
            "asked": self.asked,
            "did": self.provisioner.did,
        })
    }
}

/// Plays the story with one crash, after which the others act and another operator starts. Returns
/// the results of its chapters and the number of writes.
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
fn wherever_the_operator_dies_each_host_gets_one_machine_and_keeps_it_as_long_as_it_is_needed() {
    let (expected, n_calls) = ends(None);
    let hosts = |chapter: usize| {
        let hosts = expected[chapter]["set"][0]["baremetalHosts"].as_object();
        hosts.map(|it| it.keys().cloned().collect::<Vec<_>>())
    };
    for (chapter, end) in expected.iter().enumerate().take(3) {
        assert_eq!(hosts(chapter).unwrap(), ["n0", "n1"]);
        assert_eq!(end["set"][1], json!([IN_USE]));
    }
    let ready =
        |chapter: usize, host: &str| expected[chapter]["status"]["machines"][host]["ready"].clone();
    assert_eq!((ready(0, "n0"), ready(0, "n1")), (json!(true), json!(true)));
    assert_eq!(hosts(3).unwrap(), ["n0"]);
    let left = |chapter: usize| {
        let node = &expected[chapter]["nodes"][0];
        ["deployed", "deployedConfigHash", "deployment", "services"].map(|it| !node[it].is_null())
    };
    assert_eq!((left(3), left(4)), ([true; 4], [false; 4]), "it was installed anew");
    let last = &expected[CHAPTERS - 1];
    assert_eq!((&last["set"], &last["held"]), (&Value::Null, &json!([])));
    assert_eq!(last["inventory"], Value::Null);
    assert_eq!(last["asked"], json!({ "n0": 1, "n1": 1 }));
    let once =
        json!({ "deployed n0": 1, "deployed n1": 1, "given back n0": 1, "given back n1": 1 });
    assert_eq!(last["did"], once);
    assert!(n_calls > 10, "{n_calls}");
    ends_alike(&expected, n_calls, |it| ends(Some(it)).0);
}
