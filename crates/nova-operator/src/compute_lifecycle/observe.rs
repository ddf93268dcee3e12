//! Reads what a node's compute depends on; the API server is asked only about a node that goes.

use std::sync::Arc;

use api::conditions::{Condition, find};
use api::dataplane::{Node, Role};
use api::nova::ExternalCompute;
use nova_config::conditions::COMPUTE_CONDITION;
use operator_core::finalizers::{has_finalizer, is_terminating};
use operator_core::object_key::Key;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::conflicting_service::ConflictingService;
use crate::finalizers;
use crate::images::Images;

/// Plain copies of everything that was seen.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The node.
    pub node: Arc<Node>,
    /// Its role, where it names one that exists.
    pub role: Option<Arc<Role>>,
    /// The service in phase 0 that would write the compute's files.
    pub conflicting_service: Option<ConflictingService>,
    /// The compute of the node's name.
    pub compute: Option<Arc<ExternalCompute>>,
    /// Whether a run of that compute exists.
    pub has_runs: bool,
    /// Images of a compute that names none.
    pub images: Images,
    /// Whether the node's namespace is being deleted with everything in it; asked of a node that is
    /// being deleted and held.
    pub namespace_goes: bool,
    /// Whether this operator looks after the cells, which then remember what is left in nova.
    pub cells_are_ours: bool,
}

/// Reads a node; `None` where it does not exist, for its compute goes with it.
pub async fn observe(caches: &Caches, images: &Images, key: &Key) -> Result<Option<Observed>> {
    let Some(node) = caches.nodes.get(key) else { return Ok(None) };
    // A compute that cannot be read is there: it is neither made again nor are its holds released.
    caches.computes.try_get(key)?;
    if let Some(role) = &node.spec.role {
        caches.roles.try_get(&Key::new(&key.namespace, role))?;
    }
    let shared_caches = caches.watched();
    let role = shared_caches.role_of(&node);
    let (compute, has_runs) = shared_caches.compute_of(&node).unzip();
    let has_runs = has_runs.unwrap_or_default();
    let conflicting_service = caches.rival(role.as_deref(), &node);
    let namespace_goes = is_terminating(&*node)
        && has_finalizer(&*node, finalizers::NODE)
        && caches.api.is_namespace_terminating(&key.namespace).await?;
    let (images, cells_are_ours) = (images.clone(), caches.cells_are_ours);
    Ok(Some(Observed {
        node,
        role,
        conflicting_service,
        compute,
        has_runs,
        images,
        namespace_goes,
        cells_are_ours,
    }))
}

/// This operator's condition on a node.
pub fn own_condition(node: &Node) -> Option<&Condition> {
    find(&node.status.as_ref()?.conditions, COMPUTE_CONDITION)
}
