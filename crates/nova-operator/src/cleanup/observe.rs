//! Reads everything that the removal of a compute needs.

use std::sync::Arc;

use api::nova::ExternalCompute;
use kube::ResourceExt;
use operator_core::data_sources::SourceRef;
use operator_core::finalizers::has_finalizer;
use operator_core::object_key::Key;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::cell_immutability::owns;
use crate::cleanup::observed::Observed;
use crate::compute::libvirt_tls;
use crate::compute::observe::{certificate, digests, group_of};
use crate::controller_names::COMPUTE;
use crate::drain::progress::HostProgress;
use crate::finalizers;
use crate::indexes::{BY_OWNER, cell_key};
use crate::nova_health::HostHealth;

/// Reads a compute that is being deleted.
pub async fn observe(caches: &Caches, compute: Arc<ExternalCompute>) -> Result<Observed> {
    let key = Key::of(&*compute);
    let at = |name: &str| Key::new(&key.namespace, name);
    let node = caches.nodes.try_get(&at(&compute.spec.dataplane_node_name))?;
    let cell = caches.cells.try_get(&at(&compute.spec.cell_name))?;
    let secret = |name: &str| SourceRef::secret(&key.namespace, name);
    let ssh = compute.spec.ssh_key_secret_name.as_deref().map(secret);
    let of_tls = secret(&libvirt_tls::secret(&compute.spec.dataplane_node_name));
    let inventory = compute.spec.inventory_config_map_name.as_deref();
    let inventory = inventory.map(|it| SourceRef::config_map(&key.namespace, it));
    // The node's own inventory belongs to the operator of the node.
    let named = inventory.as_ref().filter(|_| !node.as_ref().is_some_and(|it| owns(it, &compute)));
    // Registered before reading, so that a change in between enqueues the compute again.
    let all = ssh.iter().chain(named).chain([&of_tls]).cloned().collect();
    caches.sources.depends(COMPUTE, &key, all);
    let ssh = digests(caches, ssh.as_ref()).await?;
    let issued = certificate(caches, &compute, node.as_deref(), &of_tls).await?.issued;
    let namespace_goes = has_finalizer(&*compute, finalizers::COMPUTE)
        && caches.api.is_namespace_terminating(&key.namespace).await?;
    Ok(Observed {
        group: group_of(caches, node.as_deref())?,
        node,
        cell,
        cells_are_ours: caches.cells_are_ours,
        namespace_goes,
        has_inventory: inventory.is_some_and(|it| caches.sources.version(&it).is_some()),
        ssh,
        issued,
        runs: caches.runs.indexed(BY_OWNER, &at(&compute.uid().unwrap_or_default())),
        health: health(caches, &compute),
        drain: caches.nova.as_ref().map(|_| HostProgress::Pending),
        compute,
    })
}

/// Returns what nova's API says of the host, also of one that has lost its record, which is not to go
/// unseen; `None` where it is not read.
fn health(caches: &Caches, compute: &ExternalCompute) -> Option<HostHealth> {
    let monitor = caches.nova.as_ref()?;
    let host = compute.status.as_ref().and_then(|it| it.host_name.as_deref());
    Some(host.map(|it| monitor.host(&cell_key(compute), it)).unwrap_or_default())
}
