//! Roles and nodes that belong to a data plane and are no longer in its maps.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use operator_core::plan::Target;

use crate::controller_ref::controller;
use crate::data_plane::map::Map;
use crate::data_plane::observed::Observed;

/// A role or node that belongs to the data plane and is no longer in its maps.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Orphan {
    /// The map that it was in.
    pub map: Map,
    /// The object.
    pub target: Target,
    /// Whether it is already being deleted.
    pub is_terminating: bool,
    /// How many nodes name it; 0 for nodes.
    pub n_followers: usize,
}

/// Returns the orphans, nodes first: a role is deleted after the nodes that name it.
pub fn orphans(seen: &Observed) -> Vec<Orphan> {
    let spec = &seen.data_plane.spec;
    let nodes = seen.nodes.iter().filter(|(name, _)| !spec.nodes.contains_key(*name));
    let nodes = nodes.filter_map(|(_, it)| orphan(seen, Map::Nodes, &it.metadata, 0));
    let roles = seen.roles.iter().filter(|(name, _)| !spec.roles.contains_key(*name));
    let roles = roles.filter_map(|(name, it)| {
        let n_followers = seen.n_followers.get(name).copied().unwrap_or_default();
        orphan(seen, Map::Roles, &it.metadata, n_followers)
    });
    nodes.chain(roles).collect()
}

fn orphan(seen: &Observed, map: Map, meta: &ObjectMeta, n_followers: usize) -> Option<Orphan> {
    let is_ours = Some(&controller(meta)?.uid) == seen.data_plane.metadata.uid.as_ref();
    is_ours.then(|| Orphan {
        map,
        target: Target {
            kind: map.kind(),
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone(),
        },
        is_terminating: meta.deletion_timestamp.is_some(),
        n_followers,
    })
}
