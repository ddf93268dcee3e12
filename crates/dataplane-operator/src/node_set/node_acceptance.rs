//! Whether each host of a node set has its node, and the condition where it has none.

use std::collections::BTreeSet;

use api::conditions::{ConditionDraft, Severity, find, first_names};
use api::dataplane::condition_types::NODES_ACCEPTED;
use api::dataplane::node_set::MAX_HOSTS;
use api::names::is_dns_label;
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;
use operator_core::node_set_host::{Host, hosts};
use operator_core::rejected_write::RejectedWrite;

use crate::conditions::NAMED;
use crate::node_set::observed::Observed;
use crate::reasons;

/// Returns the names of hosts that have no node, and for whose names no other object has one.
pub fn missing<'a>(seen: &Observed, hosts: &'a [Host<'_>]) -> BTreeSet<&'a str> {
    if hosts.len() > MAX_HOSTS {
        return BTreeSet::new();
    }
    let names = hosts.iter().map(|it| it.name.as_str());
    names.filter(|it| is_dns_label(it) && !exists(seen, it)).collect()
}

/// Returns whether there is a node of a host's name, of this node set or not.
pub fn exists(seen: &Observed, name: &str) -> bool {
    seen.nodes.get(name).is_some() || seen.nodes.foreign.contains_key(name)
}

/// Returns whether the nodes of hosts are still to be made; those that are refused are not waited for.
pub fn are_awaited(seen: &Observed, hosts: &[Host<'_>]) -> bool {
    let is_refused = seen.nodes.are_made && was_refused(seen);
    !is_refused && !is_terminating(&*seen.set) && !missing(seen, hosts).is_empty()
}

/// Returns whether the API server has refused a node before.
pub fn was_refused(seen: &Observed) -> bool {
    let reported = find(seen.set.conditions(), NODES_ACCEPTED);
    reported.is_some_and(|it| it.reason != reasons::node_set::NODE_NOT_OURS.word)
}

/// Returns the condition of nodes that the API server has `refused`, that others have, or that cannot
/// be made at all.
pub fn condition(seen: &Observed, refused: Option<&RejectedWrite>) -> Option<ConditionDraft> {
    if !seen.nodes.are_made {
        let text = "The cluster's definition of OpenStackDataPlaneNode is of an earlier release, or \
                    belongs to another operator, so that hosts have no nodes and none is deployed. \
                    Install the definitions of this release, then restart dataplane-operator.";
        return Some(reasons::node_set::NODES_NOT_SERVED.condition(NODES_ACCEPTED, text));
    }
    if let Some(refused) = refused {
        let condition = refused.condition(NODES_ACCEPTED, seen.set.conditions());
        return Some(condition.with_severity(Severity::Warning));
    }
    let listed: BTreeSet<String> = hosts(&seen.set).into_iter().map(|it| it.name).collect();
    let foreign = seen.nodes.foreign.keys().filter(|it| listed.contains(*it));
    let names: Vec<&String> = foreign.collect();
    (!names.is_empty()).then(|| {
        let text = format!(
            "OpenStackDataPlaneNode {} is not one of OpenStackDataPlaneNodeSet {}, which has a host of \
             that name: the host takes no part in deployments. Delete the node, take the host out \
             where it belongs now, or give it another name.",
            first_names(&names, NAMED),
            seen.set.name_any()
        );
        reasons::node_set::NODE_NOT_OURS.condition(NODES_ACCEPTED, text)
    })
}
