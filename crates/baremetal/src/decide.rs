//! The decision on a baremetal set: its hosts are evaluated, their machines advance, and the status
//! tells of them. What depends on who provisions the machines is in `hosts::Provisioner`.

use jiff::Timestamp;
use operator_core::finalizers::{add_finalizer, is_terminating, remove_finalizer};
use operator_core::plan::Plan;
use operator_core::rejected_write::RejectedWrite;

use crate::finalizers::MACHINES;
use crate::hosts::Provisioner;
use crate::ironic::Nodes;
use crate::metal3::host::BareMetalHosts;
use crate::observe::{Observed, Unseen};
use crate::status;

/// Decides what to write for a set, after its Ironic requests.
///
/// # Guarantees
/// The finalizer is added before the first machine is taken or the first Secret is written, and
/// removed after the last machine is given back and the last Secret is gone.
pub fn decide(seen: &Observed, rejected: Option<&RejectedWrite>, now: Timestamp) -> Plan {
    if seen.is_of_ironic() {
        decide_of::<Nodes>(seen, rejected, now)
    } else {
        decide_of::<BareMetalHosts>(seen, rejected, now)
    }
}

fn decide_of<P: Provisioner>(
    seen: &Observed,
    rejected: Option<&RejectedWrite>,
    now: Timestamp,
) -> Plan {
    let mut plan = Plan::default();
    if matches!(seen.machines, Err(Unseen::NotYet)) {
        plan.requeue_in(P::pace(seen, &[], now));
        return plan;
    }
    let evaluated = P::evaluate(seen, now);
    if is_terminating(&*seen.set) && P::is_over(seen, &evaluated.hosts) {
        let because = "the set has no machines left";
        plan.steps.extend(remove_finalizer(&*seen.set, MACHINES, because));
        return plan;
    }
    // A set that has never seen machines has taken none. It needs no finalizer, because its Ironic
    // may never answer. Without Metal3's kinds there are no machines.
    if seen.sees_machines() || (seen.is_of_ironic() && seen.has_machines()) {
        let because = "machines are released before it is deleted";
        plan.steps.extend(add_finalizer(&*seen.set, MACHINES, because));
    }
    if seen.sees_machines() && seen.is_held() {
        plan.independent = P::writes(seen, &evaluated.hosts);
    }
    plan.steps.extend(status::step(seen, &evaluated, rejected, now));
    plan.requeue_in(P::pace(seen, &evaluated.hosts, now));
    plan
}
