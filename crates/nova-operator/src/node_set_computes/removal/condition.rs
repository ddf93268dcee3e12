//! The condition `nova.openstack.org/HostsRemoved` of a node set.

use api::conditions::{Condition, ConditionDraft, ready};
use api::dataplane::NodeSet;
use nova_config::conditions::HOSTS_REMOVED;

use crate::drain::condition::counted;
use crate::drain::progress::HostProgress;
use crate::node_set_computes::removal::decide::Decision;
use crate::node_set_computes::removal::observed::Removals;
use crate::reasons;

/// Of how many hosts the message says what holds them.
const EXPLAINED: usize = 3;

/// Returns the condition; `None` where no host is held.
pub fn condition(
    removals: &Removals,
    decision: &Decision,
    previous: Option<&Condition>,
) -> Option<ConditionDraft> {
    let held = &decision.held;
    let (_, first) = held.first()?;
    let is_unread = removals.terminating.iter().any(|it| {
        let is_held = held.iter().any(|(name, _)| *name == it.name);
        is_held && it.cell.is_some() && it.progress == HostProgress::Pending
    });
    // What was reported before stays, so that a restart of the operator changes nothing.
    if let Some(before) = previous.filter(|_| is_unread && !removals.is_skipped) {
        return Some(ConditionDraft::repeated(before));
    }
    let drafts: Vec<ConditionDraft> = held.iter().map(|(_, it)| it.clone()).collect();
    let mut why: Vec<String> =
        held.iter().take(EXPLAINED).map(|(name, it)| format!("{name}: {}", it.message)).collect();
    if let Some(n_more) = held.len().checked_sub(EXPLAINED).filter(|it| *it > 0) {
        why.push(format!("{n_more} more are being removed."));
    }
    let n = counted(held.len(), "host");
    let text = format!("{n} to be removed from nova; {}", why.join(" "));
    Some(ready(&drafts, first.clone()).with_type(HOSTS_REMOVED).with_message(text))
}

/// Whether a host of a node set waits until another object has its name no more.
pub fn is_contested(set: &NodeSet) -> bool {
    let conditions = set.status.iter().flat_map(|it| &it.conditions);
    let mut reasons = conditions.map(|it| it.reason.as_str());
    reasons.any(|it| it == reasons::drain::HOST_CONTESTED.word)
}
