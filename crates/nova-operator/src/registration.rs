//! Whether a compute has registered in nova under its host's name.

use api::dataplane::ServiceRun;
use api::nova::{ExternalCompute, ExternalComputeStatus};
use jiff::Timestamp;
use nova_config::services::NOVA_REGISTERED;

/// Returns whether every service of the compute has succeeded once.
pub fn was_deployed(compute: &ExternalCompute) -> bool {
    compute.status.as_ref().is_some_and(|it| !it.deployed_inputs.is_empty())
}

/// Returns whether the compute is known to have registered: only then is what nova has under its
/// host's name its own.
pub fn has_registered(compute: &ExternalCompute) -> bool {
    let is_known =
        |it: &ExternalComputeStatus| it.compute_id.is_some() || is_recorded(&it.services);
    was_deployed(compute) || compute.status.as_ref().is_some_and(is_known)
}

/// Returns the host under which a compute is registered; `None` unless it is known to have
/// registered.
pub fn registered_host(compute: &ExternalCompute) -> Option<&str> {
    compute.status.as_ref().filter(|_| has_registered(compute))?.host_name.as_deref()
}

/// Returns when a compute has last registered, or `None` where no record says it.
pub fn registered_at(compute: &ExternalCompute) -> Option<Timestamp> {
    recorded_at(&compute.status.as_ref()?.services)
}

/// Returns the same of records that are not written yet.
pub fn recorded_at(services: &[ServiceRun]) -> Option<Timestamp> {
    Some(services.iter().find(|it| it.name == NOVA_REGISTERED)?.since.0)
}

/// Whether a compute that registered at this time did so after a reading began.
pub fn has_registered_since(at: Option<Timestamp>, begun: Option<Timestamp>) -> bool {
    at.zip(begun).is_some_and(|(at, begun)| at >= begun)
}

/// Returns whether the compute has ever registered in its cell, as far as its records say.
pub fn is_recorded(services: &[ServiceRun]) -> bool {
    services.iter().any(|it| it.name == NOVA_REGISTERED && it.deployed_hash.is_some())
}
