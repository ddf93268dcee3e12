//! Reads everything that the removal of a compute needs.

use std::sync::Arc;

use api::nova::ExternalCompute;
use kube::ResourceExt;
use operator_core::data_sources::SourceRef;
use operator_core::finalizers::{has_finalizer, is_terminating};
use operator_core::object_key::Key;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::compute::deploy::libvirt_tls;
use crate::compute::deploy::observe::{
    certificate, digests, group_of, health, read_since_deployment, services_of,
};
use crate::compute::host_layout::inventory_source;
use crate::compute::removal::observed::Observed;
use crate::controller_names::COMPUTE;
use crate::finalizers;
use crate::nova::drain::progress::HostProgress;
use crate::requested::cell_immutability::owns;
use crate::shared_caches::indexes::BY_OWNER;

/// Whether the host of a compute leaves: its entry in the node set is gone, and may be there again.
pub fn is_leaving(caches: &Caches, compute: &ExternalCompute) -> bool {
    let node = caches.shared.node_of(compute);
    node.is_some_and(|it| it.spec.leaving == Some(true) && owns(&it, compute))
}

/// Reads a compute that is being deleted, or whose host leaves.
pub async fn observe(caches: &Caches, compute: Arc<ExternalCompute>) -> Result<Observed> {
    let key = Key::of(&*compute);
    let at = |name: &str| Key::new(&key.namespace, name);
    let node = caches.shared.nodes.try_get(&at(&compute.spec.dataplane_node_name))?;
    let cell = caches.cells.try_get(&at(&compute.spec.cell_name))?;
    let secret = |name: &str| SourceRef::secret(&key.namespace, name);
    let ssh = compute.spec.ssh_key_secret_name.as_deref().map(secret);
    let of_tls = secret(&libvirt_tls::secret(&compute.spec.dataplane_node_name));
    let inventory = inventory_source(&compute, node.as_deref());
    // The node's own inventory, once it is there, belongs to the operator of the node.
    let is_owned = node.as_ref().is_some_and(|it| owns(it, &compute));
    let named = inventory.as_ref().filter(|it| !is_owned || caches.sources.version(it).is_none());
    // Registered before reading, so that a change in between enqueues the compute again.
    let all = ssh.iter().chain(named).chain([&of_tls]).cloned().collect();
    caches.sources.depends(COMPUTE, &key, all);
    let ssh = digests(caches, ssh.as_ref()).await?;
    let issued = certificate(caches, &compute, node.as_deref(), Some(&of_tls)).await?.issued;
    let namespace_goes = is_terminating(&*compute)
        && has_finalizer(&*compute, finalizers::COMPUTE)
        && caches.api.is_namespace_terminating(&key.namespace).await?;
    let group = group_of(caches, node.as_deref())?;
    let nova = services_of(caches, group.as_ref(), node.as_deref());
    Ok(Observed {
        read_since_deployment: read_since_deployment(caches, &compute, node.as_deref(), &nova),
        group,
        node,
        cell,
        cells_are_ours: caches.cells_are_ours,
        namespace_goes,
        has_inventory: inventory.is_some_and(|it| caches.sources.version(&it).is_some()),
        ssh,
        issued,
        runs: caches.shared.runs.indexed(BY_OWNER, &at(&compute.uid().unwrap_or_default())),
        // Also of one that has lost its record, which is not to go unseen.
        health: health(caches, &compute, compute.host_name()),
        drain: caches.nova.as_ref().map(|_| HostProgress::Pending),
        compute,
    })
}
