//! The part of a node's status that this operator writes.

use api::dataplane::{Disruption, NodeStatus};

/// Returns the status without what other operators write into it beside their conditions.
pub fn own(status: &NodeStatus) -> NodeStatus {
    let disruption = status.disruption.clone();
    let disruption = disruption.map(|it| Disruption { holders: Vec::new(), ..it });
    NodeStatus {
        disruption: disruption.filter(|it| *it != Disruption::default()),
        host_vars: Vec::new(),
        ..status.clone()
    }
}
