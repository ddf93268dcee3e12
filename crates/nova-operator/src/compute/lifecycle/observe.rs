//! Reads what a node's compute depends on; only for a terminating node is the API server queried.

use api::dataplane::{Node, SeenDeployment};
use api::nova::ExternalCompute;
use operator_core::finalizers::{has_finalizer, is_terminating};
use operator_core::object_key::Key;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::compute::deploy::observe::health;
use crate::compute::lifecycle::observed::Observed;
use crate::finalizers;
use crate::images::Images;
use crate::nova::health::HostHealth;

/// Reads a node; returns `None` when it does not exist, because its compute is then deleted as
/// well.
pub async fn observe(caches: &Caches, images: &Images, key: &Key) -> Result<Option<Observed>> {
    let Some(node) = caches.shared.nodes.get(key) else { return Ok(None) };
    // A compute that cannot be deserialized still exists: the error prevents that it is created
    // again or that the node's finalizer is removed.
    caches.shared.computes.try_get(key)?;
    let group = caches.shared.try_group_of(&node)?;
    let (compute, has_runs) = caches.shared.compute_of(&node).unzip();
    let namespace_goes = is_terminating(&*node)
        && has_finalizer(&*node, finalizers::NODE)
        && caches.api.is_namespace_terminating(&key.namespace).await?;
    let observed = compute.as_deref().filter(|it| it.is_observed());
    Ok(Some(Observed {
        nova: caches.nova_services(group.as_ref(), &node),
        health: observed.and_then(|it| health_of_host(caches, &node, it)),
        read_twice_since: observed.and_then(|_| read_twice_since(caches, &node)),
        order: None,
        node,
        group,
        compute,
        has_runs: has_runs.unwrap_or_default(),
        images: images.clone(),
        namespace_goes,
        cells_are_ours: caches.cells_are_ours,
        reads_nova: caches.nova.is_some(),
    }))
}

/// Returns what nova's API says of the host; `None` also where the host's name is not known.
fn health_of_host(caches: &Caches, node: &Node, compute: &ExternalCompute) -> Option<HostHealth> {
    let host = compute.host_name().or_else(|| node.status.as_ref()?.host_name.as_deref())?;
    health(caches, compute, Some(host))
}

/// Returns the last attempt of a deployment, if it has ended well on the host and nova was read twice since.
fn read_twice_since(caches: &Caches, node: &Node) -> Option<SeenDeployment> {
    let monitor = caches.nova.as_ref()?;
    let ended = node.status.as_ref()?.deployment.as_ref()?.succeeded()?;
    monitor.has_read_twice_since(&Key::of(node), &ended).then_some(ended)
}
