//! Counts of a data plane's roles and nodes by progress, with the first causes by name.

use api::conditions::{self, Condition, ConditionDraft, ConditionStatus, READY};
use api::dataplane::condition_types::{DEPLOYMENT_READY, INPUT_READY, UP_TO_DATE};
use api::dataplane::{Node, ObservedRole, Role};

use crate::conditions::{NAMED, first_texts, rank};
use crate::data_plane::children::{ChildState, Entry, title};
use crate::data_plane::map::Map;
use crate::data_plane::observed::Observed;
use crate::data_plane::orphans::Orphan;
use crate::reasons;

/// Length limit of the part of a message about one cause.
const TEXT: usize = 300;

/// Counts of one map.
pub struct Rollup {
    /// How many entries it has.
    pub total: usize,
    /// How many of their objects are ready.
    pub n_ready: usize,
    /// How many of their objects have the present configuration.
    pub n_up_to_date: usize,
    open: Vec<Open>,
}

/// An object that is not ready, and why.
struct Open {
    title: String,
    /// The role that a node names.
    role: Option<String>,
    cause: ConditionDraft,
    /// Whether the role's own inputs are ready, so that the cause is in its nodes.
    is_sum: bool,
}

impl Rollup {
    /// Counts the objects of one map, by their own statuses.
    pub fn of(seen: &Seen<'_>, map: Map) -> Self {
        let mut counts = Self { total: 0, n_ready: 0, n_up_to_date: 0, open: Vec::new() };
        for entry in seen.entries.iter().filter(|it| it.map == map) {
            counts.total += 1;
            if !matches!(entry.state, ChildState::Ours { .. }) {
                continue;
            }
            let role = seen.seen.roles.get(entry.name).map(AsRef::as_ref);
            let node = seen.seen.nodes.get(entry.name).map(AsRef::as_ref);
            let (conditions, role) = match map {
                Map::Roles => (role_conditions(role), None),
                Map::Nodes => {
                    let role = node.and_then(|it: &Node| it.spec.role.clone());
                    (node_conditions(seen.seen, node), role)
                }
            };
            if conditions::is_true(conditions, UP_TO_DATE) {
                counts.n_up_to_date += 1;
            }
            match cause(conditions) {
                None => counts.n_ready += 1,
                Some(cause) => counts.open.push(Open {
                    title: title(map, entry.name),
                    role,
                    cause,
                    is_sum: map == Map::Roles && conditions::is_true(conditions, INPUT_READY),
                }),
            }
        }
        counts
    }
}

/// Returns the conditions of a role; empty if they are of an earlier generation.
fn role_conditions(role: Option<&Role>) -> &[Condition] {
    let Some(role) = role else { return &[] };
    let Some(status) = &role.status else { return &[] };
    let is_present = status.observed_generation == role.metadata.generation;
    if is_present { &status.conditions } else { &[] }
}

/// Returns the conditions of a node; empty if they are of an earlier generation of it or of its
/// role.
fn node_conditions<'a>(seen: &Observed, node: Option<&'a Node>) -> &'a [Condition] {
    let Some(node) = node else { return &[] };
    let Some(status) = &node.status else { return &[] };
    let role = node.spec.role.as_ref().and_then(|it| seen.roles.get(it));
    let present = role.map(|it| ObservedRole::of(it));
    let is_present =
        status.observed_generation == node.metadata.generation && status.observed_role == present;
    if is_present { &status.conditions } else { &[] }
}

/// Returns why an object is not ready; `None` if it is.
fn cause(conditions: &[Condition]) -> Option<ConditionDraft> {
    let Some(ready) = conditions::find(conditions, READY) else {
        let text = "Its status does not describe its present form yet.";
        return Some(reasons::data_plane::NOT_OBSERVED.condition(READY, text));
    };
    (ready.status != ConditionStatus::True).then(|| ConditionDraft::repeated(ready))
}

/// Reports how many roles and nodes are ready, with the first ones that are not by name.
pub fn deployment(roles: &Rollup, nodes: &Rollup) -> ConditionDraft {
    let sum = format!(
        "{}/{} roles and {}/{} nodes are ready.",
        roles.n_ready, roles.total, nodes.n_ready, nodes.total
    );
    if roles.total + nodes.total == 0 {
        let text = "spec names no roles and no nodes: nothing is run.";
        return reasons::data_plane::ROLES_AND_NODES_READY.condition(DEPLOYMENT_READY, text);
    }
    if roles.n_ready == roles.total && nodes.n_ready == nodes.total {
        return reasons::data_plane::ROLES_AND_NODES_READY.condition(DEPLOYMENT_READY, sum);
    }
    // A role only repeats what is wrong with its nodes.
    let is_repeated = |it: &&Open| {
        let name = it.title.rsplit(' ').next();
        it.is_sum && nodes.open.iter().any(|node| node.role.as_deref() == name)
    };
    let mut open: Vec<&Open> = roles.open.iter().filter(|it| !is_repeated(it)).collect();
    open.extend(&nodes.open);
    open.sort_by_key(|it| rank(&it.cause));
    let Some(worst) = open.first().map(|it| &it.cause) else {
        let text = format!("{sum} The others are not there yet; see SetupReady.");
        return reasons::data_plane::SETUP_INCOMPLETE.condition(DEPLOYMENT_READY, text);
    };
    let text = format!("{sum} {}", message(&open));
    worst.clone().with_type(DEPLOYMENT_READY).with_message(text)
}

/// Lists the first objects with their causes; objects with the same cause are grouped.
fn message(open: &[&Open]) -> String {
    let mut groups: Vec<(&ConditionDraft, Vec<&str>)> = Vec::new();
    for it in open.iter().take(NAMED) {
        let is_same = |known: &ConditionDraft| {
            (&known.reason, &known.message) == (&it.cause.reason, &it.cause.message)
        };
        match groups.iter_mut().find(|(cause, _)| is_same(cause)) {
            Some((_, titles)) => titles.push(&it.title),
            None => groups.push((&it.cause, vec![&it.title])),
        }
    }
    let text = |(cause, titles): &(&ConditionDraft, Vec<&str>)| {
        let message = conditions::shortened(&cause.message, TEXT);
        format!("{}: {}: {message}", titles.join(", "), cause.reason)
    };
    first_texts(groups.iter().map(text).collect(), open.len().saturating_sub(NAMED))
}

/// The observed data plane with its evaluation.
pub struct Seen<'a> {
    /// The observation.
    pub seen: &'a Observed,
    /// The entries of the maps.
    pub entries: &'a [Entry<'a>],
    /// The objects that are no longer in the maps.
    pub orphans: &'a [Orphan],
}
