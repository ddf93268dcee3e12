//! The rollout state of each compute, counted by role: without I/O, so that tests can apply changes
//! in any order.

use std::collections::{BTreeMap, BTreeSet};

use api::dataplane::Node;
use api::nova::ExternalCompute;
use api::rollout_limits::Limits;
use operator_core::hash;
use operator_core::object_key::Key;
use operator_core::run_engine::rollout::{
    BlockReason, DisruptionBudget, RolloutCounts, RolloutState, named,
};

use super::compute_state::{is_trying, state, waits};
use crate::cell_inputs::of_cell_among;
use crate::rollout::blocked_rollout::BlockedRollout;
use crate::rollout::deploy_strategy::is_left_out;
use crate::shared_caches::indexes::{cell_key, role_key};

/// The rollout state of a compute, as far as its peers depend on it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Member {
    /// The role of its node, or `None` when it does not count among the role's computes.
    role: Option<Key>,
    /// The rollout state.
    state: RolloutState,
    /// Whether it waits for nothing but a slot.
    waits: bool,
    /// Whether it holds a slot with an attempt in progress; for a failed compute, whether it is
    /// being retried.
    tries: bool,
    /// Its cell.
    cell: Key,
    /// Digest of the cell's credentials in its last deployment.
    credentials: String,
}

impl Member {
    pub(super) fn of(compute: &ExternalCompute, node: Option<&Node>) -> Self {
        let status = compute.status.as_ref();
        let deployed = status.map(|it| of_cell_among(&it.deployed_inputs));
        let state = state(compute, node);
        // Who deploys an observed compute bounds how many are out of service.
        let counts = |it: &&Node| !compute.is_observed() && !is_left_out(compute, it);
        let role = node.filter(counts).and_then(role_key);
        Self {
            role,
            state,
            waits: waits(compute, node, state),
            tries: is_trying(compute, node, state),
            cell: cell_key(compute),
            credentials: hash::short(&deployed),
        }
    }

    /// Whether the change from `self` to `next` frees a slot for another compute of the role: its
    /// own, or the one that it was enqueued for and does not take.
    fn gives_up(&self, next: Option<&Self>) -> bool {
        let Some(next) = next.filter(|it| it.role == self.role) else { return true };
        let was_next_try = self.waits && self.state.holds_place();
        if !next.tries && (self.tries || was_next_try && !next.waits) {
            return true;
        }
        match self.state {
            // Waiting computes yield to the retry of a corrected compute.
            RolloutState::Corrected => next.state != self.state,
            RolloutState::Down | RolloutState::Disturbed | RolloutState::Failed => {
                !next.state.counts_as_unavailable()
            }
            RolloutState::New | RolloutState::Ready => {
                self.waits && !next.waits && next.state.starts_now()
            }
            RolloutState::Started | RolloutState::FailedNew => false,
        }
    }
}

/// The computes of one role.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Group {
    counts: RolloutCounts,
    /// The failed computes, and whether each of them holds a slot.
    failing: BTreeMap<Key, bool>,
    /// Deployed computes that wait for a slot.
    waiting: BTreeSet<Key>,
    /// New computes that wait, which take no slot.
    new: BTreeSet<Key>,
    /// Computes that are unavailable already, and wait until as few others have a run that they
    /// may have one.
    next_tries: BTreeSet<Key>,
    /// The computes that are down, each of which holds a slot.
    down: BTreeSet<Key>,
    /// The number of attempts in progress among the computes that hold a slot.
    n_tries: usize,
}

impl Group {
    fn add(&mut self, key: &Key, member: &Member) {
        let Member { state, waits, tries, .. } = *member;
        self.counts.add(state);
        self.n_tries += usize::from(tries);
        if state.fails() {
            self.failing.insert(key.clone(), state.counts_as_unavailable());
        }
        if waits && state == RolloutState::Ready {
            self.waiting.insert(key.clone());
        }
        if waits && state == RolloutState::New {
            self.new.insert(key.clone());
        }
        if waits && state.holds_place() {
            self.next_tries.insert(key.clone());
        }
        if state == RolloutState::Down {
            self.down.insert(key.clone());
        }
    }

    fn remove(&mut self, key: &Key, member: &Member) {
        self.counts.remove(member.state);
        self.n_tries = self.n_tries.saturating_sub(usize::from(member.tries));
        self.failing.remove(key);
        for set in [&mut self.waiting, &mut self.new, &mut self.next_tries, &mut self.down] {
            set.remove(key);
        }
    }

    fn budget(&self, limits: &Limits) -> DisruptionBudget {
        DisruptionBudget::of(limits, &self.counts.clone().with_trying(self.n_tries))
    }

    /// Returns the first computes that hold a slot because they fail or are down.
    fn named(&self) -> String {
        let failing = self.failing.iter().filter(|(_, holds)| **holds).map(|(key, _)| key);
        let all: BTreeSet<&Key> = failing.chain(&self.down).collect();
        let names: Vec<&str> = all.into_iter().map(|it| it.name.as_str()).collect();
        named(&names)
    }

    /// Returns the computes that hold all used slots when none of these is being deployed; else
    /// `None`.
    fn at_rest(&self) -> Option<String> {
        let names = (!self.counts.is_moving()).then(|| self.named());
        names.filter(|it| !it.is_empty())
    }
}

/// A change that concerns the waiting computes of a role.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum News {
    /// A slot is free.
    Place,
    /// The first compute failed, or the last failure was corrected; or other computes than before
    /// hold the slots because they fail or are down.
    Failing,
}

/// The effects of a change.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Changed {
    /// The roles whose waiting computes are concerned.
    pub(super) roles: Vec<(Key, News)>,
    /// Cells whose computes, or their credentials, have changed.
    pub(super) cells: Vec<Key>,
}

/// What the waiting computes of a role may have to report.
#[derive(Default)]
struct ReportedProgress {
    is_failing: bool,
    at_rest: Option<String>,
    in_service: usize,
}

/// The rollout states of all computes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct RolloutIndex {
    members: BTreeMap<Key, Member>,
    groups: BTreeMap<Key, Group>,
}

impl RolloutIndex {
    /// Replaces the state of a compute; `None` removes it.
    pub(super) fn put(&mut self, key: &Key, member: Option<Member>) -> Changed {
        let old = self.members.get(key).cloned();
        if old == member {
            return Changed::default();
        }
        let of_cell =
            |it: &Option<Member>| it.as_ref().map(|it| (it.cell.clone(), it.credentials.clone()));
        let mut cells = Vec::new();
        if of_cell(&old) != of_cell(&member) {
            cells.extend([&old, &member].into_iter().flatten().map(|it| it.cell.clone()));
            cells.dedup();
        }
        let concerned: BTreeSet<Key> =
            [&old, &member].into_iter().flatten().filter_map(|it| it.role.clone()).collect();
        let before: Vec<ReportedProgress> = concerned.iter().map(|it| self.progress(it)).collect();
        let left = old.as_ref().filter(|it| it.gives_up(member.as_ref()));
        let left = left.and_then(|it| it.role.clone());
        if let Some(old) = self.members.remove(key) {
            self.leave(key, &old);
        }
        if let Some(member) = member {
            if let Some(role) = &member.role {
                self.groups.entry(role.clone()).or_default().add(key, &member);
            }
            self.members.insert(key.clone(), member);
        }
        let mut roles = Vec::new();
        for (role, before) in concerned.into_iter().zip(before) {
            let after = self.progress(&role);
            // A percentage of another number of computes may allow one slot more.
            let may_have_place =
                Some(&role) == left.as_ref() || after.in_service != before.in_service;
            if (after.is_failing, &after.at_rest) != (before.is_failing, &before.at_rest) {
                roles.push((role, News::Failing));
            } else if may_have_place {
                roles.push((role, News::Place));
            }
        }
        Changed { roles, cells }
    }

    /// Returns what the waiting computes of a role report.
    fn progress(&self, role: &Key) -> ReportedProgress {
        let Some(group) = self.groups.get(role) else { return ReportedProgress::default() };
        ReportedProgress {
            is_failing: group.counts.is_failing(),
            at_rest: group.at_rest(),
            in_service: group.counts.in_service(),
        }
    }

    fn leave(&mut self, key: &Key, member: &Member) {
        let Some(role) = &member.role else { return };
        let Some(group) = self.groups.get_mut(role) else { return };
        group.remove(key, member);
        if group.counts.total() == 0 {
            self.groups.remove(role);
        }
    }

    /// Returns the computes of a role to enqueue. `limits` returns the limits that the node of a
    /// compute publishes.
    pub(super) fn next(
        &self,
        role: &Key,
        pending: News,
        limits: impl Fn(&Key) -> Limits,
    ) -> Vec<Key> {
        let Some(group) = self.groups.get(role) else { return Vec::new() };
        let mut waiting = [&group.waiting, &group.new, &group.next_tries].into_iter().flatten();
        let Some(first) = waiting.next() else { return Vec::new() };
        let limits = limits(first);
        let budget = group.budget(&limits);
        let (may_new, n_waiting) = match pending {
            // All of them report why they wait.
            News::Failing if limits.pause_on_failure => (true, group.waiting.len()),
            News::Failing if budget.left() == 0 => (true, group.waiting.len()),
            News::Failing | News::Place => (!budget.is_paused(), budget.left()),
        };
        let new = group.new.iter().filter(|_| may_new);
        let next_tries = group.next_tries.iter().take(budget.tries_left());
        next_tries.chain(new).chain(group.waiting.iter().take(n_waiting)).cloned().collect()
    }

    /// Whether the limits may make computes of a role wait for each other.
    pub(super) fn limited(&self, role: &Key, limits: &Limits) -> bool {
        let in_service = self.groups.get(role).map_or(0, |it| it.counts.in_service());
        limits.pause_on_failure || limits.bounds(in_service)
    }

    /// Returns why a compute in that state may not start, or `None` when it may.
    pub(super) fn blocked(
        &self,
        role: &Key,
        limits: &Limits,
        state: RolloutState,
    ) -> Option<BlockedRollout> {
        let group = self.groups.get(role)?;
        match group.budget(limits).admit(state) {
            Ok(()) => None,
            Err(BlockReason::LimitReached) if state.is_retry() => Some(BlockedRollout::Try),
            Err(BlockReason::LimitReached) => Some(BlockedRollout::Turn),
            Err(BlockReason::Stuck) => Some(BlockedRollout::Stuck { failing: group.named() }),
            Err(BlockReason::Paused) => {
                let first = group.failing.keys().next();
                Some(BlockedRollout::Paused {
                    failing: first.map(|it| it.name.clone()).unwrap_or_default(),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
    use proptest::prelude::*;

    use super::*;

    fn member() -> impl Strategy<Value = Option<Member>> {
        let state = prop_oneof![
            Just(RolloutState::New),
            Just(RolloutState::Started),
            Just(RolloutState::Ready),
            Just(RolloutState::Down),
            Just(RolloutState::FailedNew),
            Just(RolloutState::Disturbed),
            Just(RolloutState::Failed),
            Just(RolloutState::Corrected),
        ];
        let role = prop::option::of("[ab]");
        let member = (role, state, any::<[bool; 2]>(), "[xy]", "[12]");
        prop::option::weighted(
            0.8,
            member.prop_map(|(role, state, [waits, tries], cell, credentials)| Member {
                role: role.map(|it| Key::new("ns", it)),
                state,
                waits: waits && (state.starts_now() || state.is_retry() && !tries),
                tries: tries && state.counts_as_unavailable() && state != RolloutState::Down,
                cell: Key::new("ns", cell),
                credentials,
            }),
        )
    }

    /// Returns the roles in which another compute may start now and could not before, so that a
    /// waiting one has to be enqueued.
    fn opens(before: &RolloutIndex, after: &RolloutIndex, limits: &Limits) -> Vec<Key> {
        let left =
            |it: &RolloutIndex, role: &Key| it.groups.get(role).map(|it| it.budget(limits).left());
        let waits = |role: &&Key| after.groups.get(*role).is_some_and(|it| !it.waiting.is_empty());
        let opens = |role: &&Key| left(after, role) > left(before, role);
        before.groups.keys().filter(waits).filter(opens).cloned().collect()
    }

    /// Returns the roles in which a waiting failed compute may be retried now and could not before.
    fn opens_tries(before: &RolloutIndex, after: &RolloutIndex, limits: &Limits) -> Vec<Key> {
        let left = |it: &RolloutIndex, role: &Key| {
            it.groups.get(role).map(|it| it.budget(limits).tries_left())
        };
        let waits =
            |role: &&Key| after.groups.get(*role).is_some_and(|it| !it.next_tries.is_empty());
        let opens = |role: &&Key| left(after, role) > left(before, role);
        before.groups.keys().filter(waits).filter(opens).cloned().collect()
    }

    #[test]
    fn nobody_begins_while_a_correction_is_tried_though_places_are_free() {
        let member = |state: RolloutState| Member {
            role: Some(Key::new("ns", "a")),
            state,
            waits: state.starts_now(),
            tries: false,
            cell: Key::new("ns", "x"),
            credentials: "1".into(),
        };
        let mut states = RolloutIndex::default();
        let all = [
            RolloutState::Corrected,
            RolloutState::Ready,
            RolloutState::Ready,
            RolloutState::Ready,
        ];
        for (idx, state) in all.into_iter().enumerate() {
            states.put(&Key::new("ns", idx.to_string()), Some(member(state)));
        }
        let limits = Limits { max_unavailable: Some(IntOrString::Int(3)), pause_on_failure: false };
        let role = Key::new("ns", "a");
        assert_eq!(states.blocked(&role, &limits, RolloutState::Ready), Some(BlockedRollout::Turn));
        assert_eq!(states.next(&role, News::Place, |_| limits.clone()), []);
        let failed = member(RolloutState::Failed);
        states.put(&Key::new("ns", "0"), Some(failed));
        assert_eq!(states.blocked(&role, &limits, RolloutState::Ready), None);
        assert_eq!(states.next(&role, News::Place, |_| limits.clone()).len(), 2);
    }

    proptest! {
        #[test]
        fn what_is_counted_is_what_is_there_and_no_free_place_goes_unheard(
            changes in prop::collection::vec((0_u8..6, member()), 1..40),
            pause_on_failure in any::<bool>(),
            max in prop_oneof![
                (1..3).prop_map(IntOrString::Int),
                Just(IntOrString::String("50%".into())),
            ],
        ) {
            let max_unavailable = Some(max);
            let limits = Limits { max_unavailable, pause_on_failure };
            let mut states = RolloutIndex::default();
            for (key, member) in changes {
                let key = Key::new("ns", key.to_string());
                let before = states.clone();
                let changed = states.put(&key, member);
                let mut anew = RolloutIndex::default();
                for (key, member) in &states.members {
                    anew.put(key, Some(member.clone()));
                }
                prop_assert_eq!(&anew, &states);
                for role in opens(&before, &states, &limits) {
                    let pending = changed.roles.iter().find(|it| it.0 == role);
                    let woken = pending.map(|it| states.next(&role, it.1, |_| limits.clone()));
                    prop_assert!(woken.is_some_and(|it| !it.is_empty()), "{:?}", changed);
                }
                for role in opens_tries(&before, &states, &limits) {
                    let pending = changed.roles.iter().find(|it| it.0 == role);
                    let woken = pending.map(|it| states.next(&role, it.1, |_| limits.clone()));
                    let is_next = |it: &Key| states.groups[&role].next_tries.contains(it);
                    prop_assert!(woken.is_some_and(|it| it.iter().any(is_next)), "{:?}", changed);
                }
            }
        }
    }
}
