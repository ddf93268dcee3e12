//! Texts that conditions and Events of a compute share.

use api::nova::ExternalCompute;
use kube::ResourceExt;
use nova_config::annotations::REDEPLOY;

/// Returns the command that deploys a compute once more.
pub fn redeploy_command(compute: &ExternalCompute) -> String {
    format!(
        "kubectl annotate --overwrite -n {} novaexternalcompute/{} {REDEPLOY}=\"$(date +%s)\"",
        compute.namespace().unwrap_or_default(),
        compute.name_any()
    )
}
