//! The scheduler: reads all runs and admits those that may start.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::ansibleee::{AnsibleEe, AnsibleEeStatus, RunHost};
use api::conditions::printable;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use operator_core::host_address::endpoint;
use operator_core::object_key::Key;
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;
use operator_runtime::controller::{Controller, Decide};
use operator_runtime::error::Result;
use parking_lot::Mutex;

use super::decide::{Stage, faults_of, stage};
use super::observe::{Caches, run_key};
use super::scheduling_policy::{self, ForeignWait, Limits, SchedulingDecision, State, View, admit};
use super::status::{self, previous};
use crate::objects::{Job, Pod, addresses};
use crate::run::settings::Settings;

/// Returns the only key of the scheduler's workqueue: all runs are evaluated together.
pub fn key() -> Key {
    Key::new("", "all")
}

/// The scheduler.
pub struct Scheduler {
    /// The operator's caches.
    pub caches: Caches,
    /// The operator's options.
    pub settings: Settings,
    /// How many runs may be active.
    pub limits: Limits,
    /// This leader's term.
    pub term: String,
    /// UIDs of the runs that existed before this leader's term.
    pub inherited: BTreeSet<String>,
    /// The waits for runs of other namespaces that were logged.
    pub logged: Logged,
    /// Which specs were validated.
    pub verdicts: Verdicts,
}

/// Whether the spec of each run that waited has faults, by UID, with its generation: it is validated
/// once, not in each pass.
#[derive(Default)]
pub struct Verdicts(Mutex<BTreeMap<String, (Option<i64>, bool)>>);

impl Verdicts {
    fn has_faults(&self, run: &AnsibleEe, settings: &Settings) -> bool {
        let (uid, generation) = (run.uid().unwrap_or_default(), run.metadata.generation);
        let known = self.0.lock().get(&uid).filter(|it| it.0 == generation).map(|it| it.1);
        known.unwrap_or_else(|| {
            let has_faults = !faults_of(run, settings).is_empty();
            self.0.lock().insert(uid, (generation, has_faults));
            has_faults
        })
    }

    /// Forgets all runs but these.
    fn keep(&self, runs: &[Arc<AnsibleEe>]) {
        let uids: BTreeSet<&str> =
            runs.iter().filter_map(|it| it.metadata.uid.as_deref()).collect();
        self.0.lock().retain(|uid, _| uids.contains(uid.as_str()));
    }
}

/// The present waits for runs of other namespaces; each was logged when it began.
#[derive(Default)]
pub struct Logged(Mutex<BTreeSet<ForeignWait>>);

impl Logged {
    /// Replaces the present waits; returns those that are new.
    fn begun(&self, now: BTreeSet<ForeignWait>) -> Vec<ForeignWait> {
        let mut before = self.0.lock();
        let begun = now.difference(&before).cloned().collect();
        *before = now;
        begun
    }
}

/// All runs that use hosts or wait to.
pub struct Observed {
    /// In the same order as `runs`.
    views: Vec<View>,
    /// The objects; `None` for what is left of a deleted run.
    runs: Vec<Option<Arc<AnsibleEe>>>,
    limits: Limits,
    term: String,
}

/// Returns the statuses of the runs that start or wait.
pub fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
    // An admission that may have been made without an answer holds back those that were decided after
    // it: else one of them could be given its hosts.
    let mut plan = Plan { one_by_one: true, ..Plan::default() };
    if rejected.is_some() {
        // All writes are statuses, so there is no other object that could report it.
        return plan;
    }
    for decision in admit(&seen.views, seen.limits, &seen.term) {
        let (SchedulingDecision::Stamp(idx)
        | SchedulingDecision::Admit(idx)
        | SchedulingDecision::Wait(idx, _)) = decision;
        let Some(Some(run)) = seen.runs.get(idx) else { continue };
        let (next, because) = match decision {
            SchedulingDecision::Stamp(_) => {
                (stamped(run, &seen.term, now), "a new leader evaluates it")
            }
            SchedulingDecision::Admit(_) => {
                (status::admitted(run, &seen.term, now), "its hosts are free")
            }
            SchedulingDecision::Wait(_, what) => {
                (status::queued(run, Some(what), &seen.term, now), "a host is in use")
            }
        };
        plan.steps.extend(status::write(run, &next, because));
    }
    plan
}

impl Controller for Scheduler {
    type Observed = Observed;

    const NAME: &'static str = "scheduler";

    const DECIDE: Decide<Observed> = decide;

    async fn observe(&self, _key: &Key) -> Result<Option<Observed>> {
        let mut busy = self.busy();
        let mut seen = Observed {
            views: Vec::new(),
            runs: Vec::new(),
            limits: self.limits,
            term: self.term.clone(),
        };
        let runs = self.caches.runs.all();
        self.verdicts.keep(&runs);
        for run in runs {
            let left = busy.remove(&Key::of(&*run));
            if let Some(view) = self.view(&run, left) {
                seen.views.push(view);
                seen.runs.push(Some(run));
            }
        }
        for (key, hosts) in busy {
            seen.views.push(remainder(key, hosts));
            seen.runs.push(None);
        }
        for ForeignWait { run, holder, host } in
            self.logged.begun(scheduling_policy::foreign_waits(&seen.views))
        {
            // The creator of a pod chooses its annotations.
            let (holder, host) = (printable(&holder), printable(&host));
            tracing::info!(run, holder, host, "waits for a run in another namespace");
        }
        Ok(Some(seen))
    }
}

impl Scheduler {
    /// Returns the hosts of all Jobs and pods that may still work on them, by run.
    fn busy(&self) -> BTreeMap<Key, BTreeSet<String>> {
        let mut busy: BTreeMap<Key, BTreeSet<String>> = BTreeMap::new();
        let mut add = |metadata: &ObjectMeta| {
            if let Some(key) = run_key(metadata) {
                busy.entry(key).or_default().extend(addresses(metadata));
            }
        };
        let jobs = self.caches.jobs.all();
        jobs.iter().filter(|it| it.end().is_none()).for_each(|it: &Arc<Job>| add(&it.metadata));
        let pods = self.caches.pods.all();
        pods.iter().filter(|it| it.is_live()).for_each(|it: &Arc<Pod>| add(&it.metadata));
        busy
    }

    /// Returns the scheduler's view of a run; `None` when it neither uses hosts nor waits to.
    fn view(&self, run: &AnsibleEe, left: Option<BTreeSet<String>>) -> Option<View> {
        let state = self.state(run, left.is_some())?;
        let uid = run.uid().unwrap_or_default();
        let reported = |it: &RunHost| format!("{}, {}", it.name, it.address);
        let own = run.spec.hosts.iter().map(|it| (endpoint(&it.address), reported(it)));
        let mut hosts: BTreeMap<String, String> = own.collect();
        // What still runs may have other hosts than the present spec.
        for address in left.into_iter().flatten() {
            hosts.entry(endpoint(&address)).or_insert(address);
        }
        Some(View {
            namespace: run.namespace().unwrap_or_default(),
            name: run.name_any(),
            uid,
            created: run.creation_timestamp().map(|it| it.0).unwrap_or_default(),
            hosts,
            state,
        })
    }

    fn state(&self, run: &AnsibleEe, is_busy: bool) -> Option<State> {
        let stage = stage(run, !self.caches.jobs_of(run).is_empty());
        if is_busy || stage == Stage::Admitted {
            return Some(State::Active);
        }
        let is_deleting = run.metadata.deletion_timestamp.is_some();
        if stage == Stage::Finished || is_deleting || self.verdicts.has_faults(run, &self.settings)
        {
            return None;
        }
        let status = run.status.as_ref();
        Some(State::Queued {
            term: status.and_then(|it| it.term.clone()),
            reported: status.and_then(|it| it.waiting_for.clone()),
            inherited: self.inherited.contains(&run.uid().unwrap_or_default()),
        })
    }
}

/// Returns the view of a deleted run whose pods may still work on its hosts.
fn remainder(key: Key, hosts: BTreeSet<String>) -> View {
    View {
        uid: String::new(),
        created: Timestamp::UNIX_EPOCH,
        hosts: hosts.into_iter().map(|it| (endpoint(&it), it)).collect(),
        namespace: key.namespace,
        name: key.name,
        state: State::Active,
    }
}

/// Returns the run's status with another term; its first status if it has none.
fn stamped(run: &AnsibleEe, term: &str, now: Timestamp) -> AnsibleEeStatus {
    let mut next = previous(run);
    if next.conditions.is_empty() {
        return status::queued(run, None, term, now);
    }
    next.term = Some(term.into());
    next
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use operator_runtime::cache::WriteThrough;
    use operator_runtime::cache_registry::CacheRegistry;
    use serde_json::{Value, json};

    use super::*;

    fn scheduler(objects: &[(&str, Value)]) -> Scheduler {
        let caches = Caches::new(&mut CacheRegistry::default());
        for (kind, object) in objects {
            let cache: &dyn WriteThrough =
                if *kind == "Pod" { &*caches.pods } else { &*caches.runs };
            cache.absorb(object);
        }
        Scheduler {
            caches,
            settings: Settings::sample(),
            limits: Limits { total: 20, per_namespace: None },
            term: "t/1".into(),
            inherited: BTreeSet::new(),
            logged: Logged::default(),
            verdicts: Verdicts::default(),
        }
    }

    fn run(namespace: &str) -> Value {
        json!({
            "metadata": {
                "name": "b", "namespace": namespace, "uid": "u", "resourceVersion": "2",
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": { "playbook": "a.yml", "hosts": [{ "name": "x", "address": "X:22" }] },
        })
    }

    /// The pod that `kubectl delete --cascade=orphan` leaves of a Job: it has no owner, and anyone
    /// who creates a pod could write the same.
    fn orphan(phase: &str) -> Value {
        json!({
            "metadata": {
                "name": "a-1-x", "namespace": "ns", "uid": "p", "resourceVersion": "1",
                "annotations": {
                    "edpm.openstack.org/run": "a", "edpm.openstack.org/hosts": "[\"x:22\"]",
                },
            },
            "status": { "phase": phase },
        })
    }

    #[test]
    fn a_pod_without_run_job_and_owner_still_holds_its_hosts_until_it_ends() {
        for (namespace, phase, expected) in [
            ("ns", "Running", Some("a (host x, X:22)")),
            ("ns", "Pending", Some("a (host x, X:22)")),
            ("else", "Running", Some("a run in another namespace (host x, X:22)")),
            ("else", "Failed", None),
        ] {
            let scheduler = scheduler(&[("Pod", orphan(phase)), ("Run", run(namespace))]);
            let seen = block_on(scheduler.observe(&key())).unwrap().unwrap();
            let decisions = admit(&seen.views, seen.limits, &seen.term);
            let reported = decisions.iter().find_map(|it| match it {
                SchedulingDecision::Wait(_, what) => Some(what.as_str()),
                SchedulingDecision::Stamp(_) | SchedulingDecision::Admit(_) => None,
            });
            assert_eq!(reported, expected, "{namespace} {phase}");
            let waits = scheduling_policy::foreign_waits(&seen.views);
            assert_eq!(waits.len(), usize::from(expected.is_some() && namespace == "else"));
            assert_eq!(scheduler.logged.begun(waits), [], "the pass has not logged it");
        }
    }

    #[test]
    fn a_spec_is_validated_once_for_each_generation_and_forgotten_with_its_run() {
        let scheduler = scheduler(&[]);
        let n_queued = |version: u32, generation: i64, playbook: &str| {
            let mut run = run("ns");
            run["metadata"]["resourceVersion"] = json!(version.to_string());
            run["metadata"]["generation"] = json!(generation);
            run["spec"]["playbook"] = json!(playbook);
            let cache: &dyn WriteThrough = &*scheduler.caches.runs;
            cache.absorb(&run);
            block_on(scheduler.observe(&key())).unwrap().unwrap().views.len()
        };
        assert_eq!(n_queued(3, 1, "a.yml"), 1);
        // Under one generation a spec does not change, so the change shows that nobody looked again.
        assert_eq!(n_queued(4, 1, "\u{1}"), 1);
        assert_eq!(n_queued(5, 2, "\u{1}"), 0);
        assert_eq!(n_queued(6, 3, "a.yml"), 1);
        assert_eq!(scheduler.verdicts.0.lock().len(), 1);
        scheduler.verdicts.keep(&[]);
        assert_eq!(scheduler.verdicts.0.lock().len(), 0);
    }

    #[test]
    fn a_wait_is_logged_when_it_begins_and_not_again_while_it_lasts() {
        let wait = |holder: &str| ForeignWait {
            run: "ns/b".into(),
            holder: holder.into(),
            host: "x, x:22".into(),
        };
        let logged = Logged::default();
        assert_eq!(logged.begun([wait("else/a")].into()), [wait("else/a")]);
        assert_eq!(logged.begun([wait("else/a")].into()), []);
        // Another holder of the same host is logged, and so is the first one when it returns.
        assert_eq!(logged.begun([wait("else/c")].into()), [wait("else/c")]);
        assert_eq!(logged.begun([].into()), []);
        assert_eq!(logged.begun([wait("else/c")].into()), [wait("else/c")]);
    }
}
