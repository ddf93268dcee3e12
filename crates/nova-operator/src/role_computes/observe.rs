//! Reads a role and the computes of its nodes, all from the caches.

use operator_core::object_key::Key;

use crate::computes_up::states;
use crate::indexes::{BY_NODE, BY_ROLE};
use crate::role_computes::observed::Observed;
use crate::shared_caches::SharedCaches;

/// Reads a role; returns `None` when it does not exist.
///
/// It looks at the nodes of this role alone, whatever the number of others.
pub fn observe(caches: &SharedCaches, key: &Key) -> Option<Observed> {
    let role = caches.roles.get(key)?;
    let nodes = caches.nodes.indexed(BY_ROLE, key);
    let of_node = |node: &Key| caches.computes.indexed(BY_NODE, node);
    let computes: Vec<_> = nodes.iter().flat_map(|it| of_node(&Key::of(&**it))).collect();
    let mut states = states(&computes);
    states.sort_by(|a, b| a.0.cmp(&b.0));
    Some(Observed { role, states })
}
