//! Whether a compute has registered in nova under its host's name.
//!
//! What proves it is a success: of the operator's own check, or, where a service of type nova deploys
//! the compute, of that service, whose record the compute repeats from its node.

use api::dataplane::ServiceRun;
use api::nova::ExternalCompute;
use jiff::Timestamp;
use nova_config::services::{NOVA_CLEANUP, NOVA_REGISTERED, NOVA_RESTORE};

/// Returns the record among those of a compute whose success shows that it has registered.
pub fn proof<'a>(compute: &ExternalCompute, services: &'a [ServiceRun]) -> Option<&'a ServiceRun> {
    let is_own_run = |it: &ServiceRun| [NOVA_CLEANUP, NOVA_RESTORE].contains(&it.name.as_str());
    if compute.is_observed() {
        return services.iter().find(|it| !is_own_run(it));
    }
    services.iter().find(|it| it.name == NOVA_REGISTERED)
}

/// Returns the same record as it is written.
pub fn recorded_proof(compute: &ExternalCompute) -> Option<&ServiceRun> {
    proof(compute, compute.services())
}

/// Returns whether every service of the compute has succeeded once.
pub fn was_deployed(compute: &ExternalCompute) -> bool {
    if compute.is_observed() {
        return recorded_proof(compute).is_some_and(|it| it.deployed_hash.is_some());
    }
    compute.status.as_ref().is_some_and(|it| !it.deployed_inputs.is_empty())
}

/// Returns whether the compute is known to have registered: only then is what nova has under its
/// host's name its own.
pub fn has_registered(compute: &ExternalCompute) -> bool {
    let has_node = compute.status.as_ref().is_some_and(|it| it.compute_id.is_some());
    was_deployed(compute) || has_node || is_recorded(compute, compute.services())
}

/// Returns the host under which a compute is registered; `None` unless it is known to have
/// registered.
pub fn registered_host(compute: &ExternalCompute) -> Option<&str> {
    compute.host_name().filter(|_| has_registered(compute))
}

/// Returns when a compute has last registered, by the clock of this operator; `None` where no record
/// says it.
pub fn registered_at(compute: &ExternalCompute) -> Option<Timestamp> {
    recorded_at(compute, compute.services())
}

/// Returns the same of records that are not written yet. Those of a service that another operator runs
/// are by that one's clock, which is not compared with readings.
pub fn recorded_at(compute: &ExternalCompute, services: &[ServiceRun]) -> Option<Timestamp> {
    Some(proof(compute, services).filter(|_| !compute.is_observed())?.since.0)
}

/// Whether a compute that registered at this time did so after a reading began.
pub fn has_registered_since(at: Option<Timestamp>, begun: Option<Timestamp>) -> bool {
    at.zip(begun).is_some_and(|(at, begun)| at >= begun)
}

/// Returns whether the compute has ever registered in its cell, as far as its records say.
pub fn is_recorded(compute: &ExternalCompute, services: &[ServiceRun]) -> bool {
    proof(compute, services).is_some_and(|it| it.deployed_hash.is_some())
}

#[cfg(test)]
mod tests;
