//! Messages about a compute that is being deleted: what was done on the host, and what remains.

use api::conditions::{Condition, truncated};
use api::nova::ExternalCompute;
use kube::ResourceExt;
use nova_config::annotations::SKIP_CLEANUP;

use crate::compute_status::registration::was_deployed;

/// Maximum length of the cause of a failed attempt.
const CAUSE_LIMIT: usize = 300;

/// Returns the name under which nova knows the host.
pub fn host(compute: &ExternalCompute) -> String {
    compute.host_name().unwrap_or(&compute.spec.dataplane_node_name).to_owned()
}

/// Returns the message while a host is being cleaned up.
pub fn cleaning(host: &str) -> String {
    format!("nova-compute is being stopped and disabled on host {host}.")
}

/// Returns the message after a host was cleaned up; `left` is what nova still records of it, and
/// empty where the operator removes that.
pub fn cleaned(host: &str, left: &str) -> String {
    if left.is_empty() {
        return format!(
            "nova-compute is stopped and disabled on host {host}, and its files are removed."
        );
    }
    format!("nova-compute is stopped and disabled on host {host}. {left}")
}

/// Returns the message after the cleanup has finally failed or was skipped; `left` is what nova
/// still records of the host, and empty where the operator removes that.
pub fn not_cleaned(host: &str, cause: &str, left: &str) -> String {
    let cause = truncated(cause.trim_end_matches('.'), CAUSE_LIMIT);
    let text = format!(
        "nova-compute was not stopped on host {host}: {cause}. If the host still runs, stop it \
         there with `systemctl disable --now edpm_nova_compute`, or it registers again."
    );
    if left.is_empty() { text } else { format!("{text} {left}") }
}

/// Returns the message about a host on which guests are, as an attempt has found; `skip` is the command to
/// proceed all the same.
pub fn guests(host: &str, cause: &str, skip: &str) -> String {
    format!(
        "nova-compute is not stopped on host {host}, because guests are there, whatever nova has of it: \
         {}. Where nova has them, migrate or delete them; else `virsh list --all` and `ps` on the host \
         show them. It is tried again automatically. {skip}",
        cause.trim_end_matches('.')
    )
}

/// Returns the command to proceed without the host.
pub fn skip(compute: &ExternalCompute) -> String {
    format!(
        "To let the compute go without it: kubectl annotate --overwrite -n {} \
         novaexternalcompute/{} {SKIP_CLEANUP}=true",
        compute.namespace().unwrap_or_default(),
        compute.name_any()
    )
}

/// Returns the message about a host whose node's inventory is not written yet; `skip` is the command to
/// proceed all the same.
pub fn lacks_inventory(compute: &ExternalCompute, skip: &str) -> String {
    let node = &compute.spec.dataplane_node_name;
    format!(
        "The inventory of OpenStackDataPlaneNode {node}, which the stop of nova-compute needs, is not \
         written yet; see the conditions of the node and of its role. {skip}"
    )
}

/// Returns what nova still records of the host, and how the user deletes it.
pub fn left_in_nova(compute: &ExternalCompute) -> String {
    let (host, cell) = (host(compute), &compute.spec.cell_name);
    if !was_deployed(compute) {
        return format!(
            "nova-compute was never seen to register in cell {cell}: nova has records of the host \
             only where `openstack compute service list --service nova-compute --host {host}` \
             shows an id, which is for `openstack compute service delete`."
        );
    }
    format!(
        "Nova keeps its records of the host in cell {cell}: when no instances are left on it, \
         `openstack compute service list --service nova-compute --host {host}` shows the id for \
         `openstack compute service delete`."
    )
}

/// Returns the message on the node after the host cleanup has ended.
pub fn left(compute: &ExternalCompute, concluded: &Condition) -> String {
    format!("NovaExternalCompute {} goes: {}", compute.name_any(), concluded.message)
}
