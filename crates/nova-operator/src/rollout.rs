//! The rollouts of computes, by role: which compute may start a deployment, and which ones to
//! enqueue when a slot becomes free.
//!
//! Cache events keep the rollout states current, so a reconciliation does not have to read all
//! computes of the role.

pub mod blocked_rollout;
pub mod compute_state;
pub mod deploy_strategy;
mod rollout_index;
pub mod slot;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use api::dataplane::Node;
use api::nova::ExternalCompute;
use api::rollout_limits::Limits;
use operator_core::object_key::Key;
use operator_core::run_engine::rollout::RolloutState;
use parking_lot::Mutex;

use crate::nova::drain::before::{DrainBefore, drain_before};
use crate::shared_caches::SharedCaches;
use crate::shared_caches::indexes::role_key;

use compute_state::{is_trying, state};
use rollout_index::{Member, RolloutIndex};
use slot::RolloutSlot;

/// The rollout states of all computes, by role.
pub struct RolloutCoordinator {
    shared_caches: SharedCaches,
    states: Mutex<RolloutIndex>,
    slots: Mutex<BTreeMap<Key, Arc<tokio::sync::Mutex<()>>>>,
}

/// The objects to enqueue after a change.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Requeue {
    /// Computes that were waiting and may start now.
    pub computes: Vec<Key>,
    /// Cells whose count of up-to-date computes may have changed.
    pub cells: Vec<Key>,
}

impl RolloutCoordinator {
    /// Creates a coordinator over caches that the caller watches.
    pub fn new(shared_caches: SharedCaches) -> Self {
        Self { shared_caches, states: Mutex::default(), slots: Mutex::default() }
    }

    /// Updates the rollout state of a compute after a change of the compute or of its node.
    pub fn refresh(&self, key: &Key) -> Requeue {
        let mut states = self.states.lock();
        // Read under the lock, so that the last of concurrent callers has read the newest object.
        let member = self.shared_caches.computes.get(key).map(|it| {
            let node = self.shared_caches.node_of(&it);
            Member::of(&it, node.as_deref())
        });
        let changed = states.put(key, member);
        let mut requeue = Requeue { computes: Vec::new(), cells: changed.cells };
        for (role, pending) in changed.roles {
            let limits = |waiting: &Key| {
                let compute = self.shared_caches.computes.get(waiting);
                let node = compute.and_then(|it| self.shared_caches.node_of(&it));
                node.map(|it| self.limits(&it)).unwrap_or_default()
            };
            requeue.computes.extend(states.next(&role, pending, limits));
        }
        requeue
    }

    /// Returns whether a compute may start.
    ///
    /// # Guarantees
    /// Of the computes of one role, only one at a time gets [`RolloutSlot::Taken`], and the next
    /// one sees its writes: own writes are in the caches before the slot is released.
    ///
    /// # Caveats
    /// A write whose response was lost becomes visible only with its watch event.
    pub async fn slot(&self, compute: &ExternalCompute, node: Option<&Node>) -> RolloutSlot {
        let limited = node.filter(|_| !compute.is_observed());
        let Some((node, role)) = limited.and_then(|it| Some((it, role_key(it)?))) else {
            return RolloutSlot::Free;
        };
        let (limits, state) = (self.limits(node), state(compute, Some(node)));
        // A failed compute is checked before each retry, and not again while that attempt is
        // running.
        let is_next_try = state.is_retry() && !is_trying(compute, Some(node), state);
        if !state.starts_now() && !is_next_try {
            return RolloutSlot::Free;
        }
        if !self.states.lock().limited(&role, &limits) {
            return RolloutSlot::Free;
        }
        let held = || {
            let blocked = self.states.lock().blocked(&role, &limits, state)?;
            Some(if pauses(node) { blocked } else { blocked.by_drain() })
        };
        // When no slot is free there is nothing to wait for: a freed slot enqueues the compute.
        if let Some(held) = held() {
            return RolloutSlot::Held(held);
        }
        // A new compute takes no slot, so it does not have to wait for the lock.
        if state == RolloutState::New {
            return RolloutSlot::Free;
        }
        let slot = Arc::clone(self.slots.lock().entry(role.clone()).or_default());
        let slot = slot.lock_owned().await;
        held().map_or_else(|| RolloutSlot::Taken(Arc::new(slot)), RolloutSlot::Held)
    }

    /// Returns the rollout limits of the role, as the node's status publishes them. A rollout that
    /// drains hosts first stops at the first failure in any case.
    fn limits(&self, node: &Node) -> Limits {
        let group = self.shared_caches.group_of(node);
        let drains = drain_before(group.as_ref(), node) == DrainBefore::Yes;
        Limits {
            max_unavailable: node.status.as_ref().and_then(|it| it.max_unavailable.clone()),
            pause_on_failure: pauses(node) || drains,
        }
    }
}

/// Whether the node's status publishes that a rollout of its role pauses at the first failure.
fn pauses(node: &Node) -> bool {
    node.status.as_ref().and_then(|it| it.pause_on_failure).unwrap_or(false)
}
