//! The service sequence of one host: its state, and what has to happen next.

use std::mem;

use api::dataplane::service_run::{RunState, ServiceRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::keyed::Renewal;
use crate::run_engine::host::{DesiredService, Host, Pass};
use crate::run_engine::outcome::{self, FailureReason, Outcome};
use crate::run_engine::run::{Attempt, Run};

/// The hash of inputs that cannot be determined or read: no attempt carries it.
pub const UNKNOWN: &str = "unknown";

/// An attempt that has no run yet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NeededRun {
    /// The service to deploy.
    pub service: String,
    /// Hosts with the same group may share the run.
    pub group: String,
    /// Hash and number of the attempt.
    pub attempt: Attempt,
}

/// What has to happen next on a host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SequenceState {
    /// Nothing: every service succeeded with the present inputs.
    Done,
    /// Something is out of date, but no run may start.
    OutOfDate,
    /// A run must be created.
    NeedsRun(NeededRun),
    /// A run is waiting or active.
    InRun {
        /// The name of the AnsibleEE.
        run: String,
        /// What the run waits for; `None` when it does not wait.
        waiting_for: Option<String>,
        /// What keeps its Job or pod from being made, placed or ended.
        trouble: Option<String>,
    },
    /// A service failed; the later ones have to wait.
    Failed {
        /// The failure reason.
        reason: FailureReason,
        /// Object, cause and next step.
        message: String,
        /// When it is retried automatically; `None` means never.
        retry_at: Option<Timestamp>,
    },
}

/// The evaluated service sequence of one host.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceSequence {
    /// The services to record in the parent's status.
    pub services: Vec<ServiceRun>,
    /// What has to happen next.
    pub state: SequenceState,
    /// Whether a run of the recorded sequence may have changed the host, by the records or the runs.
    pub has_begun: bool,
    /// The services as they stand; `None` where all of that is to be recorded.
    standing: Option<Vec<ServiceRun>>,
    /// The same while no run may start; `None` where that makes no difference.
    held: Option<Box<Self>>,
}

impl ServiceSequence {
    fn of(services: Vec<ServiceRun>, state: SequenceState) -> Self {
        Self { services, state, has_begun: false, standing: None, held: None }
    }

    /// Returns the services as they stand: what has succeeded in the middle of a sequence is among them,
    /// although it is recorded later.
    pub fn standing(&self) -> &[ServiceRun] {
        self.standing.as_ref().unwrap_or(&self.services)
    }

    /// Returns the sequence of a host that must not begin anything now: no attempt is recorded, and
    /// none is due later.
    #[must_use]
    pub fn held(self) -> Self {
        match self.held {
            Some(held) => Self { has_begun: self.has_begun, ..*held },
            None => self,
        }
    }

    /// Returns the attempt that has no run yet, if one is due now.
    pub fn needed_run(&self) -> Option<&NeededRun> {
        if let SequenceState::NeedsRun(need) = &self.state { Some(need) } else { None }
    }

    /// Returns whether the host is in a run, or gets one now.
    pub fn is_due(&self) -> bool {
        matches!(self.state, SequenceState::NeedsRun(_) | SequenceState::InRun { .. })
    }

    /// Returns when a failure is retried; no watch event reports that time.
    pub fn retry_at(&self) -> Option<Timestamp> {
        if let SequenceState::Failed { retry_at, .. } = self.state { retry_at } else { None }
    }

    /// Returns whether a run carries an attempt that is still wanted on `host`.
    pub fn wants(&self, run: &Run<'_>, host: &str) -> bool {
        self.services.iter().any(|it| run.carries(host, it))
    }

    /// Returns whether the service that is due last failed because of the host's own key.
    pub fn was_key_refused(&self) -> bool {
        let Some(need) = self.needed_run() else { return false };
        let due = self.services.iter().find(|it| it.name == need.service);
        due.is_some_and(|it| it.reason.as_deref() == Some(FailureReason::HostKeyMismatch.as_str()))
    }
}

/// Returns whether a service sequence has begun on a host, according to its status.
///
/// The status records the first of the sequence's runs that may have changed the host, unless
/// [`Host::records_begin`] says otherwise; see [`ServiceSequence::has_begun`].
pub fn has_begun(recorded: &[ServiceRun]) -> bool {
    recorded.iter().any(|it| it.state == RunState::Running)
}

/// Returns whether a service was never deployed to the host, and its first attempt is recorded neither as
/// begun nor as ended.
pub fn is_first_attempt(recorded: &ServiceRun) -> bool {
    recorded.state == RunState::Pending && recorded.attempt <= 1 && recorded.deployed_hash.is_none()
}

/// Returns whether a recorded service is on the host as it was last deployed in full.
///
/// An attempt that never began has changed nothing.
pub fn is_as_deployed(service: &ServiceRun, recorded: &[ServiceRun]) -> bool {
    let is_untouched = match service.state {
        RunState::Succeeded => true,
        RunState::Pending => !has_begun(recorded),
        RunState::Running | RunState::Failed => false,
    };
    is_untouched && service.deployed_hash.is_some()
}

/// Rewrites the hashes of services with the current key, if they are for the same inputs.
///
/// An unfinished or failed attempt keeps its hash, which identifies its run.
pub fn renew(services: &mut [ServiceRun], desired: &[DesiredService], renewal: &mut Renewal) {
    for service in services {
        let Some(desired) = desired.iter().find(|it| it.service == service.name) else { continue };
        if service.state == RunState::Succeeded {
            renewal.of(&mut service.hash, &desired.run_hash);
        }
        renewal.of_some(service.deployed_hash.as_mut(), &desired.hash);
    }
}

/// What to do about one service.
enum Next {
    /// Nothing: this is its record, if it has one.
    Nothing(Option<ServiceRun>),
    Attempt(ServiceRun),
    /// It stops the sequence, with this record.
    Stop(SequenceState, ServiceRun),
}

/// Evaluates the service sequence of one host; `runs` are those of its parent, of which only the ones
/// that carry an attempt of the host matter.
///
/// # Guarantees
/// An attempt number rises only in a status that differs from the recorded one, so it is written
/// before the run that carries it.
/// A host in an unfinished run gets no other run.
///
/// # Caveats
/// Successes in the middle of a sequence are published only with the next change or at the end: one
/// write for the whole sequence instead of one per service.
/// Until then the AnsibleEE is their record.
pub fn evaluate<'a>(
    host: &Host<'_>,
    runs: impl IntoIterator<Item = &'a Run<'a>>,
    now: Timestamp,
) -> ServiceSequence {
    let runs: Vec<&Run<'_>> = runs.into_iter().collect();
    let pass = Pass { host, runs: &runs, now };
    let fold = |it: &DesiredService| pass.recorded(&it.service).map(|seen| pass.fold(seen));
    let folded: Vec<Option<ServiceRun>> = host.desired.iter().map(fold).collect();
    let active = runs.iter().find(|it| !it.is_finished() && it.attempts.contains_key(host.name));
    let sequence = match active {
        Some(run) => pass.in_run(folded.into_iter().flatten().collect(), run),
        None => pass.advance(&folded),
    };
    ServiceSequence { has_begun: pass.has_begun(), ..sequence }
}

/// Returns a record of a host that was another owner's when it was written. Where the begin of a sequence
/// is not recorded, it is unknown whether an attempt that was pending there has begun.
pub fn of_former_owner(recorded: &ServiceRun) -> ServiceRun {
    let is_known = recorded.state != RunState::Pending;
    let deployed_hash = recorded.deployed_hash.clone().filter(|_| is_known);
    ServiceRun { deployed_hash, ..recorded.clone() }
}

impl Pass<'_> {
    fn recorded(&self, service: &str) -> Option<&ServiceRun> {
        self.host.recorded.iter().find(|it| it.name == service)
    }

    /// Updates a recorded service with the result of its run.
    fn fold(&self, seen: &ServiceRun) -> ServiceRun {
        let host = self.host;
        let is_unknown = host.has_moved && !host.records_begin;
        let mut service = if is_unknown { of_former_owner(seen) } else { seen.clone() };
        if !matches!(seen.state, RunState::Pending | RunState::Running) {
            return service;
        }
        let has_ended = |it: &&Run<'_>| it.is_finished() && it.carries(host.name, seen);
        let Some(run) = self.runs.iter().copied().find(has_ended) else {
            if self.has_been_passed(seen) {
                succeed(&mut service);
                let is_whole =
                    |it: &DesiredService| it.service == seen.name && it.hash.is(&seen.hash);
                if host.desired.iter().any(is_whole) {
                    service.deployed_hash = Some(seen.hash.clone());
                }
            }
            return service;
        };
        // The backoff before the next attempt starts at this time.
        service.since = run.ended().unwrap_or(Time(self.now));
        service.run = Some(run.name());
        let remediation = outcome::Remediation {
            retries: host.retries,
            namespace: host.namespace,
            is_learned: host.trust.is_learned,
        };
        match outcome::host_outcome(run, host.name, remediation) {
            Outcome::Failed { reason, message } => fail(&mut service, reason, message),
            done @ (Outcome::Succeeded | Outcome::LeftOut) => {
                succeed(&mut service);
                if done == Outcome::Succeeded && !run.is_partial() {
                    service.deployed_hash = Some(seen.hash.clone());
                }
            }
        }
        service
    }

    /// Returns whether a service has succeeded although its run no longer exists.
    ///
    /// That is so if a later service of the same sequence has begun: the run was deleted before its
    /// result was recorded.
    fn has_been_passed(&self, seen: &ServiceRun) -> bool {
        let exists = |it: &ServiceRun| self.runs.iter().any(|run| run.carries(self.host.name, it));
        let after = self.host.recorded.iter().skip_while(|it| it.name != seen.name).skip(1);
        // A later service that is recorded as succeeded was finished before this sequence began.
        let mut later =
            after.filter(|it| matches!(it.state, RunState::Pending | RunState::Running));
        !exists(seen) && later.any(exists)
    }

    /// Evaluates a host that is in a run; `services` are its records with the results of others.
    fn in_run(&self, mut services: Vec<ServiceRun>, run: &Run<'_>) -> ServiceSequence {
        let recorded = self.host.recorded;
        let state = SequenceState::InRun {
            run: run.name(),
            waiting_for: run.waiting_for().map(str::to_owned),
            trouble: run.trouble().map(str::to_owned),
        };
        if let Some(overtaken) = self.overtaken(run) {
            for it in services.iter_mut().filter(|it| it.name == run.service) {
                it.clone_from(&overtaken);
            }
            return ServiceSequence::of(services, state);
        }
        // A run that only waits is not recorded: it may be withdrawn, and then nothing has happened.
        let is_due = |it: &&mut ServiceRun| {
            it.state == RunState::Pending && run.has_begun() && run.carries(self.host.name, it)
        };
        if let Some(service) = services.iter_mut().find(is_due) {
            service.state = RunState::Running;
            service.run = Some(run.name());
            service.since = Time(self.now);
        }
        // One write records that the sequence is running, and the runs report the rest. A failure that
        // is over is the exception.
        let needs_no_record = !self.host.records_begin || has_begun(recorded);
        if needs_no_record && !(run.has_begun() && is_cause_over(recorded, &services)) {
            let standing = Some(services);
            return ServiceSequence { standing, ..ServiceSequence::of(recorded.to_vec(), state) };
        }
        ServiceSequence::of(services, state)
    }

    /// Returns the next attempt of a service whose inputs changed during its run.
    ///
    /// It is recorded at once: if the inputs changed back meanwhile, the run's success would otherwise
    /// count for them.
    fn overtaken(&self, run: &Run<'_>) -> Option<ServiceRun> {
        let desired = self.host.desired.iter().find(|it| it.service == run.service)?;
        let seen = self.recorded(&run.service)?;
        // Unreadable inputs have reached no pod.
        let is_read = !desired.run_hash.is(UNKNOWN);
        if !is_read || !run.carries(self.host.name, seen) || desired.run_hash.is(&seen.hash) {
            return None;
        }
        let untouched = if run.has_begun() { None } else { self.untouched(desired, seen) };
        Some(untouched.unwrap_or_else(|| self.attempt(desired, Some(seen))))
    }

    /// Returns the record of a service whose inputs changed back before the attempt with others began.
    ///
    /// Nothing has changed on the host, so nothing has to run. Once a sequence has begun, its later
    /// services may have begun too, because at most its first run is recorded.
    fn untouched(&self, desired: &DesiredService, seen: &ServiceRun) -> Option<ServiceRun> {
        let deployed = seen.deployed_hash.as_ref().filter(|it| desired.run_hash.is(it));
        let is_untouched =
            seen.state == RunState::Pending && seen.run.is_none() && !self.has_begun();
        deployed.filter(|_| is_untouched).map(|deployed| {
            let mut service = ServiceRun { hash: deployed.clone(), ..seen.clone() };
            succeed(&mut service);
            service
        })
    }

    /// Returns whether the recorded sequence has begun, by its records or its runs.
    pub(super) fn has_begun(&self) -> bool {
        let recorded = self.host.recorded;
        let is_pending = |it: &&ServiceRun| it.state == RunState::Pending;
        let carries = |run: &Run<'_>| {
            recorded.iter().filter(is_pending).any(|it| run.carries(self.host.name, it))
        };
        has_begun(recorded) || self.runs.iter().any(|it| it.has_begun() && carries(it))
    }

    /// Evaluates the services in order; the first one that is not done decides.
    ///
    /// Later services that are out of date are recorded as pending together with it, so that one write
    /// covers the whole sequence.
    fn advance(&self, folded: &[Option<ServiceRun>]) -> ServiceSequence {
        let mut services: Vec<ServiceRun> = Vec::new();
        let mut state = SequenceState::Done;
        let mut has_new_attempt = false;
        let mut held = None;
        for (idx, (desired, seen)) in self.host.desired.iter().zip(folded).enumerate() {
            let next = if is_open(&state) {
                self.next(desired, seen.as_ref())
            } else {
                Next::Nothing(seen.clone())
            };
            if held.is_none() && !matches!(next, Next::Nothing(_)) {
                // While no run may start, this service stops the sequence.
                let same = seen.as_ref().filter(|it| desired.run_hash.is(&it.hash));
                let stop = match same {
                    Some(seen) if seen.state == RunState::Failed => failed(seen, None),
                    _ => SequenceState::OutOfDate,
                };
                let open = folded[idx..].iter().flatten();
                let all = services.iter().chain(open).cloned().collect();
                held = Some(Box::new(ServiceSequence::of(all, stop)));
            }
            match next {
                Next::Nothing(service) => services.extend(service),
                Next::Stop(stop, service) => {
                    if state == SequenceState::Done {
                        state = stop;
                    }
                    services.push(service);
                }
                Next::Attempt(attempt) => {
                    has_new_attempt |= Some(&attempt) != seen.as_ref();
                    if state == SequenceState::Done {
                        state = SequenceState::NeedsRun(need(desired, &attempt));
                    }
                    services.push(attempt);
                }
            }
        }
        let recorded = self.host.recorded;
        let goes_on = matches!(state, SequenceState::NeedsRun(_)) && !has_new_attempt;
        let is_kept = goes_on && recorded.len() == services.len();
        let standing = is_kept.then(|| mem::replace(&mut services, recorded.to_vec()));
        ServiceSequence { standing, held, ..ServiceSequence::of(services, state) }
    }

    fn next(&self, desired: &DesiredService, seen: Option<&ServiceRun>) -> Next {
        // This host has no unfinished run, and the results of finished runs have been folded in.
        if let Some(service) = seen.and_then(|it| self.untouched(desired, it)) {
            return Next::Nothing(Some(service));
        }
        let attempt = || Next::Attempt(self.attempt(desired, seen));
        let Some(same) = seen.filter(|it| desired.run_hash.is(&it.hash)) else { return attempt() };
        match same.state {
            RunState::Succeeded => Next::Nothing(Some(same.clone())),
            // The result of another owner's run is unknown; this owner needs a new attempt.
            RunState::Pending | RunState::Running if self.host.has_moved => attempt(),
            RunState::Running if self.is_lost(same) => {
                let lost = self.lost(same);
                Next::Stop(failed(&lost, None), lost)
            }
            // It was recorded, but its run was not created: the process ended in between.
            RunState::Pending | RunState::Running => Next::Attempt(same.clone()),
            RunState::Failed => match self.retry_at(same) {
                Some(due) if due <= self.now => attempt(),
                retry_at => Next::Stop(failed(same, retry_at), same.clone()),
            },
        }
    }

    /// Returns whether the run of a running service was deleted; its effect on the host is unknown.
    fn is_lost(&self, seen: &ServiceRun) -> bool {
        let exists = |name: &String| self.runs.iter().any(|it| it.name() == *name);
        seen.run.as_ref().is_some_and(|it| !exists(it))
    }

    fn lost(&self, seen: &ServiceRun) -> ServiceRun {
        let (reason, message) = outcome::lost(seen, self.host.name, self.host.retries);
        let mut service = ServiceRun { since: Time(self.now), ..seen.clone() };
        fail(&mut service, reason, message);
        service
    }
}

fn succeed(service: &mut ServiceRun) {
    service.state = RunState::Succeeded;
    service.failures = 0;
    service.reason = None;
    service.message = None;
}

fn fail(service: &mut ServiceRun, reason: FailureReason, message: String) {
    service.state = RunState::Failed;
    // Each failure reason has its own backoff: a host that now refuses the key is retried as soon
    // as one for which that was the first failure.
    let is_same = service.reason.as_deref() == Some(reason.as_str());
    service.failures = if is_same { service.failures + 1 } else { 1 };
    service.reason = Some(reason.as_str().to_owned());
    service.message = Some(message);
}

/// Returns whether a service whose failure is recorded has succeeded since.
fn is_cause_over(recorded: &[ServiceRun], services: &[ServiceRun]) -> bool {
    let mut done = services.iter().filter(|it| it.state == RunState::Succeeded);
    done.any(|it| recorded.iter().any(|seen| seen.name == it.name && seen.reason.is_some()))
}

/// Returns whether later services may still be planned.
fn is_open(state: &SequenceState) -> bool {
    matches!(state, SequenceState::Done | SequenceState::NeedsRun(_))
}

fn need(desired: &DesiredService, service: &ServiceRun) -> NeededRun {
    NeededRun {
        service: desired.service.clone(),
        group: desired.group.clone(),
        attempt: Attempt { hash: service.hash.clone(), attempt: service.attempt },
    }
}

fn failed(seen: &ServiceRun, retry_at: Option<Timestamp>) -> SequenceState {
    SequenceState::Failed {
        reason: FailureReason::parse(seen.reason.as_deref().unwrap_or_default()),
        message: seen.message.clone().unwrap_or_default(),
        retry_at,
    }
}

#[cfg(test)]
#[path = "service_sequence_tests.rs"]
mod tests;
