//! The status of a data plane, from its evaluation.

use api::conditions::{self, ConditionDraft, READY, join_with_more, merge_conditions};
use api::dataplane::{DataPlane, DataPlaneStatus};
use api::problem::Problem;
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::plan::{Step, Target, status_step};
use operator_core::rejected_write::{RejectedWrite, WRITES_ACCEPTED};
use operator_core::run_engine::host_progress::count;

use crate::annotations::ADOPT;
use crate::conditions::{NAMED, first_texts};
use crate::data_plane::children::{ChildState, Entry, title};
use crate::data_plane::map::Map;
use crate::data_plane::rollup::{Rollup, Seen, deployment};
use crate::reasons;

/// Condition type: every role and node of the maps exists and has the stated fields.
pub const SETUP_READY: &str = "SetupReady";
/// Condition type: roles or nodes belong to the data plane and are no longer in its maps.
pub const ORPHANED: &str = "Orphaned";

/// Returns the status step, if the status changes.
///
/// Other writes come before it, so without a rejection none is outstanding.
pub fn step(seen: &Seen<'_>, rejected: Option<&RejectedWrite>, now: Timestamp) -> Option<Step> {
    let data_plane: &DataPlane = &seen.seen.data_plane;
    let roles = Rollup::of(seen, Map::Roles);
    let nodes = Rollup::of(seen, Map::Nodes);
    let observed = data_plane.status.as_ref();
    let deployment = deployment(&roles, &nodes);
    let good = deployment.clone().with_type(READY);
    let rejected = rejected.map(|it| it.condition(WRITES_ACCEPTED, data_plane.conditions()));
    let is_deployed = deployment.holds() && nodes.total > 0;
    let mut all: Vec<ConditionDraft> =
        [Some(setup(seen)), rejected, Some(deployment)].into_iter().flatten().collect();
    all.extend([conditions::ready(&all, good), orphaned(seen)]);
    let desired = DataPlaneStatus {
        observed_generation: data_plane.metadata.generation,
        conditions: merge_conditions(
            data_plane.conditions(),
            all,
            data_plane.metadata.generation,
            now,
        ),
        deployed: is_deployed.then_some(true),
        roles: count(roles.total),
        ready_roles: count(roles.n_ready),
        nodes: count(nodes.total),
        ready_nodes: count(nodes.n_ready),
        up_to_date_nodes: count(nodes.n_up_to_date),
        orphans: count(seen.orphans.len()),
    };
    status_step(Target::of::<DataPlane>(data_plane), observed, &desired)
}

/// Reports whether the objects match the maps. Problems that only a user can fix come first.
fn setup(seen: &Seen<'_>) -> ConditionDraft {
    let problems: Vec<Problem> =
        seen.entries.iter().filter_map(|it| fault(&seen.seen.data_plane, it)).collect();
    if let Some(first) = problems.first() {
        let texts = problems.iter().map(|it| it.message.clone()).collect();
        return first.reason.condition(SETUP_READY, bounded(texts));
    }
    let is_going = |it: &&Entry<'_>| it.state == ChildState::Terminating;
    let going: Vec<String> = seen.entries.iter().filter(is_going).map(Entry::title).collect();
    if !going.is_empty() {
        let text = format!("Being deleted, and made again when gone: {}", listed(going));
        return reasons::data_plane::TERMINATING.condition(SETUP_READY, text);
    }
    let total = seen.entries.len();
    let n_applied = seen.entries.iter().filter(|it| it.is_applied()).count();
    let text = format!("{n_applied}/{total} entries of the maps are applied.");
    if n_applied < total {
        return reasons::data_plane::APPLYING.condition(SETUP_READY, text);
    }
    reasons::data_plane::APPLIED.condition(SETUP_READY, text)
}

/// Returns why an entry cannot be applied without a user's decision; `None` if it can.
fn fault(data_plane: &DataPlane, entry: &Entry<'_>) -> Option<Problem> {
    let (title, name, field) = (entry.title(), entry.name, entry.map.field());
    match &entry.state {
        ChildState::Unnameable => Some(Problem::new(
            &reasons::data_plane::INVALID_NAME,
            format!(
                "The key {name:?} of spec.{field} cannot be a name: use lower-case letters, digits, \
                 '-' and '.'."
            ),
        )),
        ChildState::Foreign { owner: Some(owner) } => Some(Problem::new(
            &reasons::data_plane::NOT_OURS,
            format!(
                "{title} belongs to {owner} and is left alone: take the key out of spec.{field}, \
                 or let {owner} give it up."
            ),
        )),
        ChildState::Foreign { owner: None } => Some(Problem::new(
            &reasons::data_plane::NOT_OURS,
            format!(
                "{title} was made by others and is left alone: take the key out of spec.{field}, \
                 or hand it over with kubectl annotate -n {} {}/{name} {ADOPT}={}.",
                data_plane.namespace().unwrap_or_default(),
                entry.map.kind().kind.to_lowercase(),
                data_plane.name_any()
            ),
        )),
        ChildState::Missing
        | ChildState::Offered
        | ChildState::Ours { .. }
        | ChildState::Terminating => None,
    }
}

/// Reports objects that were removed from the maps and still exist. Does not affect `Ready`.
fn orphaned(seen: &Seen<'_>) -> ConditionDraft {
    let orphans = seen.orphans;
    if orphans.is_empty() {
        let text = "Whatever belongs to the data plane is in its maps.";
        return reasons::data_plane::NO_ORPHANS.condition(ORPHANED, text);
    }
    let names = listed(orphans.iter().map(|it| title(it.map, &it.target.name)).collect());
    if !seen.seen.data_plane.spec.prune {
        let text = format!(
            "{} no longer in the maps and left as they are: {names} Put the keys back, delete the \
             objects, or set spec.prune to true.",
            orphans.len()
        );
        return reasons::data_plane::ORPHANS_KEPT.condition(ORPHANED, text);
    }
    let text = format!("{} no longer in the maps and being deleted: {names}", orphans.len());
    let followed = orphans.iter().find(|it| it.n_followers > 0);
    let text = match followed {
        Some(role) => format!(
            "{text} {} stays for as long as nodes name it ({}).",
            title(role.map, &role.target.name),
            role.n_followers
        ),
        None => text,
    };
    reasons::data_plane::PRUNING.condition(ORPHANED, text)
}

/// Joins the first few sentences and counts the rest.
fn bounded(mut texts: Vec<String>) -> String {
    let n_more = texts.len().saturating_sub(NAMED);
    texts.truncate(NAMED);
    first_texts(texts, n_more)
}

/// Joins the first few names into one sentence and counts the rest.
fn listed(mut names: Vec<String>) -> String {
    let n_more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    format!("{}.", join_with_more(names, ", ", n_more))
}
