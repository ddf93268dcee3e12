//! How each compute stands, counted by role: no I/O, so that any order of changes can be tested.

use std::collections::{BTreeMap, BTreeSet};

use common::api::dataplane::Node;
use common::api::nova::ExternalCompute;
use common::conditions;
use common::engine::rollout::{Gate, Hold, Limits, Standing};
use common::hash;
use shell::cache::Key;

use super::role_of;
use crate::compute::config::SERVICE_CONFIG_READY;
use crate::compute::decide::deploys;
use crate::compute::hold::Held;
use crate::compute::inputs;
use crate::compute::status::UP_TO_DATE;
use crate::compute::waits::{INPUT_READY, NODE_READY, NOVA_CELL_READY};
use crate::watched::cell_key;

/// What others need to know of a compute.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Member {
    /// The role of its node.
    role: Option<Key>,
    /// What beginning with it would mean.
    standing: Standing,
    /// Whether it waits for nothing but its turn.
    waits: bool,
    /// Its cell.
    cell: Key,
    /// With which credentials of the cell it was last deployed.
    credentials: String,
}

impl Member {
    pub(super) fn of(compute: &ExternalCompute, node: Option<&Node>) -> Self {
        let status = compute.status.as_ref();
        let deployed = status.map(|it| inputs::of_cell_among(&it.deployed_inputs));
        let standing = standing(compute);
        Self {
            role: node.and_then(role_of),
            standing,
            waits: standing.begins() && waits(compute, node),
            cell: cell_key(compute),
            credentials: hash::short(&deployed),
        }
    }
}

impl Member {
    /// Whether a compute that was so far so leaves a place to another one of its role, now that it is
    /// as `next`: its own, or the one that it was woken for and does not take.
    fn gives_up(&self, next: Option<&Self>) -> bool {
        let Some(next) = next.filter(|it| it.role == self.role) else { return true };
        match self.standing {
            Standing::Disturbed | Standing::Failed => next.standing != self.standing,
            Standing::New | Standing::Ready => self.waits && !next.waits && next.standing.begins(),
            Standing::Started => false,
        }
    }
}

/// What beginning or going on with a compute means for a rollout.
pub(super) fn standing(compute: &ExternalCompute) -> Standing {
    let status = compute.status.as_ref();
    let recorded = status.map(|it| it.services.as_slice()).unwrap_or_default();
    Standing::of(recorded, status.is_some_and(|it| !it.deployed_inputs.is_empty()))
}

/// Whether its status names no other reason for not being up to date.
fn waits(compute: &ExternalCompute, node: Option<&Node>) -> bool {
    let Some(status) = &compute.status else { return false };
    let holds = |it: &&str| conditions::is_true(&status.conditions, it);
    deploys(compute, node)
        && [INPUT_READY, NODE_READY, NOVA_CELL_READY, SERVICE_CONFIG_READY].iter().all(holds)
        && !holds(&UP_TO_DATE)
}

/// The computes of one role.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Group {
    total: usize,
    disturbed: usize,
    failed: BTreeSet<Key>,
    /// Deployed ones that wait for their turn.
    waiting: BTreeSet<Key>,
    /// Others that wait, which take no place.
    new: BTreeSet<Key>,
}

impl Group {
    fn add(&mut self, key: &Key, member: &Member) {
        self.total += 1;
        match member.standing {
            Standing::Disturbed => self.disturbed += 1,
            Standing::Failed => drop(self.failed.insert(key.clone())),
            Standing::Ready if member.waits => drop(self.waiting.insert(key.clone())),
            Standing::New if member.waits => drop(self.new.insert(key.clone())),
            Standing::Ready | Standing::New | Standing::Started => {}
        }
    }

    fn remove(&mut self, key: &Key, member: &Member) {
        self.total -= 1;
        if member.standing == Standing::Disturbed {
            self.disturbed -= 1;
        }
        for set in [&mut self.failed, &mut self.waiting, &mut self.new] {
            set.remove(key);
        }
    }

    fn gate(&self, limits: &Limits) -> Gate {
        Gate::counted(limits, self.total, self.disturbed, self.failed.len())
    }
}

/// What those of a role hear that wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum News {
    /// A place is free.
    Place,
    /// One of them fails, or none does any more.
    Failing,
}

/// What a change concerns.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Changed {
    /// Roles with news for those that wait.
    pub(super) roles: Vec<(Key, News)>,
    /// Cells whose computes use other credentials now, or are others.
    pub(super) cells: Vec<Key>,
}

/// All computes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Standings {
    members: BTreeMap<Key, Member>,
    groups: BTreeMap<Key, Group>,
}

impl Standings {
    /// Replaces what is known of a compute; `None` where it is gone.
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
        let failing_before: Vec<bool> = concerned.iter().map(|it| self.is_failing(it)).collect();
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
        for (role, was_failing) in concerned.into_iter().zip(failing_before) {
            if self.is_failing(&role) != was_failing {
                roles.push((role, News::Failing));
            } else if Some(&role) == left.as_ref() {
                roles.push((role, News::Place));
            }
        }
        Changed { roles, cells }
    }

    fn is_failing(&self, role: &Key) -> bool {
        self.groups.get(role).is_some_and(|it| !it.failed.is_empty())
    }

    fn leave(&mut self, key: &Key, member: &Member) {
        let Some(role) = &member.role else { return };
        let Some(group) = self.groups.get_mut(role) else { return };
        group.remove(key, member);
        if group.total == 0 {
            self.groups.remove(role);
        }
    }

    /// Who of a role is to look again. `limits` tells what the node of a compute publishes.
    pub(super) fn next(&self, role: &Key, news: News, limits: impl Fn(&Key) -> Limits) -> Vec<Key> {
        let Some(group) = self.groups.get(role) else { return Vec::new() };
        let Some(first) = group.waiting.first().or_else(|| group.new.first()) else {
            return Vec::new();
        };
        let limits = limits(first);
        // Without limits nobody waits for others.
        if !limits.is_set() {
            return Vec::new();
        }
        let gate = group.gate(&limits);
        let (may_new, n_waiting) = match news {
            // All of them say why they wait.
            News::Failing if limits.pause_on_failure => (true, group.waiting.len()),
            News::Failing | News::Place => (!gate.is_paused(), gate.left()),
        };
        let new = group.new.iter().filter(|_| may_new);
        new.chain(group.waiting.iter().take(n_waiting)).cloned().collect()
    }

    /// Why a compute of that standing may not begin.
    pub(super) fn held(&self, role: &Key, limits: &Limits, standing: Standing) -> Option<Held> {
        let group = self.groups.get(role)?;
        match group.gate(limits).admit(standing) {
            Ok(()) => None,
            Err(Hold::Turn) => Some(Held::Turn),
            Err(Hold::Paused) => {
                let failing = group.failed.first().map(|it| it.name.clone()).unwrap_or_default();
                Some(Held::Paused { failing })
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
        let standing = prop_oneof![
            Just(Standing::New),
            Just(Standing::Started),
            Just(Standing::Ready),
            Just(Standing::Disturbed),
            Just(Standing::Failed),
        ];
        let role = prop::option::of("[ab]");
        let member = (role, standing, any::<bool>(), "[xy]", "[12]");
        prop::option::weighted(
            0.8,
            member.prop_map(|(role, standing, waits, cell, credentials)| Member {
                role: role.map(|it| Key::new("ns", it)),
                standing,
                waits: waits && standing.begins(),
                cell: Key::new("ns", cell),
                credentials,
            }),
        )
    }

    /// Whether another compute may begin now, which was not so before: then somebody has to hear it.
    fn opens(before: &Standings, after: &Standings, limits: &Limits) -> Vec<Key> {
        let left =
            |it: &Standings, role: &Key| it.groups.get(role).map(|it| it.gate(limits).left());
        let waits = |role: &&Key| after.groups.get(*role).is_some_and(|it| !it.waiting.is_empty());
        let opens = |role: &&Key| left(after, role) > left(before, role);
        before.groups.keys().filter(waits).filter(opens).cloned().collect()
    }

    proptest! {
        #[test]
        fn what_is_counted_is_what_is_there_and_no_free_place_goes_unheard(
            changes in prop::collection::vec((0_u8..6, member()), 1..40),
            pause_on_failure in any::<bool>(),
        ) {
            let max_unavailable = Some(IntOrString::Int(1));
            let limits = Limits { max_unavailable, pause_on_failure };
            let mut standings = Standings::default();
            for (key, member) in changes {
                let key = Key::new("ns", key.to_string());
                let before = standings.clone();
                let changed = standings.put(&key, member);
                let mut anew = Standings::default();
                for (key, member) in &standings.members {
                    anew.put(key, Some(member.clone()));
                }
                prop_assert_eq!(&anew, &standings);
                for role in opens(&before, &standings, &limits) {
                    let news = changed.roles.iter().find(|it| it.0 == role);
                    let woken = news.map(|it| standings.next(&role, it.1, |_| limits.clone()));
                    prop_assert!(woken.is_some_and(|it| !it.is_empty()), "{:?}", changed);
                }
            }
        }
    }
}
