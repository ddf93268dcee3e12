//! What each phase of a measurement costs.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::manifests::{NAME, NAMESPACE};
use crate::bench::audit::{Audit, Requests};
use crate::bench::process::{self, Among, Usage};
use crate::bench::status_age::{self, StatusAge};
use crate::sh;

/// One phase of a measurement.
#[derive(Clone, Debug, Default)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    /// How long it took; `None` for the start of the operators.
    pub(super) seconds: Option<f64>,
    /// The least writes that it needs, where that is known.
    pub(super) least_writes: Option<u64>,
    pub(super) requests: Requests,
    /// Resource → how old the status of the object that sums up the hosts became.
    pub(super) ages: BTreeMap<&'static str, StatusAge>,
    /// The operators' memory at its end, and their processor time within it.
    pub(super) processes: Vec<Usage>,
}

/// Measures one phase after the other.
pub(super) struct Meter {
    /// The phases that have ended.
    pub(super) phases: Vec<Phase>,
    audit: Audit,
    among: Among,
    objects: &'static [&'static str],
    /// The position in the audit log where the last phase ended.
    position: u64,
    /// The operators' usage when the last phase ended.
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
        meter.end(Phase { name: "start", ..Phase::default() }, status_age::now())?;
        Ok(meter)
    }

    /// Measures one phase.
    pub(super) fn measure(
        &mut self,
        name: &'static str,
        least_writes: Option<u64>,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let (begun, clock) = (status_age::now(), Instant::now());
        sh::step(name, work)?;
        let seconds = Some(clock.elapsed().as_secs_f64());
        self.end(Phase { name, seconds, least_writes, ..Phase::default() }, begun)
    }

    fn end(&mut self, mut phase: Phase, begun: Duration) -> Result<()> {
        let (position, processes) = (self.audit.position()?, process::operators(self.among)?);
        phase.requests = self.audit.requests(NAMESPACE, self.position, position)?;
        let statuses = &phase.requests.statuses;
        let age = |it: &&'static str| Some((*it, statuses.age(it, NAME, begun)?));
        phase.ages = self.objects.iter().filter_map(age).collect();
        phase.processes = processes.iter().map(|it| it.since(&self.processes)).collect();
        (self.position, self.processes) = (position, processes);
        self.phases.push(phase);
        Ok(())
    }
}

#[cfg(test)]
impl Phase {
    /// Returns a phase in which dataplane-operator made these requests, by verb and resource.
    pub(super) fn of(name: &'static str, requests: &[(&str, &str)]) -> Self {
        let mut phase = Self { name, ..Self::default() };
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
