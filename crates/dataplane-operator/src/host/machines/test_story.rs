//! A story of hosts whose machines are provisioned, in which the operator crashes before or after any
//! of its writes.

use std::collections::BTreeMap;

use kube::ResourceExt;
use operator_core::plan::Step;
use serde_json::{Value, json};
use testkit::crash::{Death, Died, Life, ends_alike};

use super::test_model::{HOSTS, Provisioner};
use crate::host::machines::Seen;

/// The cluster in which the story is played.
pub(crate) trait Stage: Sized {
    /// Number of chapters of the story.
    const CHAPTERS: usize;

    /// Returns the cluster as it is before the first pass.
    fn begin() -> Self;

    /// Lets users and other operators do what a chapter begins with, once the one before has settled.
    fn story(&mut self, chapter: usize);

    /// Returns the writes of the next pass.
    fn steps(&mut self) -> Vec<Step>;

    /// Makes a write.
    fn make(&mut self, step: &Step);

    /// Checks what must hold after each write for the hosts that were ever requested.
    fn check(&self, requested: &BTreeMap<String, u32>, step: &Step);

    /// Ends what is at work on the hosts, and returns whether there was anything.
    fn end_runs(&mut self) -> bool;

    /// Returns what is observed of the machines.
    fn machines(&mut self) -> &mut Seen;

    /// Returns what must be the same at the end of each chapter, wherever the operator crashed, beside
    /// the machines.
    fn state(&self) -> Value;
}

/// A cluster in which other operators act on what was written.
struct Play<S> {
    stage: S,
    provisioner: Provisioner,
    life: Life,
    /// How often each host was requested.
    requested: BTreeMap<String, u32>,
}

impl<S: Stage> Play<S> {
    fn hosts(&mut self) -> Vec<String> {
        self.stage.machines().hosts().into_iter().map(str::to_owned).collect()
    }

    /// Runs one pass, and returns whether it has written anything.
    fn pass(&mut self) -> Result<bool, Died> {
        let steps = self.stage.steps();
        for step in &steps {
            let before = self.hosts();
            let died = self.life.call(|| self.stage.make(step));
            for host in self.hosts().into_iter().filter(|it| !before.contains(it)) {
                *self.requested.entry(host).or_default() += 1;
            }
            self.stage.check(&self.requested, step);
            died?;
        }
        Ok(!steps.is_empty())
    }

    /// Lets the other operators take one step, and returns whether there was any.
    fn others(&mut self) -> bool {
        let machines = self.stage.machines();
        let has_acted = self.provisioner.act(machines);
        for (host, address) in HOSTS {
            let told = machines.set.as_ref().and_then(|it| it.host_status(host));
            if told.is_some_and(|it| it.provisioning_state == "active") {
                machines.answer(address);
            }
        }
        self.stage.end_runs() || has_acted
    }

    /// Runs passes and the other operators until nothing changes any more.
    fn rest(&mut self) -> Result<(), Died> {
        for _ in 0..100 {
            if !self.pass()? && !self.others() {
                return Ok(());
            }
        }
        panic!("no end: {}", self.end());
    }

    fn end(&mut self) -> Value {
        let mut end = self.stage.state();
        let set = self.stage.machines().set.as_ref();
        end["set"] = json!(set.map(|it| json!([it.spec, it.finalizers(), it.labels()])));
        end["requested"] = json!(self.requested);
        end["did"] = json!(self.provisioner.did);
        end
    }
}

/// Plays the story with one crash, after which the others act and another operator starts. Returns
/// the ends of its chapters and the number of writes.
fn ends<S: Stage>(death: Option<Death>) -> (Vec<Value>, usize) {
    let life = Life { death, ..Life::default() };
    let (stage, provisioner, requested) = (S::begin(), Provisioner::default(), BTreeMap::new());
    let mut play = Play { stage, provisioner, life, requested };
    let mut ends = Vec::new();
    for chapter in 0..S::CHAPTERS {
        play.stage.story(chapter);
        while play.rest().is_err() {
            play.life.death = None;
            play.others();
        }
        ends.push(play.end());
    }
    (ends, play.life.n_calls)
}

/// Plays the story, which has at least so many writes, without a crash and with each one: all end
/// alike, and each host gets one machine, which is given back. Returns the ends of its chapters.
pub(crate) fn play<S: Stage>(least_calls: usize) -> Vec<Value> {
    let (expected, n_calls) = ends::<S>(None);
    assert!(n_calls > least_calls, "{n_calls}");
    let last = expected.last().unwrap();
    assert_eq!((&last["set"], &last["requested"]), (&Value::Null, &json!({ "n0": 1, "n1": 1 })));
    let once =
        json!({ "deployed n0": 1, "deployed n1": 1, "given back n0": 1, "given back n1": 1 });
    assert_eq!(last["did"], once);
    ends_alike(&expected, n_calls, |it| ends::<S>(Some(it)).0);
    expected
}

/// Returns the hosts for which machines are requested at the end of a chapter.
pub(crate) fn hosts(end: &Value) -> Vec<&str> {
    end["set"][0]["baremetalHosts"].as_object().unwrap().keys().map(String::as_str).collect()
}
