//! Whether a compute has registered in nova under its host's name.

use api::nova::ExternalCompute;
use nova_config::services::NOVA_REGISTERED;

/// Returns whether the compute is known to have registered: only then is what nova has under its
/// host's name its own.
pub fn has_registered(compute: &ExternalCompute) -> bool {
    compute.status.as_ref().is_some_and(|status| {
        let is_deployed = !status.deployed_inputs.is_empty();
        let mut records = status.services.iter().filter(|it| it.name == NOVA_REGISTERED);
        let is_recorded = records.any(|it| it.deployed_hash.is_some());
        status.compute_id.is_some() || is_deployed || is_recorded
    })
}
