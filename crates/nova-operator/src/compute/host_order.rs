//! What is to be done in nova about the host of a compute.

use crate::cleanup;
use crate::compute::host_drain::{enabling, may_be_disabled, request};
use crate::compute::identity;
use crate::compute::observed::Observed;
use crate::drain::order::HostOrder;
use crate::registration::has_registered;

/// Returns what is to be done, or `None` for nothing.
///
/// A node that does not exist requests nothing, so nothing is enabled because of it.
pub fn host_order(seen: &Observed) -> Option<HostOrder> {
    if let Some(ending) = &seen.ending {
        return cleanup::host_order(seen, ending);
    }
    if !has_registered(&seen.compute) {
        return None;
    }
    let request = request(seen)?;
    let order = request.order(may_be_disabled(seen).then(|| enabling(seen)));
    if matches!(order, Some(HostOrder::Enable | HostOrder::EnableOnceUp)) {
        return order;
    }
    identity::order(seen, &request).map(HostOrder::Identity).or(order)
}
