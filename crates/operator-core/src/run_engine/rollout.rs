//! How many hosts of a group may be out of service at once, and when a rollout stops.

use std::collections::BTreeMap;

use api::conditions;
use api::conditions::Reason;
use api::dataplane::service_run::{RunState, ServiceRun};
use api::rollout_limits::Limits;

use crate::reasons;

/// How many failing hosts the message of a waiting host names.
const NAMED: usize = 3;

/// A host's state in a rollout; it decides whether a run may begin on it or continue.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum RolloutState {
    /// It was never in service, and its deployment has not begun.
    New,
    /// Its first deployment is under way.
    Started,
    /// It was never in service, and fails; a retry may be in progress.
    FailedNew,
    /// It is in service; a run would disturb it.
    Ready,
    /// It was deployed, and is down all the same, as its group's owner observes it.
    Down,
    /// It was in service, and is being deployed again.
    Disturbed,
    /// It was in service and fails, or was unreachable in its last run; a retry may be in progress.
    Failed,
    /// It was in service and failed; other inputs than those that failed are being tried.
    Corrected,
}

impl RolloutState {
    /// Returns whether the host was never in service.
    pub fn is_new(self) -> bool {
        matches!(self, Self::New | Self::Started | Self::FailedNew)
    }

    /// Returns the state of a host with these recorded services.
    ///
    /// `was_deployed` says whether they have ever all succeeded.
    pub fn of(recorded: &[ServiceRun], was_deployed: bool) -> Self {
        let is_under_way =
            |it: &ServiceRun| matches!(it.state, RunState::Pending | RunState::Running);
        let any = |holds: &dyn Fn(&ServiceRun) -> bool| recorded.iter().any(holds);
        // The cause stays recorded while a failure is retried.
        if any(&|it| it.state == RunState::Failed || it.reason.is_some()) {
            return if was_deployed { Self::Failed } else { Self::FailedNew };
        }
        // With new inputs only the failure count stays, until they succeed or fail.
        let is_corrected = any(&|it| is_under_way(it) && it.failures > 0);
        match (any(&is_under_way), was_deployed) {
            (true, true) if is_corrected => Self::Corrected,
            (true, true) => Self::Disturbed,
            (true, false) => Self::Started,
            (false, true) => Self::Ready,
            (false, false) => Self::New,
        }
    }

    /// Returns whether a run now would begin the host's deployment, not continue one.
    pub fn starts_now(self) -> bool {
        matches!(self, Self::New | Self::Ready | Self::Down)
    }

    /// Returns whether it was in service and is out of it now.
    pub fn counts_as_unavailable(self) -> bool {
        matches!(self, Self::Down | Self::Disturbed | Self::Failed | Self::Corrected)
    }

    /// Returns whether it was ever in service; percentage limits are shares of such hosts.
    pub fn was_in_service(self) -> bool {
        self == Self::Ready || self.counts_as_unavailable()
    }

    /// Returns whether it was in service and has failed, so that a run is a retry.
    pub fn is_retry(self) -> bool {
        matches!(self, Self::Failed | Self::Corrected)
    }

    /// Returns whether it is unavailable before a run begins, so that the run takes no further
    /// place, and is bounded only by how many such hosts have a run at once.
    pub fn holds_place(self) -> bool {
        self == Self::Down || self.is_retry()
    }

    /// Returns whether it fails.
    pub fn fails(self) -> bool {
        matches!(self, Self::Failed | Self::FailedNew)
    }
}

/// Why a host's deployment does not begin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BlockReason {
    /// As many hosts as allowed are out of service, and some of them are being deployed.
    LimitReached,
    /// As many hosts as allowed are out of service, and all of them fail or are down.
    Stuck,
    /// A host of the group fails.
    Paused,
}

impl BlockReason {
    /// Returns the condition reason.
    pub fn reason(self) -> &'static Reason {
        match self {
            Self::LimitReached | Self::Stuck => &reasons::WAITING_FOR_TURN,
            Self::Paused => &reasons::PAUSED,
        }
    }

    /// Returns whether an edit is blocked by failing hosts alone, with none in progress.
    ///
    /// That is an edit made after the rollout had stopped. `is_new` says whether the edit was never
    /// reported yet, and `reported` is the reason that was last reported for its deployment.
    pub fn blocks_edit(self, is_new: bool, reported: Option<&str>) -> bool {
        self != Self::LimitReached && (is_new || reported == Some(self.reason().word))
    }
}

/// Returns the names of the first failing hosts, and how many more there are, for the message of a
/// waiting host.
pub fn named(failing: &[impl AsRef<str>]) -> String {
    conditions::first_names(failing, NAMED)
}

/// The hosts of a group, counted by rollout state.
///
/// The caller leaves out hosts whose own `deploy` is false.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RolloutCounts {
    states: BTreeMap<RolloutState, usize>,
    trying: usize,
}

impl RolloutCounts {
    /// Counts hosts with these states.
    pub fn of(states: impl IntoIterator<Item = RolloutState>) -> Self {
        let mut counts = Self::default();
        for rollout_state in states {
            counts.add(rollout_state);
        }
        counts
    }

    /// Returns the counts with the number of hosts that were in service, failed and are being
    /// retried.
    #[must_use]
    pub fn with_trying(self, trying: usize) -> Self {
        Self { trying, ..self }
    }

    /// Counts one more host.
    pub fn add(&mut self, rollout_state: RolloutState) {
        *self.states.entry(rollout_state).or_default() += 1;
    }

    /// Removes a host that was counted.
    pub fn remove(&mut self, rollout_state: RolloutState) {
        let count = self.states.entry(rollout_state).or_default();
        *count = count.saturating_sub(1);
        self.states.retain(|_, count| *count > 0);
    }

    fn with(&self, counts: impl Fn(RolloutState) -> bool) -> usize {
        self.states.iter().filter(|it| counts(*it.0)).map(|it| it.1).sum()
    }

    /// Returns the number of hosts.
    pub fn total(&self) -> usize {
        self.with(|_| true)
    }

    /// Returns how many of them were ever in service. Only these count against the budget and wait.
    pub fn in_service(&self) -> usize {
        self.with(RolloutState::was_in_service)
    }

    /// Returns whether any host fails.
    pub fn is_failing(&self) -> bool {
        self.with(RolloutState::fails) > 0
    }

    /// Returns whether any host that was in service is being deployed.
    pub fn is_moving(&self) -> bool {
        self.with(|it| matches!(it, RolloutState::Disturbed | RolloutState::Corrected)) > 0
    }
}

/// The disruption budget of a group: lets hosts begin one after the other, as the limits allow.
#[derive(Clone, Debug)]
pub struct DisruptionBudget {
    left: usize,
    tries_left: usize,
    is_paused: bool,
    is_moving: bool,
}

impl DisruptionBudget {
    /// Creates the disruption budget of a group with these limits and counts.
    pub fn of(limits: &Limits, counts: &RolloutCounts) -> Self {
        let in_service = counts.in_service();
        let held = counts.with(RolloutState::counts_as_unavailable);
        // A correction must first succeed on hosts that have failed, before other hosts begin.
        let is_correcting = counts.with(|it| it == RolloutState::Corrected) > 0;
        let is_tried = is_correcting && limits.bounds(in_service);
        let allowed = limits.allowed(in_service);
        let left = if is_tried { 0 } else { allowed.saturating_sub(held) };
        // Failed hosts already count as unavailable, so only running retries count here: they come to
        // an end, and the next ones begin.
        let tries_left = allowed.saturating_sub(counts.trying);
        let is_paused = limits.pause_on_failure && counts.is_failing();
        Self { left, tries_left, is_paused, is_moving: counts.is_moving() }
    }

    /// Returns how many more hosts that are in service may begin.
    pub fn left(&self) -> usize {
        if self.is_paused { 0 } else { self.left }
    }

    /// Returns how many more hosts that were in service and failed may be retried.
    pub fn tries_left(&self) -> usize {
        self.tries_left
    }

    /// Returns whether nothing begins because a host fails.
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Admits a host with this state, and takes its share of the budget if it begins.
    ///
    /// For a failed host the caller asks before each retry, and not again until that retry is over.
    ///
    /// # Errors
    /// Returns why the host has to wait.
    pub fn admit(&mut self, rollout_state: RolloutState) -> Result<(), BlockReason> {
        match rollout_state {
            RolloutState::New | RolloutState::Ready | RolloutState::Down if self.is_paused => {
                Err(BlockReason::Paused)
            }
            RolloutState::Ready if self.left == 0 && self.is_moving => {
                Err(BlockReason::LimitReached)
            }
            RolloutState::Ready if self.left == 0 => Err(BlockReason::Stuck),
            RolloutState::Ready => {
                self.left -= 1;
                self.is_moving = true;
                Ok(())
            }
            // Many may have failed: under a wider limit, or in a deployment that was deleted.
            RolloutState::Down | RolloutState::Failed | RolloutState::Corrected => {
                self.tries_left =
                    self.tries_left.checked_sub(1).ok_or(BlockReason::LimitReached)?;
                Ok(())
            }
            // What has begun is completed, and a host that was never in service uses no budget.
            RolloutState::New
            | RolloutState::Started
            | RolloutState::FailedNew
            | RolloutState::Disturbed => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

    use super::*;
    use crate::run_engine::test_runs::record;

    fn limits(max: IntOrString, pause: bool) -> Limits {
        Limits { max_unavailable: Some(max), pause_on_failure: pause }
    }

    fn gate(limits: &Limits, states: &[RolloutState]) -> DisruptionBudget {
        DisruptionBudget::of(limits, &RolloutCounts::of(states.iter().copied()))
    }

    #[test]
    fn only_hosts_that_were_in_service_take_a_place_and_wait_for_one() {
        let states = [
            RolloutState::Ready,
            RolloutState::Ready,
            RolloutState::Disturbed,
            RolloutState::New,
            RolloutState::Failed,
        ];
        let mut budget = gate(&limits(IntOrString::Int(3), false), &states);
        for rollout_state in [
            RolloutState::New,
            RolloutState::FailedNew,
            RolloutState::Started,
            RolloutState::Failed,
        ] {
            assert_eq!(budget.admit(rollout_state), Ok(()), "{rollout_state:?}");
        }
        assert_eq!(budget.admit(RolloutState::Ready), Ok(()));
        assert_eq!(budget.admit(RolloutState::Ready), Err(BlockReason::LimitReached));
        assert_eq!(budget.admit(RolloutState::Disturbed), Ok(()));
    }

    #[test]
    fn hosts_that_fail_hold_their_places_and_say_so_when_nobody_else_does() {
        let mut budget = gate(
            &limits(IntOrString::Int(2), false),
            &[RolloutState::Failed, RolloutState::Failed],
        );
        assert_eq!(budget.admit(RolloutState::Ready), Err(BlockReason::Stuck));
        assert_eq!(budget.admit(RolloutState::Failed), Ok(()), "it may always run again");
        assert_eq!(BlockReason::Stuck.reason(), BlockReason::LimitReached.reason());
    }

    #[test]
    fn hosts_that_are_down_hold_their_places_and_may_begin_themselves() {
        let states = [RolloutState::Down, RolloutState::Ready, RolloutState::Down];
        let mut budget = gate(&limits(IntOrString::Int(2), false), &states);
        assert_eq!(budget.admit(RolloutState::Ready), Err(BlockReason::Stuck));
        let admitted = [budget.admit(RolloutState::Down), budget.admit(RolloutState::Down)];
        assert_eq!(admitted, [Ok(()), Ok(())]);
        assert_eq!(budget.admit(RolloutState::Down), Err(BlockReason::LimitReached));
        let mut wider = gate(&limits(IntOrString::Int(3), false), &states);
        assert_eq!(wider.admit(RolloutState::Ready), Ok(()));
    }

    #[test]
    fn a_host_that_was_never_in_service_holds_no_place_when_it_fails() {
        let states = [RolloutState::FailedNew, RolloutState::FailedNew, RolloutState::Ready];
        let mut budget = gate(&limits(IntOrString::Int(1), false), &states);
        assert_eq!(budget.admit(RolloutState::Ready), Ok(()));
    }

    #[test]
    fn nobody_in_service_begins_while_a_correction_is_tried_where_it_failed() {
        let states =
            [RolloutState::Corrected, RolloutState::Ready, RolloutState::Ready, RolloutState::New];
        let mut bounded = gate(&limits(IntOrString::Int(2), false), &states);
        assert_eq!(bounded.admit(RolloutState::Corrected), Ok(()));
        assert_eq!(bounded.admit(RolloutState::Ready), Err(BlockReason::LimitReached));
        assert_eq!(bounded.admit(RolloutState::New), Ok(()));
        let mut all_at_once = gate(&limits(IntOrString::String("100%".into()), false), &states);
        assert_eq!(all_at_once.admit(RolloutState::Ready), Ok(()));
    }

    #[test]
    fn hosts_that_were_never_in_service_make_no_share_larger() {
        let limits = Limits::default();
        let states = [[RolloutState::Ready; 10].as_slice(), &[RolloutState::New; 40]].concat();
        assert_eq!(gate(&limits, &states).left(), 2, "a fifth of ten");
    }

    #[test]
    fn no_more_hosts_that_failed_are_tried_at_once_than_may_be_out_of_service() {
        for rollout_state in [RolloutState::Corrected, RolloutState::Failed] {
            let counts = RolloutCounts::of([rollout_state; 50]);
            let mut budget = DisruptionBudget::of(&Limits::default(), &counts);
            let begun = (0..50).filter(|_| budget.admit(rollout_state).is_ok()).count();
            assert_eq!((begun, budget.admit(rollout_state)), (10, Err(BlockReason::LimitReached)));
            let mut later = DisruptionBudget::of(&Limits::default(), &counts.with_trying(9));
            assert_eq!(later.admit(rollout_state), Ok(()), "a place is free");
            assert_eq!(later.admit(rollout_state), Err(BlockReason::LimitReached));
        }
    }

    #[test]
    fn a_failure_stops_what_has_not_begun() {
        for failed in [RolloutState::Failed, RolloutState::FailedNew] {
            let states = [RolloutState::Ready, failed, RolloutState::Started];
            let mut budget = gate(&limits(IntOrString::Int(3), true), &states);
            assert_eq!(budget.admit(RolloutState::Ready), Err(BlockReason::Paused));
            assert_eq!(budget.admit(RolloutState::New), Err(BlockReason::Paused));
            assert_eq!(budget.admit(RolloutState::Started), Ok(()));
            assert_eq!(budget.admit(failed), Ok(()));
        }
    }

    fn service(state: RunState, failures: i64, reason: Option<&str>) -> ServiceRun {
        let reason = reason.map(str::to_owned);
        ServiceRun { failures, reason, ..record(state, "h", 2) }
    }

    #[test]
    fn whether_a_host_was_in_service_decides_how_it_stands() {
        let cases = [
            (service(RunState::Succeeded, 0, None), RolloutState::Ready, RolloutState::New),
            (service(RunState::Running, 0, None), RolloutState::Disturbed, RolloutState::Started),
            (
                service(RunState::Failed, 1, Some("R")),
                RolloutState::Failed,
                RolloutState::FailedNew,
            ),
            (
                service(RunState::Running, 1, Some("R")),
                RolloutState::Failed,
                RolloutState::FailedNew,
            ),
            (service(RunState::Pending, 1, None), RolloutState::Corrected, RolloutState::Started),
        ];
        for (service, in_service, never) in cases {
            let recorded = [service];
            assert_eq!(RolloutState::of(&recorded, true), in_service, "{recorded:?}");
            assert_eq!(RolloutState::of(&recorded, false), never, "{recorded:?}");
        }
    }
}
