//! Reads what a node's compute depends on; only for a terminating node is the API server queried.

use operator_core::finalizers::{has_finalizer, is_terminating};
use operator_core::object_key::Key;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::compute_lifecycle::observed::Observed;
use crate::finalizers;
use crate::images::Images;

/// Reads a node; returns `None` when it does not exist, because its compute is then deleted as
/// well.
pub async fn observe(caches: &Caches, images: &Images, key: &Key) -> Result<Option<Observed>> {
    let Some(node) = caches.nodes.get(key) else { return Ok(None) };
    // A compute that cannot be deserialized still exists: the error prevents that it is created
    // again or that the node's finalizer is removed.
    caches.computes.try_get(key)?;
    let shared_caches = caches.watched();
    let group = shared_caches.try_group_of(&node)?;
    let (compute, has_runs) = shared_caches.compute_of(&node).unzip();
    let has_runs = has_runs.unwrap_or_default();
    let conflicting_service = caches.conflicting_service(group.as_ref(), &node);
    let namespace_goes = is_terminating(&*node)
        && has_finalizer(&*node, finalizers::NODE)
        && caches.api.is_namespace_terminating(&key.namespace).await?;
    let (images, cells_are_ours) = (images.clone(), caches.cells_are_ours);
    Ok(Some(Observed {
        node,
        group,
        conflicting_service,
        compute,
        has_runs,
        images,
        namespace_goes,
        cells_are_ours,
    }))
}
