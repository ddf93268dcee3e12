//! The computes of each role: who may begin with a deployment, and who is woken when a place is free.
//!
//! How each of them stands is kept in step with the caches by what they announce, so that no pass
//! has to look at all of its peers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::dataplane::Node;
use api::nova::ExternalCompute;
use api::rollout_limits::Limits;
use operator_core::object_key::Key;
use operator_core::run_engine::rollout::RolloutState;
use tokio::sync::OwnedMutexGuard;

use crate::compute::blocked_rollout::BlockedRollout;
use crate::indexes::role_key;
use crate::shared_caches::SharedCaches;

mod rollout_index;

use rollout_index::{Member, Standings, is_trying, state};

/// All computes, by role.
pub struct RolloutCoordinator {
    shared_caches: SharedCaches,
    states: Mutex<Standings>,
    turns: Mutex<BTreeMap<Key, Arc<tokio::sync::Mutex<()>>>>,
}

/// Whether a compute may begin, as the limits of its role have it.
#[derive(Clone, Debug, Default)]
pub enum RolloutSlot {
    /// Nothing limits it, or it has begun already, or it is being tried.
    #[default]
    Free,
    /// It may begin, and no other compute of its role decides for as long as this is kept.
    Taken(Arc<OwnedMutexGuard<()>>),
    /// It has to wait.
    Held(BlockedRollout),
}

impl RolloutSlot {
    /// Why it has to wait.
    pub fn blocked(&self) -> Option<&BlockedRollout> {
        match self {
            Self::Held(held) => Some(held),
            Self::Free | Self::Taken(_) => None,
        }
    }
}

/// Who has to look again after a change.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Requeue {
    /// Computes that wait and may begin now.
    pub computes: Vec<Key>,
    /// Cells whose count of up-to-date computes may be another.
    pub cells: Vec<Key>,
}

impl RolloutCoordinator {
    /// Over caches that their owner watches.
    pub fn new(shared_caches: SharedCaches) -> Self {
        Self { shared_caches, states: Mutex::default(), turns: Mutex::default() }
    }

    /// Takes in what a compute has become; it, its node or both have changed.
    pub fn refresh(&self, key: &Key) -> Requeue {
        let mut states = lock(&self.states);
        // Read under the lock, so that of two who refresh the last one has seen the newest.
        let member = self.shared_caches.computes.get(key).map(|it| {
            let node = self.shared_caches.node_of(&it);
            Member::of(&it, node.as_deref())
        });
        let changed = states.put(key, member);
        let mut stir = Requeue { computes: Vec::new(), cells: changed.cells };
        for (role, pending) in changed.roles {
            let limits = |waiting: &Key| {
                let compute = self.shared_caches.computes.get(waiting);
                let node = compute.and_then(|it| self.shared_caches.node_of(&it));
                node.map(|it| limits(&it)).unwrap_or_default()
            };
            stir.computes.extend(states.next(&role, pending, limits));
        }
        stir
    }

    /// Whether a compute may begin.
    ///
    /// # Guarantees
    /// Of the computes of one role, one at a time gets [`Turn::Taken`], and the next one sees what
    /// it has written: own writes are in the caches before the turn is given back.
    ///
    /// # Caveats
    /// A write whose answer was lost is seen only when the watch tells of it.
    pub async fn turn(&self, compute: &ExternalCompute, node: Option<&Node>) -> RolloutSlot {
        let Some((node, role)) = node.and_then(|it| Some((it, role_key(it)?))) else {
            return RolloutSlot::Free;
        };
        let (limits, state) = (limits(node), state(compute, Some(node)));
        // Of one that has failed this is asked before each try, and not again before the try is over.
        let is_next_try = state.is_retry() && !is_trying(compute, Some(node), state);
        if !state.starts_now() && !is_next_try {
            return RolloutSlot::Free;
        }
        if !lock(&self.states).limited(&role, &limits) {
            return RolloutSlot::Free;
        }
        let held = || lock(&self.states).blocked(&role, &limits, state);
        // A full house needs no queue before its door: who is held is woken when a place is free.
        if let Some(held) = held() {
            return RolloutSlot::Held(held);
        }
        // One that takes no place asks nobody for it.
        if state == RolloutState::New {
            return RolloutSlot::Free;
        }
        let slot = Arc::clone(lock(&self.turns).entry(role.clone()).or_default());
        let slot = slot.lock_owned().await;
        held().map_or_else(|| RolloutSlot::Taken(Arc::new(slot)), RolloutSlot::Held)
    }
}

/// What its role allows, as the node publishes it.
fn limits(node: &Node) -> Limits {
    let status = node.status.as_ref();
    Limits {
        max_unavailable: status.and_then(|it| it.max_unavailable.clone()),
        pause_on_failure: status.and_then(|it| it.pause_on_failure).unwrap_or(false),
    }
}

/// A poisoned lock only means that a reader panicked; what it guards is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
