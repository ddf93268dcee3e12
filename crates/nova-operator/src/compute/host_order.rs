//! What is to be done in nova about the host of a compute.

use crate::cleanup;
use crate::compute::host_drain::{belongs_to_rollout, enabling, may_be_disabled, request};
use crate::compute::identity;
use crate::compute::nova_matches;
use crate::compute::observed::Observed;
use crate::drain::order::{HostOrder, IdentityGoal};
use crate::registration::has_registered;

/// Returns what is to be done, or `None` for nothing.
///
/// A node that does not exist requests nothing, so nothing is enabled because of it. Nothing is done
/// where nova has the host under another identity than the recorded one.
pub fn host_order(seen: &Observed) -> Option<HostOrder> {
    if nova_matches::held(seen).is_some() {
        return None;
    }
    if let Some(ending) = &seen.ending {
        return cleanup::host_order(seen, ending);
    }
    if !has_registered(&seen.compute) {
        return None;
    }
    let request = request(seen)?;
    let enabling = may_be_disabled(seen).then(|| enabling(seen));
    let order = request.order(enabling, belongs_to_rollout(seen));
    let is_released = matches!(order, Some(HostOrder::Enable | HostOrder::EnableOnceUp));
    // A nova-compute that has lost its identity does not report before that is restored.
    let identity = identity::order(seen, &request)
        .filter(|it| !is_released || it.goal == IdentityGoal::Restore);
    identity.map(HostOrder::Identity).or(order)
}
