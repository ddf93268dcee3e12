//! What is to be done in nova about the host of a compute.

use crate::cleanup;
use crate::compute::observed::Observed;
use crate::drain::order::{HostOrder, order};
use crate::drain::request::requested;

/// Returns what is to be done, or `None` for nothing.
///
/// A node that does not exist requests nothing, so nothing is enabled because of it.
pub fn host_order(seen: &Observed) -> Option<HostOrder> {
    if let Some(ending) = &seen.ending {
        return cleanup::host_order(seen, ending);
    }
    let disabled = seen.health.as_ref().and_then(|it| it.disabled.as_deref());
    order(&requested(seen.role.as_deref(), seen.node.as_deref()?), disabled)
}
