//! Whether a compute has registered in nova under its host's name.

use api::dataplane::ServiceRun;
use api::nova::ExternalCompute;
use nova_config::services::NOVA_REGISTERED;

/// Returns whether the compute is known to have registered: only then is what nova has under its
/// host's name its own.
pub fn has_registered(compute: &ExternalCompute) -> bool {
    compute.status.as_ref().is_some_and(|status| {
        let is_deployed = !status.deployed_inputs.is_empty();
        status.compute_id.is_some() || is_deployed || is_recorded(&status.services)
    })
}

/// Returns whether the compute has ever registered in its cell, as far as its records say.
pub fn is_recorded(services: &[ServiceRun]) -> bool {
    services.iter().any(|it| it.name == NOVA_REGISTERED && it.deployed_hash.is_some())
}
