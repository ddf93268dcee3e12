//! Where runs on a compute's host find its inventory, its keys and its certificates.

use std::collections::BTreeMap;

use api::dataplane::{Node, NodeStatus};
use api::nova::ExternalCompute;
use kube::ResourceExt;
use operator_core::data_sources::SourceRef;
use operator_core::run_engine::layout::{Layout, NodeSets, Tls};

/// Returns the layout of runs on the host of a compute: that of its node set, else that of its own
/// inventory.
pub fn layout(compute: &ExternalCompute, node: Option<&Node>, tls: Vec<Tls>) -> Layout {
    if let Some((set, status)) = node.and_then(of_node_set) {
        let secret = status.ssh_key_secret_name.clone().unwrap_or_default();
        let ssh_secrets = BTreeMap::from([(set.to_owned(), secret)]);
        return Layout::NodeSets(NodeSets { ssh_secrets, is_global: false, tls });
    }
    let inventory = inventory(compute, node).unwrap_or_default().to_owned();
    let beside = node.and_then(|it| beside(it, &inventory)).map(ToOwned::to_owned);
    Layout::Parent { inventory, beside, tls }
}

/// Returns the Secret beside an inventory that a node publishes: its own, or the one that it shares.
fn beside<'a>(node: &'a Node, inventory: &str) -> Option<&'a str> {
    let status = node.status.as_ref()?;
    let published = [
        (&status.inventory_config_map_name, &status.inventory_secret_name),
        (&status.shared_inventory_config_map_name, &status.shared_inventory_secret_name),
    ];
    let (_, secret) = published.into_iter().find(|it| it.0.as_deref() == Some(inventory))?;
    secret.as_deref()
}

/// Returns the Secret or ConfigMap with the inventory that has the host; `None` while none is known.
pub fn inventory_source(compute: &ExternalCompute, node: Option<&Node>) -> Option<SourceRef> {
    let namespace = compute.namespace().unwrap_or_default();
    match node.and_then(of_node_set) {
        Some((_, status)) => {
            Some(SourceRef::secret(&namespace, status.inventory_secret_name.as_deref()?))
        }
        None => Some(SourceRef::config_map(&namespace, inventory(compute, node)?)),
    }
}

/// Returns whether the inventory of a compute is the one that its node publishes. A compute that was created
/// a moment before names none yet, and has not run.
pub fn is_published(compute: &ExternalCompute, node: &Node) -> bool {
    let status = node.status.as_ref();
    let published = status.and_then(|it| it.inventory_config_map_name.as_deref());
    published.is_some() && inventory(compute, Some(node)) == published
}

/// Returns the ConfigMap with the inventory: the one that the compute names, else its node's.
fn inventory<'a>(compute: &'a ExternalCompute, node: Option<&'a Node>) -> Option<&'a str> {
    let of_node = || node?.status.as_ref()?.inventory_config_map_name.as_deref();
    let named = compute.spec.inventory_config_map_name.as_deref();
    named.or_else(|| of_node().filter(|_| compute.is_observed()))
}

/// Returns the node set that a status describes, whose names it has.
fn of_node_set(node: &Node) -> Option<(&str, &NodeStatus)> {
    let status = node.status.as_ref()?;
    Some((status.observed_node_set.as_ref()?.name.as_str(), status))
}
