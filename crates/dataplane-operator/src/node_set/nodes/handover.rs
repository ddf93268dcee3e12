//! Which hosts leave a node set for another one as they are, with their nodes.

use operator_core::finalizers::is_terminating;

use crate::node_set::observed::{Observed, own_set};

/// Returns whether a host goes to another node set as it is. One with a machine of its node set does
/// not: the machine is given back, and the other node set brings its own.
pub fn is_handed_over(seen: &Observed, name: &str) -> bool {
    let machines = seen.set.status.as_ref().map(|it| &it.machines);
    let node = seen.nodes.get(name).filter(|it| !is_terminating(&***it));
    node.is_some()
        && seen.nodes.other_sets.contains_key(name)
        && !machines.is_some_and(|it| it.contains_key(name))
        && !has_machine(seen, name)
}

/// Returns whether the node set's machines still include that of a host.
pub fn has_machine(seen: &Observed, name: &str) -> bool {
    own_set(seen).is_some_and(|it| it.spec.baremetal_hosts.contains_key(name))
}
