//! The decision on a baremetal set, by who provisions its machines.

use jiff::Timestamp;
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;

use crate::observe::Observed;
use crate::{ironic, metal3};

/// Decides what to write for a set.
pub fn decide(seen: &Observed, now: Timestamp) -> Plan {
    if seen.is_of_ironic() {
        ironic::decide::decide(seen, now)
    } else {
        metal3::decide::decide(seen, now)
    }
}

/// Returns the status step that reports a rejected write.
pub fn refused(seen: &Observed, rejected: &RejectedWrite, now: Timestamp) -> Plan {
    if seen.is_of_ironic() {
        ironic::decide::refused(seen, rejected, now)
    } else {
        metal3::decide::refused(seen, rejected, now)
    }
}
