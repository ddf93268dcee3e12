//! What is to be done in nova about the host of a compute.

use crate::cleanup;
use crate::compute::host_drain::{enabling, may_be_disabled, request};
use crate::compute::observed::Observed;
use crate::drain::order::HostOrder;
use crate::drain::request::DrainRequest;
use crate::registration::has_registered;

/// Returns what is to be done, or `None` for nothing.
///
/// A request that is not valid changes nothing, and so does a node that does not exist.
pub fn host_order(seen: &Observed) -> Option<HostOrder> {
    if let Some(ending) = &seen.ending {
        return cleanup::host_order(seen, ending);
    }
    if !has_registered(&seen.compute) {
        return None;
    }
    match request(seen)? {
        DrainRequest::Drain(drain) => Some(HostOrder::Drain(drain)),
        DrainRequest::Absent => may_be_disabled(seen).then(|| enabling(seen)),
        DrainRequest::Invalid(_) => None,
    }
}
