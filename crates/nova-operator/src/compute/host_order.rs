//! What is to be done in nova about the host of a compute.

use crate::cleanup;
use crate::compute::identity;
use crate::compute::observed::Observed;
use crate::drain::order::{HostOrder, is_ours};
use crate::drain::request::{DrainRequest, requested};
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
    let disabled = seen.health.as_ref().and_then(|it| it.disabled.as_deref());
    let request = requested(seen.role.as_deref(), seen.node.as_deref()?);
    let order = order(&request, disabled);
    if order == Some(HostOrder::Enable) {
        return order;
    }
    identity::order(seen, &request).map(HostOrder::Identity).or(order)
}

/// Returns what is to be done, or `None` for nothing; `disabled` is the reason of the service if it
/// is disabled.
///
/// A request that is not valid changes nothing.
pub fn order(request: &DrainRequest, disabled: Option<&str>) -> Option<HostOrder> {
    match request {
        DrainRequest::Drain(drain) => Some(HostOrder::Drain(drain.clone())),
        DrainRequest::Absent => disabled.is_some_and(is_ours).then_some(HostOrder::Enable),
        DrainRequest::Invalid(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drain::order::{Drain, DrainMode, MARKER, REMOVAL_MARKER};

    fn drain(reason: &str) -> Drain {
        Drain { mode: DrainMode::Wait, reason: reason.to_owned() }
    }

    #[test]
    fn only_a_service_that_the_operator_disabled_is_enabled() {
        assert_eq!(order(&DrainRequest::Absent, Some(MARKER)), Some(HostOrder::Enable));
        let of_removal = drain("NovaExternalCompute ns/n0 is being deleted");
        let left = of_removal.disabled_reason(REMOVAL_MARKER);
        assert_eq!(order(&DrainRequest::Absent, Some(&left)), Some(HostOrder::Enable));
        assert_eq!(order(&DrainRequest::Absent, Some("broken")), None);
        assert_eq!(order(&DrainRequest::Absent, None), None);
        let request = DrainRequest::Drain(drain("x"));
        for disabled in [None, Some("broken"), Some(MARKER)] {
            assert_eq!(order(&request, disabled), Some(HostOrder::Drain(drain("x"))));
        }
    }
}
