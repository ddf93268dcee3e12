//! What each step of a measurement costs.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::least::Writes;
use super::manifests::NAMESPACE;
use crate::bench::audit::{Audit, Requests};
use crate::bench::process::{self, Among, Usage};
use crate::bench::status_age::{self, StatusAge};
use crate::sh;

/// How long the operators may go on after the API shows that a step is done.
const SETTLED: Duration = Duration::from_mins(10);
/// The share of a processor that idle operators may take, such as for polls of nova.
const IDLE_SHARE: f64 = 0.1;

/// What a step has cost.
#[derive(Clone, Debug, Default)]
pub(super) struct Phase {
    pub(super) name: String,
    /// How long it took; `None` for the start of the operators.
    pub(super) seconds: Option<f64>,
    /// How long it took until the operators had nothing left to do.
    pub(super) settled_seconds: Option<f64>,
    /// The least writes that it needs, where they are known.
    pub(super) least: Option<Vec<Writes>>,
    pub(super) requests: Requests,
    /// Resource → how old the statuses of the objects that sum up the hosts became.
    pub(super) ages: BTreeMap<&'static str, StatusAge>,
    /// The operators' memory at its end, and their processor time within it.
    pub(super) processes: Vec<Usage>,
}

/// Measures one step after the other.
pub(super) struct Meter {
    /// The steps that have ended.
    pub(super) phases: Vec<Phase>,
    audit: Audit,
    among: Among,
    objects: &'static [&'static str],
    /// The position in the audit log where the last step ended.
    position: u64,
    /// The operators' usage when the last step ended.
    processes: Vec<Usage>,
}

impl Meter {
    /// Begins with the start of the operators, which are children of a process and have just become
    /// ready; `objects` are the resources whose statuses are looked at.
    pub(super) fn new(
        audit_log: &Path,
        parent: u32,
        objects: &'static [&'static str],
    ) -> Result<Self> {
        let mut meter = Self {
            phases: Vec::new(),
            audit: Audit::at(audit_log),
            among: Among::ChildrenOf(parent),
            objects,
            position: 0,
            processes: Vec::new(),
        };
        meter.end(Phase { name: "start".to_owned(), ..Phase::default() }, status_age::now())?;
        Ok(meter)
    }

    /// Measures one step with all that the operators still do when it is done, until they do nothing
    /// for a time; without one, the step alone.
    pub(super) fn measure(
        &mut self,
        name: String,
        least: Option<Vec<Writes>>,
        quiet: Option<Duration>,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let (begun, clock) = (status_age::now(), Instant::now());
        sh::step(&name, work)?;
        let seconds = Some(clock.elapsed().as_secs_f64());
        let settled_seconds = quiet
            .map(|quiet| {
                self.settle(quiet)?;
                anyhow::Ok(clock.elapsed().saturating_sub(quiet).as_secs_f64())
            })
            .transpose()?;
        let phase = Phase { name, seconds, settled_seconds, least, ..Phase::default() };
        self.end(phase, begun)
    }

    /// Waits until the operators have requested and computed nothing for some time.
    fn settle(&self, quiet: Duration) -> Result<()> {
        sh::wait_for("the operators have nothing left to do", SETTLED, || {
            let (from, before) = (self.audit.position()?, process::operators(self.among)?);
            // A fixed period is looked at, so this sleeps instead of waiting for a condition.
            std::thread::sleep(quiet);
            let requests = self.audit.requests(NAMESPACE, from, self.audit.position()?)?;
            let work = work_at_rest(&requests);
            ensure!(work.is_empty(), "{}", work.join(", "));
            for usage in process::operators(self.among)?.iter().map(|it| it.since(&before)) {
                let is_idle = usage.cpu_seconds <= quiet.as_secs_f64() * IDLE_SHARE;
                ensure!(is_idle, "{} takes {:.2} s of CPU", usage.name, usage.cpu_seconds);
            }
            Ok(())
        })
    }

    fn end(&mut self, mut phase: Phase, begun: Duration) -> Result<()> {
        let (position, processes) = (self.audit.position()?, process::operators(self.among)?);
        phase.requests = self.audit.requests(NAMESPACE, self.position, position)?;
        let statuses = &phase.requests.statuses;
        let age = |it: &&'static str| Some((*it, statuses.age(it, begun)?));
        phase.ages = self.objects.iter().filter_map(age).collect();
        phase.processes = processes.iter().map(|it| it.since(&self.processes)).collect();
        (self.position, self.processes) = (position, processes);
        self.phases.push(phase);
        Ok(())
    }
}

/// Returns the requests that no operator makes when it has nothing to do. Events count several runs,
/// and may be written later; kinds of others that are not there are looked for each minute.
pub(super) fn work_at_rest(requests: &Requests) -> Vec<String> {
    let mut work = requests.unexpected_at_rest();
    work.retain(|it| !it.ends_with(" events") && !it.ends_with(" get "));
    work
}

#[cfg(test)]
impl Phase {
    /// Returns a step in which dataplane-operator made these requests, by verb and resource.
    pub(super) fn of(name: &str, requests: &[(&str, &str)]) -> Self {
        let mut phase = Self { name: name.to_owned(), ..Self::default() };
        for (verb, resource) in requests {
            phase.requests.count(&serde_json::json!({
                "stage": if *verb == "watch" { "ResponseStarted" } else { "ResponseComplete" },
                "verb": verb,
                "user": { "username": "system:serviceaccount:edpm-system:dataplane-operator" },
                "objectRef": { "resource": resource },
            }));
        }
        phase
    }
}
