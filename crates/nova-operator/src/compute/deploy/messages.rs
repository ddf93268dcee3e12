//! Texts that conditions and Events of a compute share.

use api::dataplane::{Node, NodeSet};
use api::nova::ExternalCompute;
use kube::{Resource, ResourceExt};
use nova_config::annotations::REDEPLOY;
use operator_core::run_engine::retry;

/// Returns the command that deploys a compute once more.
fn redeploy_command(compute: &ExternalCompute) -> String {
    format!(
        "kubectl annotate --overwrite -n {} novaexternalcompute/{} {REDEPLOY}=\"$(date +%s)\"",
        compute.namespace().unwrap_or_default(),
        compute.name_any()
    )
}

/// Returns that the compute is in service, in a clause.
pub fn in_service(compute: &ExternalCompute) -> String {
    let (name, cell) = (compute.name_any(), &compute.spec.cell_name);
    let cell = if cell.is_empty() { String::new() } else { format!(" in cell {cell}") };
    format!("nova-compute runs on {name} and has registered{cell}")
}

/// Returns how nova-compute is deployed on the host once more, by the operator or others: a command, or which
/// deployment a user creates.
pub fn way_to_deploy(compute: &ExternalCompute, node: Option<&Node>) -> String {
    if !compute.is_observed() {
        return redeploy_command(compute);
    }
    match node.and_then(Node::node_set) {
        Some(set) => format!(
            "create an OpenStackDataPlaneDeployment with nodeSets: [{set}], which runs all services of \
             {} {set}",
            NodeSet::kind(&())
        ),
        None => retry::redeploy_command(
            &compute.namespace().unwrap_or_default(),
            &compute.spec.dataplane_node_name,
        ),
    }
}
