//! A leader of the simulation: what its informers have delivered, and what it does with it.

use std::collections::{BTreeMap, BTreeSet};

use api::ansibleee::AnsibleEe;
use futures::executor::block_on;
use kube::ResourceExt;
use operator_core::object_key::Key;
use operator_core::plan::{Plan, Step};
use operator_runtime::cache::WriteThrough;
use operator_runtime::cache_registry::CacheRegistry;
use operator_runtime::controller::Controller;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Dice;
use super::world::{Id, World};
use crate::objects::{Job, Pod};
use crate::run::decide::{Observed, Stage, current_job, decide, recorded_uid, stage};
use crate::run::observe::Caches;
use crate::run::scheduler::{self, Logged, Scheduler, Verdicts};
use crate::run::settings::Settings;

/// The watched kinds; each informer has its own pace.
const KINDS: [&str; 3] = ["OpenStackAnsibleEE", "Job", "Pod"];

#[derive(Clone)]
pub(super) struct Leader {
    /// Its index among the leaders.
    pub(super) number: usize,
    caches: Caches,
    /// The content of the caches, to refill new ones after a deletion.
    known: BTreeMap<Id, Value>,
    /// How much of the world's log each informer has delivered.
    heard: BTreeMap<&'static str, usize>,
    inherited: BTreeSet<String>,
}

impl Leader {
    /// Creates a new leader, which begins with a list of everything.
    pub(super) fn elected(world: &World, number: usize) -> Self {
        let mut leader = Self {
            number,
            caches: Caches::new(&mut CacheRegistry::default()),
            known: BTreeMap::new(),
            heard: KINDS.map(|it| (it, world.log.len())).into(),
            inherited: BTreeSet::new(),
        };
        for kind in KINDS {
            for (id, object) in world.all(kind) {
                leader.take_in(id, object);
            }
        }
        leader.inherited = leader.caches.runs.all().iter().filter_map(|it| it.uid()).collect();
        leader
    }

    pub(super) fn knows(&self, id: &Id) -> bool {
        self.known.contains_key(id)
    }

    /// Takes in an object from an informer, or from the response to an own write.
    fn take_in(&mut self, id: &Id, object: &Value) {
        let version = |it: &Value| -> u64 {
            it["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
        };
        if self.known.get(id).is_some_and(|it| version(it) >= version(object)) {
            return;
        }
        self.known.insert(id.clone(), object.clone());
        let cache: &dyn WriteThrough = match id.0.as_str() {
            "OpenStackAnsibleEE" => &*self.caches.runs,
            "Job" => &*self.caches.jobs,
            _ => &*self.caches.pods,
        };
        cache.absorb(object);
    }

    /// Only an informer can remove an object from a cache, so the caches are rebuilt without the
    /// object.
    fn forget(&mut self, id: &Id) {
        self.known.remove(id);
        self.caches = Caches::new(&mut CacheRegistry::default());
        for (id, object) in std::mem::take(&mut self.known) {
            self.take_in(&id, &object);
        }
    }

    /// One informer delivers the next change of its kind.
    pub(super) fn hear_something(&mut self, world: &World, dice: &mut Dice) {
        let kind = KINDS[dice.below(KINDS.len())];
        let mut from = self.heard[kind];
        while let Some((id, object)) = world.log.get(from) {
            from += 1;
            if id.0 == kind {
                self.hear(id, object.as_ref());
                break;
            }
        }
        self.heard.insert(kind, from);
    }

    fn hear(&mut self, id: &Id, object: Option<&Value>) {
        match object {
            Some(object) => self.take_in(id, object),
            None => self.forget(id),
        }
    }

    /// The informer of pods delivers everything it has.
    ///
    /// Otherwise a run that is deleted between the creation of its pod and the event would leave a
    /// pod that the leader does not know; only a finalizer could close that gap.
    pub(super) fn hear_of_pods(&mut self, world: &World) {
        self.hear_all(world, "Pod");
    }

    pub(super) fn hear_everything(&mut self, world: &World) {
        for kind in KINDS {
            self.hear_all(world, kind);
        }
    }

    fn hear_all(&mut self, world: &World, kind: &'static str) {
        for (id, object) in &world.log[self.heard[kind]..] {
            if id.0 == kind {
                self.hear(id, object.as_ref());
            }
        }
        self.heard.insert(kind, world.log.len());
    }

    /// Returns what the scheduler decides on what is known.
    pub(super) fn decided(&self, world: &World) -> Vec<Step> {
        let scheduler = Scheduler {
            caches: self.caches.clone(),
            settings: settings(),
            limits: world.story.limits,
            term: format!("leader-{}", self.number),
            inherited: self.inherited.clone(),
            logged: Logged::default(),
            verdicts: Verdicts::default(),
        };
        let seen = block_on(scheduler.observe(&scheduler::key())).unwrap().unwrap();
        let plan = scheduler::decide(&seen, None, world.now);
        assert!(plan.one_by_one, "an admission without an answer would not hold back the others");
        plan.steps
    }

    pub(super) fn schedule(&mut self, world: &mut World) {
        let steps = self.decided(world);
        self.carry_out(&steps, world);
    }

    pub(super) fn look_at_some_run(&mut self, world: &mut World, dice: &mut Dice) {
        let runs = self.caches.runs.all();
        if !runs.is_empty() {
            let key = Key::of(&*runs[dice.below(runs.len())]);
            self.look_at(&key, world);
        }
    }

    pub(super) fn look_at_all_runs(&mut self, world: &mut World) {
        for run in self.caches.runs.all() {
            self.look_at(&Key::of(&*run), world);
        }
    }

    fn look_at(&mut self, key: &Key, world: &mut World) {
        let Some(seen) = self.observe(key, world) else { return };
        let plan: Plan = decide(&seen, None, world.now);
        self.carry_out(&plan.steps, world);
    }

    /// Reads a run as the controller does; reads of the API server are answered by the world.
    fn observe(&self, key: &Key, world: &World) -> Option<Observed> {
        let run = self.caches.runs.get(key)?;
        let mut jobs = self.caches.jobs_of(&run);
        let current = current_job(&run).unwrap_or_default().to_owned();
        let is_going = stage(&run, true) == Stage::Admitted;
        if is_going
            && recorded_uid(&run).is_some()
            && jobs.iter().all(|it| it.name_any() != current)
        {
            let id = ("Job".to_owned(), key.namespace.clone(), current.clone());
            let uid = run.uid().unwrap_or_default();
            jobs.extend(world.get(&id).map(typed::<Job>).filter(|it| it.is_owned_by(&uid)));
        }
        let mut pods = self.caches.pods_of(&key.namespace, &current);
        let has_ended = jobs.iter().any(|it| it.name_any() == current && it.end().is_some());
        let pods_are_certain = is_going && has_ended && pods.is_empty();
        if pods_are_certain {
            let id = ("Pod".to_owned(), key.namespace.clone(), format!("{current}-pod"));
            pods.extend(world.get(&id).map(typed::<Pod>));
        }
        Some(Observed {
            run: AnsibleEe::clone(&run),
            jobs,
            pods,
            pods_are_certain,
            refusal: None,
            settings: settings(),
        })
    }

    /// Writes in order; the first rejected one ends them, and the next reconciliation repeats them.
    fn carry_out(&mut self, steps: &[Step], world: &mut World) {
        for step in steps {
            let Ok((id, object)) = world.write(step, self) else { return };
            self.take_in(&id, &object);
        }
    }
}

fn settings() -> Settings {
    Settings { uid: None, ..Settings::sample() }
}

fn typed<T: DeserializeOwned>(object: &Value) -> T {
    serde_json::from_value(object.clone()).unwrap()
}
