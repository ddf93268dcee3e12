//! Which other object of its namespace has a host that leaves a node set: then it is not removed
//! from nova.

use std::sync::Arc;

use api::dataplane::{Node, NodeSet};
use api::nova::ExternalCompute;
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;
use operator_core::node_set_host::{canonical_host_name, hosts, machine_template};
use operator_core::object_key::Key;

use crate::caches::Caches;
use crate::compute_lifecycle::effective::{DesiredCompute, desired};
use crate::conflicting_service::is_nova;

/// Returns the object of the namespace of a node set that has a host too, as in
/// `NovaExternalCompute n0`; `None` without one.
///
/// `name` is the host's name in the inventory, `host` the one under which its service is registered.
/// The other object is looked for in the specs, because its status may say that the host is taken.
pub fn other_owner(caches: &Caches, set: &NodeSet, (name, host): (&str, &str)) -> Option<String> {
    let namespace = set.namespace().unwrap_or_default();
    // A machine that was provisioned for the node set goes with the host, so nothing can take it over.
    if machine_template(set).is_some() {
        return None;
    }
    let is_other = |it: &Arc<NodeSet>| {
        it.name_any() != set.name_any() && !is_terminating(&**it) && lists_nova(caches, it)
    };
    let of_sets = caches.node_sets_of(&namespace).into_iter().filter(is_other);
    let set = of_sets.filter(|it| has_host(it, name, host)).map(|it| it.name_any()).next();
    let node = || {
        let all = caches.nodes.all().into_iter();
        let mut here = all.filter(|it| it.namespace().as_ref() == Some(&namespace));
        here.find(|it| is_host(it, name, host) && has_cell(caches, it)).map(|it| it.name_any())
    };
    let compute = || {
        let all = caches.computes.all().into_iter();
        let mut here = all.filter(|it| it.namespace().as_ref() == Some(&namespace));
        here.find(|it| is_compute_of(it, host)).map(|it| it.name_any())
    };
    set.map(|it| format!("OpenStackDataPlaneNodeSet {it}"))
        .or_else(|| node().map(|it| format!("OpenStackDataPlaneNode {it}")))
        .or_else(|| compute().map(|it| format!("NovaExternalCompute {it}")))
}

/// Whether a node set lists a service of type nova.
fn lists_nova(caches: &Caches, set: &NodeSet) -> bool {
    let namespace = set.namespace().unwrap_or_default();
    let named = |name: &String| caches.services.get(&Key::new(&namespace, name));
    set.spec.services.iter().any(|it| is_nova(it, named(it).as_deref()))
}

fn has_host(set: &NodeSet, name: &str, host: &str) -> bool {
    hosts(set).iter().any(|it| {
        let canonical = canonical_host_name(set, it);
        canonical == host || it.name == name && is_same_name(&canonical, host)
    })
}

/// Whether two names of hosts may be those of one host: hosts of two domains may have the same
/// first label.
fn is_same_name(one: &str, other: &str) -> bool {
    let is_short = !one.contains('.') || !other.contains('.');
    one == other || is_short && one.split('.').next() == other.split('.').next()
}

/// Whether a node that stays is the host, by its host's names; that of the object counts where it has
/// no other one.
fn is_host(node: &Node, name: &str, host: &str) -> bool {
    let reported = node.status.as_ref().and_then(|it| it.host_name.as_deref());
    let own = node.spec.host_name.as_deref();
    let of_object = node.name_any();
    let of_object = Some(of_object.as_str()).filter(|_| reported.or(own).is_none());
    let mut names = reported.into_iter().chain(own).chain(of_object);
    !is_terminating(node) && names.any(|it| is_same_name(it, host) || it == name)
}

fn has_cell(caches: &Caches, node: &Node) -> bool {
    let role = caches.watched().role_of(node);
    matches!(desired(role.as_deref(), node), DesiredCompute::Cell(_))
}

/// Whether a compute that stays is registered under the host's name.
fn is_compute_of(compute: &ExternalCompute, host: &str) -> bool {
    let registered = compute.status.as_ref().and_then(|it| it.host_name.as_deref());
    !is_terminating(compute) && registered == Some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_two_domains_are_two_hosts_and_a_short_name_may_be_either() {
        for (one, other, is_same) in [
            ("compute-0.a.example", "compute-0.a.example", true),
            ("compute-0", "compute-0.a.example", true),
            ("compute-0.a.example", "compute-0", true),
            ("compute-0.b.example", "compute-0.a.example", false),
            ("compute-1", "compute-0.a.example", false),
        ] {
            assert_eq!(is_same_name(one, other), is_same, "{one} {other}");
        }
    }

    #[test]
    fn a_node_of_the_same_name_with_a_host_in_another_domain_is_another_host() {
        let (name, host) = ("compute-0", "compute-0.a.example");
        let mut node = Node::new(name, <_>::default());
        assert!(is_host(&node, name, host), "without another name that of the node counts");
        for (own, is_it) in [
            ("compute-0.a.example", true),
            ("compute-0", true),
            ("compute-0.b.example", false),
            ("compute-1", false),
        ] {
            node.spec.host_name = Some(own.to_owned());
            assert_eq!(is_host(&node, name, host), is_it, "{own}");
        }
    }
}
