//! The entries of the maps: what each states, and the state of the object of that name.

use api::dataplane::DataPlane;
use api::names;
use api::shared::AnyMap;
use kube::ResourceExt;
use operator_core::applied::APPLIED;
use operator_core::plan::Step;

use crate::annotations::ADOPT;
use crate::controller_ref::controller;
use crate::data_plane::desired::{DesiredChild, Found};
use crate::data_plane::map::Map;
use crate::data_plane::observed::Observed;

/// State of the object that has an entry's name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ChildState {
    /// The key cannot be the name of an object.
    Unnameable,
    /// No such object exists.
    Missing,
    /// A user handed it over, and it is not adopted yet.
    Offered,
    /// It belongs to the data plane.
    Ours {
        /// Whether the present entry was applied to it.
        is_applied: bool,
        /// Whether its fields still have the values that the entry states.
        is_kept: bool,
    },
    /// It belongs to the data plane and is being deleted.
    Terminating,
    /// It belongs to another owner, or to none.
    Foreign {
        /// `Kind name` of its controller.
        owner: Option<String>,
    },
}

/// An evaluated entry of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'a> {
    /// Its map.
    pub map: Map,
    /// Its key.
    pub name: &'a str,
    /// The state of its object.
    pub state: ChildState,
    /// The apply to do; `None` if the object is as stated or must not be changed.
    pub step: Option<Step>,
}

impl Entry<'_> {
    /// Returns `Kind name`.
    pub fn title(&self) -> String {
        title(self.map, self.name)
    }

    /// Returns whether the present entry has been applied to its object.
    pub fn is_applied(&self) -> bool {
        matches!(self.state, ChildState::Ours { is_applied: true, .. })
    }
}

/// Returns `Kind name`.
pub fn title(map: Map, name: &str) -> String {
    format!("{} {name}", map.kind().kind)
}

/// Evaluates the entries of both maps, roles first.
pub fn entries(seen: &Observed) -> Vec<Entry<'_>> {
    let spec = &seen.data_plane.spec;
    let roles = spec.roles.iter().map(|(name, stated)| {
        let found = seen.roles.get(name).map(|it| Found::of(&**it, &it.spec));
        entry(&seen.data_plane, Map::Roles, name, stated, found)
    });
    let nodes = spec.nodes.iter().map(|(name, stated)| {
        let found = seen.nodes.get(name).map(|it| Found::of(&**it, &it.spec));
        entry(&seen.data_plane, Map::Nodes, name, stated, found)
    });
    roles.chain(nodes).collect()
}

fn entry<'a>(
    data_plane: &DataPlane,
    map: Map,
    name: &'a str,
    stated: &AnyMap,
    found: Option<Found<'_>>,
) -> Entry<'a> {
    let expected = DesiredChild::of(data_plane, map, name, stated);
    let rollout_state = state(data_plane, name, found.as_ref(), &expected);
    let because = match &rollout_state {
        ChildState::Missing => Some("the map lists it and it does not exist"),
        ChildState::Offered => Some("a user handed it over to the data plane"),
        ChildState::Ours { is_applied: false, .. } => Some("the entry of the map has changed"),
        ChildState::Ours { is_kept: false, .. } => Some("a field that the map states was changed"),
        ChildState::Ours { .. }
        | ChildState::Unnameable
        | ChildState::Terminating
        | ChildState::Foreign { .. } => None,
    };
    let uid = found.and_then(|it| it.meta.uid.clone());
    let step = because.map(|it| expected.step(data_plane, map, name, uid, it));
    Entry { map, name, state: rollout_state, step }
}

fn state(
    data_plane: &DataPlane,
    name: &str,
    found: Option<&Found<'_>>,
    desired: &DesiredChild,
) -> ChildState {
    if !names::is_dns_subdomain(name) {
        return ChildState::Unnameable;
    }
    let Some(found) = found else { return ChildState::Missing };
    match controller(found.meta) {
        Some(owner) if Some(&owner.uid) == data_plane.metadata.uid.as_ref() => {
            if found.meta.deletion_timestamp.is_some() {
                return ChildState::Terminating;
            }
            let is_applied = found.annotation(APPLIED) == Some(desired.hash.as_str());
            ChildState::Ours { is_applied, is_kept: desired.is_kept_by(found) }
        }
        Some(owner) => {
            ChildState::Foreign { owner: Some(format!("{} {}", owner.kind, owner.name)) }
        }
        None if found.annotation(ADOPT) == Some(&data_plane.name_any()) => ChildState::Offered,
        None => ChildState::Foreign { owner: None },
    }
}
