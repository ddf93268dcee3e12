//! Reads everything that the decisions on a compute need.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, Role};
use api::nova::{Cell, ExternalCompute};
use kube::ResourceExt;
use nova_config::annotations::DEFAULT_CONFIG;
use nova_config::oslo::Release;
use nova_config::release::{self, Chosen};
use nova_config::rendered_secret::{CONFIG_FILES, CONFIG_HASH, compute_secret_name};
use operator_core::data_sources::SourceRef;
use operator_core::finalizers::{has_finalizer, is_terminating};
use operator_core::keyed::Keys;
use operator_core::object_key::Key;
use operator_core::run_engine::inventory::INVENTORY_KEY;
use operator_runtime::error::Result;
use operator_runtime::managed_fields::ManagedFields;
use operator_runtime::source_cache::Digests;
use operator_runtime::source_cache::SourceCache;
use operator_runtime::source_contents::Content;

use crate::caches::Caches;
use crate::cell_immutability::owns;
use crate::conflicting_service::ConflictingService;
use crate::finalizers;
use crate::images::Images;
use crate::indexes::BY_OWNER;
use crate::rollout_coordinator::RolloutSlot;

/// The ConfigMap that a role's annotation names.
#[derive(Clone, Debug)]
pub struct DefaultConfig {
    /// The name of the ConfigMap.
    pub name: String,
    /// The content, or `None` when the ConfigMap does not exist.
    pub content: Option<Content>,
}

/// The state of the ConfigMap that a compute names as its inventory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Inventory {
    /// It exists, or the operator of the node is responsible for it.
    Found,
    /// It does not exist.
    Absent,
    /// It has no key for the inventory.
    WithoutKey,
}

/// The metadata of the Secret with the rendered files.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Rendered {
    /// Digest of what it was rendered from.
    pub hash: String,
    /// The list of its files, as JSON.
    pub files: String,
    /// UID of its controller owner.
    pub controller: Option<String>,
    /// The fields that this operator still owns, so unchanged since its last write.
    pub managed_fields: ManagedFields,
}

/// What is needed only for a compute that is being deleted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Ending {
    /// Whether the namespace is being deleted.
    pub namespace_goes: bool,
    /// Whether the inventory with the host's connection exists.
    pub has_inventory: bool,
    /// Whether this operator reconciles the cells.
    pub cells_are_ours: bool,
}

/// A snapshot of everything that the decisions on a compute use.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The compute.
    pub compute: Arc<ExternalCompute>,
    /// The node, or `None` when it does not exist.
    pub node: Option<Arc<Node>>,
    /// The node's role, or `None` when it names none or the role does not exist.
    pub role: Option<Arc<Role>>,
    /// The cell, or `None` when it does not exist.
    pub cell: Option<Arc<Cell>>,
    /// Content of the cell's Secret with nova's password, or `None` when it does not exist.
    pub cell_secret: Option<Content>,
    /// Content of the cell's Secret with the message bus, or `None` when it does not exist.
    pub message_bus: Option<Content>,
    /// The service in phase 0 that would write the same files as the compute, or `None`.
    pub conflicting_service: Option<ConflictingService>,
    /// The ConfigMap that the role names, or `None` when it names none.
    pub default_config: Option<DefaultConfig>,
    /// The release that options are checked against.
    pub release: Chosen,
    /// The digests of the ssh Secret, or `None` when it does not exist.
    pub ssh: Option<Digests>,
    /// The state of the ConfigMap with the inventory.
    pub inventory: Inventory,
    /// The rendered Secret, or `None` when it does not exist.
    pub rendered: Option<Rendered>,
    /// The default images, which the controller of nodes fills in.
    pub default_images: Images,
    /// The runs that the compute owns, and those that clean up after it.
    pub runs: Vec<Arc<AnsibleEe>>,
    /// Whether this operator reconciles the cell.
    pub cells_are_ours: bool,
    /// Whether the compute may start; held until the decision is written.
    pub slot: RolloutSlot,
    /// What is needed only during deletion; `None` for a compute that is not terminating.
    pub ending: Option<Ending>,
    /// The keys of the digests of Secret contents.
    pub keys: Keys,
}

/// The Secrets and ConfigMaps of a compute.
struct Named {
    cell_secret: Option<SourceRef>,
    message_bus: Option<SourceRef>,
    ssh: Option<SourceRef>,
    default_config: Option<SourceRef>,
    /// Only an inventory that a user names: the node's own belongs to the operator of the node.
    inventory: Option<SourceRef>,
    rendered: SourceRef,
}

impl Named {
    fn all(&self) -> BTreeSet<SourceRef> {
        let optional = [
            &self.cell_secret,
            &self.message_bus,
            &self.ssh,
            &self.default_config,
            &self.inventory,
        ];
        optional.into_iter().flatten().chain([&self.rendered]).cloned().collect()
    }
}

/// Reads a compute; returns `None` when it does not exist.
pub async fn observe(
    caches: &Caches,
    images: &Images,
    default: Release,
    key: &Key,
) -> Result<Option<Observed>> {
    let Some(compute) = caches.computes.get(key) else {
        caches.compute_sources.depends(key, BTreeSet::new());
        return Ok(None);
    };
    let at = |name: &str| Key::new(&key.namespace, name);
    let node = caches.nodes.try_get(&at(&compute.spec.dataplane_node_name))?;
    let role = node.as_ref().and_then(|it| it.spec.role.as_deref());
    let role = role.map(|it| caches.roles.try_get(&at(it))).transpose()?.flatten();
    let cell = caches.cells.try_get(&at(&compute.spec.cell_name))?;
    let mut named = named(key, &compute, role.as_deref(), cell.as_deref());
    if node.as_ref().is_some_and(|it| owns(it, &compute)) {
        named.inventory = None;
    }
    let sources = &caches.compute_sources;
    // Registered before reading, so that a change in between enqueues the compute again.
    sources.depends(key, named.all());
    let ssh = sources.digests_of(&caches.api, named.ssh.clone()).await?.into_values().next();
    let default_config = match &named.default_config {
        Some(source) => Some(DefaultConfig {
            name: source.key.name.clone(),
            content: content(caches, Some(source)).await?,
        }),
        None => None,
    };
    let inventory = inventory(caches, named.inventory.as_ref()).await?;
    let ending = ending(caches, &compute).await?;
    let rendered = rendered(sources, &named.rendered);
    let cell_secret = content(caches, named.cell_secret.as_ref()).await?;
    let message_bus = content(caches, named.message_bus.as_ref()).await?;
    Ok(Some(Observed {
        // Last, so that no other compute waits for a slot during the reads above.
        slot: caches.coordinator.slot(&compute, node.as_deref()).await,
        runs: caches.runs.indexed(BY_OWNER, &at(&compute.uid().unwrap_or_default())),
        conflicting_service: node
            .as_ref()
            .and_then(|it| caches.conflicting_service(role.as_deref(), it)),
        release: release::of(cell.as_deref(), default),
        compute,
        node,
        role,
        cell,
        cell_secret,
        message_bus,
        default_config,
        ssh,
        inventory,
        rendered,
        default_images: images.clone(),
        cells_are_ours: caches.cells_are_ours,
        ending,
        keys: caches.compute_sources.keys().clone(),
    }))
}

/// Reads the metadata of the Secret with the rendered files; `None` if it does not exist.
fn rendered(sources: &SourceCache, secret: &SourceRef) -> Option<Rendered> {
    let annotation = |name| sources.annotation(secret, name).unwrap_or_default();
    sources.version(secret).map(|_| Rendered {
        hash: annotation(CONFIG_HASH),
        files: annotation(CONFIG_FILES),
        controller: sources.controller(secret),
        managed_fields: sources.owned(secret),
    })
}

async fn inventory(caches: &Caches, source: Option<&SourceRef>) -> Result<Inventory> {
    let Some(source) = source else { return Ok(Inventory::Found) };
    Ok(match caches.compute_sources.digests(&caches.api, source).await? {
        None => Inventory::Absent,
        Some(it) if it.keys.contains_key(INVENTORY_KEY) => Inventory::Found,
        Some(_) => Inventory::WithoutKey,
    })
}

/// Returns `None` for a compute that is not terminating; otherwise reads the namespace at most
/// once.
async fn ending(caches: &Caches, compute: &ExternalCompute) -> Result<Option<Ending>> {
    if !is_terminating(compute) {
        return Ok(None);
    }
    let namespace = compute.namespace().unwrap_or_default();
    let inventory = compute.spec.inventory_config_map_name.as_deref();
    let inventory = inventory.map(|it| SourceRef::config_map(&namespace, it));
    Ok(Some(Ending {
        namespace_goes: has_finalizer(compute, finalizers::COMPUTE)
            && caches.api.is_namespace_terminating(&namespace).await?,
        has_inventory: inventory.is_some_and(|it| caches.compute_sources.version(&it).is_some()),
        cells_are_ours: caches.cells_are_ours,
    }))
}

fn named(key: &Key, compute: &ExternalCompute, role: Option<&Role>, cell: Option<&Cell>) -> Named {
    let secret = |name: &str| SourceRef::secret(&key.namespace, name);
    let default_config = role.and_then(|it| it.annotations().get(DEFAULT_CONFIG));
    Named {
        cell_secret: cell.map(|it| secret(&it.spec.secret)),
        message_bus: cell.map(|it| secret(&it.spec.cell_message_bus_secret_name)),
        ssh: compute.spec.ssh_key_secret_name.as_deref().map(secret),
        default_config: default_config
            .filter(|it| !it.is_empty())
            .map(|it| SourceRef::config_map(&key.namespace, it)),
        inventory: compute
            .spec
            .inventory_config_map_name
            .as_deref()
            .map(|it| SourceRef::config_map(&key.namespace, it)),
        rendered: secret(&compute_secret_name(&key.name)),
    }
}

async fn content(caches: &Caches, source: Option<&SourceRef>) -> Result<Option<Content>> {
    match source {
        Some(source) => {
            caches.source_contents.content(&caches.api, &caches.compute_sources, source).await
        }
        None => Ok(None),
    }
}
