//! Reads everything that the decisions on a compute need.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::dataplane::Node;
use api::nova::{Cell, ExternalCompute};
use kube::ResourceExt;
use nova_config::annotations::DEFAULT_CONFIG;
use nova_config::oslo::Release;
use nova_config::release;
use nova_config::rendered_secret::{CONFIG_FILES, CONFIG_HASH, CONFIG_INPUTS, compute_secret_name};
use nova_config::services::SSH_KNOWN_HOSTS_TYPE;
use operator_core::data_sources::SourceRef;
use operator_core::object_key::Key;
use operator_core::run_engine::inventory::INVENTORY_KEY;
use operator_runtime::error::Result;
use operator_runtime::source_cache::{Content, Digests, SourceCache};

use crate::caches::Caches;
use crate::compute::audit::observe::audited;
use crate::compute::credentials::lookup;
use crate::compute::deploy::observed::{
    DefaultConfig, Inventory, Observed, Rendered, SeenCertificate,
};
use crate::compute::deploy::observed_host::last_deployed;
use crate::compute::deploy::{libvirt_tls, migration_key};
use crate::compute::host_layout::is_published;
use crate::compute_status::registration::registered_host;
use crate::controller_names::COMPUTE;
use crate::group::Group;
use crate::group::inherited_annotation::annotation;
use crate::images::Images;
use crate::nova::drain::progress::HostProgress;
use crate::nova::health::HostHealth;
use crate::requested::cell_immutability::owns;
use crate::requested::mounted_cell::NovaServices;
use crate::shared_caches::indexes::{BY_OWNER, cell_key};

/// The Secrets and ConfigMaps of a compute.
#[derive(Default)]
struct Named {
    cell_secret: Option<SourceRef>,
    message_bus: Option<SourceRef>,
    ssh: Option<SourceRef>,
    migration_key: Option<SourceRef>,
    default_config: Option<SourceRef>,
    /// An inventory that a user names, or the node's own while it is not there.
    inventory: Option<SourceRef>,
    rendered: Option<SourceRef>,
    /// The Secret of libvirt's certificate, whether or not it gets one.
    certificate: Option<SourceRef>,
}

impl Named {
    fn all(&self) -> BTreeSet<SourceRef> {
        let named = [
            &self.cell_secret,
            &self.message_bus,
            &self.ssh,
            &self.migration_key,
            &self.default_config,
            &self.inventory,
            &self.rendered,
            &self.certificate,
        ];
        named.into_iter().flatten().cloned().collect()
    }
}

/// Reads a compute that stays.
pub async fn observe(
    caches: &Caches,
    images: &Images,
    default: Release,
    compute: Arc<ExternalCompute>,
) -> Result<Observed> {
    let key = &Key::of(&*compute);
    let at = |name: &str| Key::new(&key.namespace, name);
    let node = caches.shared.nodes.try_get(&at(&compute.spec.dataplane_node_name))?;
    let group = group_of(caches, node.as_deref())?;
    let cell = caches.cells.try_get(&at(&compute.spec.cell_name))?;
    let mut named = named(key, &compute, (group.as_ref(), node.as_deref()), cell.as_deref());
    let is_published =
        node.as_deref().is_some_and(|it| owns(it, &compute) || is_published(&compute, it));
    // One that is there belongs to the operator of the node: its changes concern no compute.
    named.inventory.take_if(|it| is_published && caches.sources.version(it).is_some());
    // Registered before reading, so that a change in between enqueues the compute again.
    caches.sources.depends(COMPUTE, key, named.all());
    let ssh = digests(caches, named.ssh.as_ref()).await?;
    let migration_key = digests(caches, named.migration_key.as_ref()).await?;
    let certificate =
        certificate(caches, &compute, node.as_deref(), named.certificate.as_ref()).await?;
    let default_config = default_config(caches, named.default_config.as_ref()).await?;
    let inventory = inventory(caches, named.inventory.as_ref(), is_published).await?;
    let cell_secret = content(caches, named.cell_secret.as_ref()).await?;
    let message_bus = content(caches, named.message_bus.as_ref()).await?;
    let contents = (cell_secret.as_ref(), message_bus.as_ref());
    let held = lookup::held(caches, &compute, cell.as_deref(), contents).await?;
    let nova = services_of(caches, group.as_ref(), node.as_deref());
    let audited = node.as_deref().map(|it| audited(caches, group.as_ref(), it));
    Ok(Observed {
        // Last, so that no other compute waits for a slot during the reads above.
        slot: caches.coordinator.slot(&compute, node.as_deref()).await,
        runs: caches.shared.runs.indexed(BY_OWNER, &at(&compute.uid().unwrap_or_default())),
        read_since_deployment: read_since_deployment(caches, &compute, node.as_deref(), &nova),
        nova,
        release: release::release_of_cell(cell.as_deref(), default),
        health: health(caches, &compute, registered_host(&compute)),
        has_known_hosts: has_known_hosts(caches, group.as_ref(), node.as_deref()),
        compute,
        node,
        group,
        other_cells: other_cells(caches, key, cell.is_none()),
        cell,
        cell_secret,
        message_bus,
        default_config,
        ssh,
        migration_key,
        certificate,
        inventory,
        rendered: named.rendered.and_then(|it| rendered(&caches.sources, &it)),
        default_images: images.clone(),
        cells_are_ours: caches.cells_are_ours,
        drain: caches.nova.as_ref().map(|_| HostProgress::Pending),
        audited: audited.unwrap_or_default(),
        keys: caches.sources.keys().clone(),
        held,
    })
}

/// Returns whether nova was read twice since a deployment by others has ended well on a host; `None`
/// where none has, or nova's API is not read.
pub fn read_since_deployment(
    caches: &Caches,
    compute: &ExternalCompute,
    node: Option<&Node>,
    nova: &NovaServices,
) -> Option<bool> {
    let deployed = last_deployed(node.filter(|_| compute.is_observed())?, nova)?;
    Some(caches.nova.as_ref()?.has_read_twice_since(&Key::of(compute), &deployed))
}

fn has_known_hosts(caches: &Caches, group: Option<&Group>, node: Option<&Node>) -> bool {
    node.is_some_and(|it| caches.lists(group, it, SSH_KNOWN_HOSTS_TYPE))
}

/// Returns what a node belongs to, or `None` when it names nothing or that does not exist.
pub fn group_of(caches: &Caches, node: Option<&Node>) -> Result<Option<Group>> {
    let group = node.map(|it| caches.shared.try_group_of(it));
    Ok(group.transpose()?.flatten())
}

/// Returns the services of type nova of a node; none of one that does not exist.
pub fn services_of(caches: &Caches, group: Option<&Group>, node: Option<&Node>) -> NovaServices {
    node.map(|it| caches.nova_services(group, it)).unwrap_or_default()
}

/// Reads libvirt's certificate, which has this Secret, unless the host gets none and has none; without a
/// Secret it has none.
pub async fn certificate(
    caches: &Caches,
    compute: &ExternalCompute,
    node: Option<&Node>,
    secret: Option<&SourceRef>,
) -> Result<SeenCertificate> {
    let Some(secret) = secret else { return Ok(SeenCertificate::default()) };
    let existing = caches.secrets.get(&secret.key);
    let has_secret = existing.as_ref().is_some_and(|it| libvirt_tls::is_of(&**it, compute));
    let has_one = has_secret || caches.cert_manager.is_owner(compute);
    let is_wanted = node.and_then(|it| it.status.as_ref()).is_some_and(|it| it.tls.is_some());
    if !is_wanted && !has_one {
        return Ok(SeenCertificate::default());
    }
    let namespace = compute.namespace().unwrap_or_default();
    let issued = caches.cert_manager.issued(&caches.api, &namespace).await?;
    let secret = digests(caches, Some(secret)).await?;
    let metadata = existing.map(|it| it.metadata.clone()).unwrap_or_default();
    Ok(SeenCertificate { issued, secret, metadata })
}

/// Returns the names of the cells of a namespace, for one that has a slip in its name.
fn other_cells(caches: &Caches, key: &Key, is_missing: bool) -> Vec<String> {
    let here = is_missing.then(|| caches.cells.in_namespace(&key.namespace));
    here.iter().flatten().map(|it| it.name_any()).collect()
}

/// Returns what nova's API says of the host of that name; `None` where it is not read. A compute whose
/// cell is not known is looked for in all cells of its namespace.
pub fn health(
    caches: &Caches,
    compute: &ExternalCompute,
    host: Option<&str>,
) -> Option<HostHealth> {
    let (monitor, cell) = (caches.nova.as_ref()?, cell_key(compute));
    let of_host = |host| match cell.name.as_str() {
        "" => monitor.host_in(&caches.cells_of(&cell.namespace), host),
        _ => monitor.host(&cell, host),
    };
    Some(host.map(of_host).unwrap_or_default())
}

/// Reads the metadata of the Secret with the rendered files; `None` if it does not exist.
fn rendered(sources: &SourceCache, secret: &SourceRef) -> Option<Rendered> {
    let annotation = |name| sources.annotation(secret, name).unwrap_or_default();
    sources.version(secret).map(|_| Rendered {
        hash: annotation(CONFIG_HASH),
        inputs: annotation(CONFIG_INPUTS),
        files: annotation(CONFIG_FILES),
        controller: sources.controller(secret),
        managed_fields: sources.owned(secret),
    })
}

/// Reads the role's default configuration; `None` if the role names none.
async fn default_config(
    caches: &Caches,
    source: Option<&SourceRef>,
) -> Result<Option<DefaultConfig>> {
    let Some(source) = source else { return Ok(None) };
    let content = content(caches, Some(source)).await?;
    Ok(Some(DefaultConfig { name: source.key.name.clone(), content }))
}

async fn inventory(
    caches: &Caches,
    source: Option<&SourceRef>,
    is_published: bool,
) -> Result<Inventory> {
    let Some(source) = source else { return Ok(Inventory::Found) };
    Ok(match caches.sources.digests(&caches.api, source).await? {
        None if is_published => Inventory::NotWritten,
        None => Inventory::Absent,
        Some(it) if it.keys.contains_key(INVENTORY_KEY) => Inventory::Found,
        Some(_) => Inventory::WithoutKey,
    })
}

fn named(
    key: &Key,
    compute: &ExternalCompute,
    (group, node): (Option<&Group>, Option<&Node>),
    cell: Option<&Cell>,
) -> Named {
    let secret = |name: &str| SourceRef::secret(&key.namespace, name);
    let ssh = compute.spec.ssh_key_secret_name.as_deref().map(secret);
    if compute.is_observed() {
        return Named { ssh, ..Named::default() };
    }
    let default_config = node.and_then(|it| annotation(group, it, DEFAULT_CONFIG));
    Named {
        cell_secret: cell.map(|it| secret(&it.spec.secret)),
        message_bus: cell.map(|it| secret(&it.spec.cell_message_bus_secret_name)),
        ssh,
        migration_key: Some(secret(migration_key::SECRET)),
        default_config: default_config
            .filter(|(it, _)| !it.is_empty())
            .map(|(it, _)| SourceRef::config_map(&key.namespace, it)),
        inventory: compute
            .spec
            .inventory_config_map_name
            .as_deref()
            .map(|it| SourceRef::config_map(&key.namespace, it)),
        rendered: Some(secret(&compute_secret_name(&key.name))),
        certificate: Some(secret(&libvirt_tls::secret(&compute.spec.dataplane_node_name))),
    }
}

/// Returns the digests of a Secret or ConfigMap; `None` without one.
pub async fn digests(caches: &Caches, source: Option<&SourceRef>) -> Result<Option<Digests>> {
    match source {
        Some(source) => caches.sources.digests(&caches.api, source).await,
        None => Ok(None),
    }
}

async fn content(caches: &Caches, source: Option<&SourceRef>) -> Result<Option<Content>> {
    match source {
        Some(source) => caches.sources.content(&caches.api, source).await,
        None => Ok(None),
    }
}
