//! Reads a role or node set and the computes of its nodes, all from the caches.

use operator_core::object_key::Key;

use crate::compute_status::computes_up::states;
use crate::group::GroupKey;
use crate::rollup::group_computes::observed::Observed;
use crate::shared_caches::SharedCaches;
use crate::shared_caches::indexes::BY_NODE;

/// Reads a role or node set; returns `None` when it does not exist. `are_counted` is whether computes
/// are known to be up.
///
/// It looks at the nodes of this group alone, whatever the number of others.
pub fn observe(caches: &SharedCaches, key: &GroupKey, are_counted: bool) -> Option<Observed> {
    let (group, nodes) = (caches.group(key)?, caches.nodes_of(key));
    let of_node = |node: &Key| caches.computes.indexed(BY_NODE, node);
    let computes: Vec<_> = nodes.iter().flat_map(|it| of_node(&Key::of(&**it))).collect();
    let mut states = states(&computes);
    states.sort_by(|a, b| a.0.cmp(&b.0));
    Some(Observed { group, nodes, states: are_counted.then_some(states) })
}
