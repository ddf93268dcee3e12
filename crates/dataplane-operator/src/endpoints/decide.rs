//! The decision on a service's exposed ports: what to write, what to delete, and the condition.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::conditions::{ConditionDraft, first_names};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use operator_core::finalizers::is_terminating;
use operator_core::plan::{Step, Target};

use crate::endpoints::build::{exposed, slice, slices_of};
use crate::endpoints::observed::Observed;
use crate::reasons;

/// Condition type: the ports are exposed for all nodes.
pub const ENDPOINTS_READY: &str = "EndpointsReady";

/// Requeue interval while another object has a needed name.
pub const NAME_POLL_INTERVAL: Duration = Duration::from_mins(1);
/// How many nodes a message names.
const NAMED: usize = 5;

fn named<'a, K: Resource>(objects: &'a [Arc<K>], name: &str) -> Option<&'a K> {
    objects.iter().find(|it| it.name_any() == name).map(|it| &**it)
}

/// Returns the writes that expose the listed ports and delete what is no longer needed.
pub fn writes(seen: &Observed) -> Vec<Step> {
    let service = &*seen.service;
    let (mut steps, mut services, mut slices) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for port in &service.spec.services {
        services.insert(port.name.clone());
        if !seen.taken.contains(&format!("Service {}", port.name)) {
            steps.extend(exposed(service, port, named(&seen.exposed, &port.name)));
        }
        for content in slices_of(port, &seen.addresses) {
            let name = content.0.clone();
            if !seen.taken.contains(&format!("EndpointSlice {name}")) {
                steps.extend(slice(service, port, content, named(&seen.slices, &name)));
            }
            slices.insert(name);
        }
    }
    steps.extend(removals(&seen.slices, &slices));
    steps.extend(removals(&seen.exposed, &services));
    steps
}

/// Returns the deletions of the objects that have other names than these.
fn removals<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(
    objects: &[Arc<K>],
    needed: &BTreeSet<String>,
) -> impl Iterator<Item = Step> {
    let gone = objects.iter().filter(|it| !needed.contains(&it.name_any()));
    let gone = gone.filter(|it| !is_terminating(&***it));
    gone.map(|it| Step::delete(Target::of(&**it), "nothing is exposed by it any more"))
}

/// Reports on the exposed ports; `None` if the service lists none.
pub fn condition(seen: &Observed) -> Option<ConditionDraft> {
    (!seen.service.spec.services.is_empty()).then(|| endpoints(seen))
}

fn endpoints(seen: &Observed) -> ConditionDraft {
    if !seen.taken.is_empty() {
        let taken: Vec<&String> = seen.taken.iter().collect();
        let text = format!(
            "{} exists and belongs to others, so it is left alone: delete it, or name the port of \
             OpenStackDataPlaneService {} differently.",
            first_names(&taken, NAMED),
            seen.service.name_any()
        );
        return reasons::service::NAME_TAKEN.condition(ENDPOINTS_READY, text);
    }
    let count = seen.addresses.count();
    let also = outside(seen) + &later(seen);
    let without = &seen.addresses.without;
    if !without.is_empty() {
        let without: Vec<&String> = without.iter().collect();
        let text = format!(
            "{count} addresses are exposed; left out without an IP address in ansibleHost: \
             OpenStackDataPlaneNode {}.{also}",
            first_names(&without, NAMED)
        );
        return reasons::service::ADDRESS_MISSING.condition(ENDPOINTS_READY, text);
    }
    let text = format!("The ports of {count} addresses are exposed.{also}");
    if seen.addresses.outside.is_empty() {
        reasons::service::EXPOSED.condition(ENDPOINTS_READY, text)
    } else {
        reasons::service::ADDRESS_NOT_ALLOWED.condition(ENDPOINTS_READY, text)
    }
}

/// Lists the nodes that are not exposed because of the administrator's allowed networks.
fn outside(seen: &Observed) -> String {
    let nodes = named_nodes(&seen.addresses.outside);
    nodes.map_or_else(String::new, |it| {
        format!(
            " {it}: not exposed, because the chart's dataplane.serviceNetworks has no network with its \
             address; ask the administrator to add it."
        )
    })
}

/// Lists the nodes that are exposed only after a deployment.
fn later(seen: &Observed) -> String {
    let nodes = named_nodes(&seen.addresses.unreached);
    nodes.map_or_else(String::new, |it| {
        format!(" {it}: exposed once a deployment has succeeded there.")
    })
}

/// Formats the first of some nodes for a message; `None` if there are none.
fn named_nodes(nodes: &BTreeSet<String>) -> Option<String> {
    let nodes: Vec<&String> = nodes.iter().collect();
    (!nodes.is_empty()).then(|| format!("OpenStackDataPlaneNode {}", first_names(&nodes, NAMED)))
}
