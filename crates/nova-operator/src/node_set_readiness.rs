//! Reports which hosts of a node set do not satisfy the readiness gate that a service of type nova
//! lists, which ones deployments may disturb, and which have to be removed from nova before they
//! leave.

use std::collections::BTreeMap;

use api::dataplane::{
    HostNotReady, HostReadiness, HostReadinessSpec, NODE_SET_UID, NodeSet, Service,
};
use kube::{Resource, ResourceExt};
use nova_config::conditions::{HOST_DISCOVERED, NODE_SERVICE_UP};
use operator_core::finalizers::is_terminating;
use operator_core::object_key::Key;
use operator_core::plan::{Plan, Step, Target};
use serde_json::{Value, json};

use crate::drain::order::OrderOfHost;
use crate::node_set_computes::observed::HostReading;
use crate::node_set_computes::removal::finalizers::HostFinalizers;
use crate::node_set_computes::removal::record::{HOSTS, records, text};
use crate::nova_health::{MappingHealth, ServiceHealth};
use crate::reasons;

/// Returns whether a service lists the readiness gate that this operator reports.
pub fn lists_gate(service: &Service) -> bool {
    service.spec.readiness_gates.iter().any(|it| it.condition_type == NODE_SERVICE_UP)
}

/// Returns the key of the report about a node set, by the key of that.
pub fn report_key(set: &Key) -> Key {
    Key::new(&set.namespace, format!("{}-nova", set.name))
}

/// Returns whether a report is one of this operator.
pub fn is_ours(report: &HostReadiness) -> bool {
    report.spec.condition_type == NODE_SERVICE_UP
}

/// What a report about a node set is made from; hosts have their names in the inventory.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Each host with what is known of it; `None` where no service lists the gate.
    pub gated: Option<Vec<HostReading>>,
    /// The hosts that may be disturbed, each with the UID of the deployment that may; `None` where
    /// deployments wait for nothing.
    pub disruption_allowed: Option<BTreeMap<String, String>>,
    /// The hosts that have to be removed from nova before they leave.
    pub finalizers: HostFinalizers,
}

impl Contents {
    /// Whether there is nothing to report.
    pub fn is_empty(&self) -> bool {
        let has_finalizers = !self.finalizers.hosts.is_empty();
        self.gated.is_none() && self.disruption_allowed.is_none() && !has_finalizers
    }
}

/// Returns the step that writes the report about a node set; `None` when `found`, the present
/// report, is up to date. Of a node set that is being deleted, no gate is judged.
///
/// A report with host finalizers has no owner: a deletion of the node set in the foreground would
/// delete it first, and its hosts would be let go.
pub fn step(set: &NodeSet, contents: &Contents, found: Option<&HostReadiness>) -> Option<Step> {
    let finalizers = &contents.finalizers;
    let mut spec = match found.filter(|_| is_terminating(set)) {
        Some(found) => HostReadinessSpec {
            disruption_allowed: contents.disruption_allowed.clone(),
            ..found.spec.clone()
        },
        None => spec(set, contents, found),
    };
    spec.host_finalizers.clone_from(&finalizers.hosts);
    let is_recorded = |it: &HostReadiness| records(it) == finalizers.records;
    let has_owner = finalizers.hosts.is_empty();
    let uid = set.uid().unwrap_or_default();
    let is_its = |it: &HostReadiness| {
        let is_owned = it.owner_references().iter().any(|it| it.uid == uid);
        is_owned == has_owner && it.labels().get(NODE_SET_UID) == Some(&uid)
    };
    if found.is_some_and(|it| it.spec == spec && is_its(it) && is_recorded(it)) {
        return None;
    }
    let Key { namespace, name } = report_key(&Key::of(set));
    let target = Target::named::<HostReadiness>(namespace, name);
    let mut object = json!({ "metadata": { "labels": { NODE_SET_UID: uid } }, "spec": spec });
    if has_owner {
        object["metadata"]["ownerReferences"] = json!([owner(set)]);
    }
    if !finalizers.records.is_empty() {
        object["metadata"]["annotations"] = json!({ HOSTS: text(&finalizers.records) });
    }
    Some(Step::apply(target, object, "what is known of the hosts has changed"))
}

/// Returns the step that deletes the report about a node set of which nothing is reported.
pub fn removal(found: &HostReadiness) -> Step {
    let because = "no readiness gate, host finalizer or drain before a deployment needs it";
    Step::delete(Target::of(found), because)
}

/// Whether a report about this node set is left when the node set is gone: the garbage collector
/// deletes only one with an owner.
pub fn is_left(report: &HostReadiness, set: &Key) -> bool {
    let is_written = is_ours(report) && report.labels().contains_key(NODE_SET_UID);
    is_written && report.spec.node_set == set.name && report.owner_references().is_empty()
}

/// Returns the plan for a report that is left.
pub fn removal_after(found: &HostReadiness) -> Plan<OrderOfHost> {
    let step = Step::delete(Target::of(found), "its node set is gone");
    let steps = Some(step).filter(|_| !is_terminating(found)).into_iter().collect();
    Plan { steps, ..Plan::default() }
}

/// Returns an owner reference that blocks no deletion, for which no further right is needed.
fn owner(set: &NodeSet) -> Value {
    json!({
        "apiVersion": NodeSet::api_version(&()),
        "kind": NodeSet::kind(&()),
        "name": set.name_any(),
        "uid": set.uid(),
    })
}

fn spec(set: &NodeSet, contents: &Contents, found: Option<&HostReadiness>) -> HostReadinessSpec {
    let reported = HostReadinessSpec {
        node_set: set.name_any(),
        condition_type: NODE_SERVICE_UP.to_owned(),
        disruption_allowed: contents.disruption_allowed.clone(),
        ..HostReadinessSpec::default()
    };
    // A gate that is listed later is not reported before the hosts were judged: without it, no
    // deployment counts as observed.
    let Some(hosts) = &contents.gated else { return reported };
    let (observed_deployments, not_ready) = judged_since(set, hosts, found);
    HostReadinessSpec { observed_deployments, not_ready, ..reported }
}

/// Returns the deployments that have settled, and the hosts that do not satisfy the gate since
/// then.
fn judged_since(
    set: &NodeSet,
    hosts: &[HostReading],
    found: Option<&HostReadiness>,
) -> (Vec<String>, BTreeMap<String, HostNotReady>) {
    let deployments =
        set.status.as_ref().map(|it| it.settled_deployments.clone()).unwrap_or_default();
    // What was reported before a deployment says nothing of what that has left.
    let is_current = |it: &&HostReadiness| {
        deployments.iter().all(|uid| it.spec.observed_deployments.contains(uid))
    };
    let before = found.filter(is_current).map(|it| &it.spec.not_ready);
    let entry = |host: &HostReading| {
        let entry = match judged(host) {
            Readiness::Ready => None,
            Readiness::NotReady(entry) => Some(entry),
            Readiness::Unknown(entry) => match before {
                Some(before) => before.get(&host.name).map(|it| still_unknown(it, entry)),
                None => Some(entry),
            },
        };
        Some((host.name.clone(), entry?))
    };
    let not_ready = hosts.iter().filter_map(entry).collect();
    (deployments, not_ready)
}

/// Returns the present entry of a host that is unknown; the new one where both say why it is so.
fn still_unknown(before: &HostNotReady, entry: HostNotReady) -> HostNotReady {
    let silent =
        [reasons::compute::NOVA_NOT_ANSWERING.word, reasons::compute::CELL_NOT_ANSWERING.word];
    let was_unknown = before.reason == reasons::compute::NOT_READ.word
        || silent.contains(&before.reason.as_str());
    let is_known_why = silent.contains(&entry.reason.as_str());
    if was_unknown && is_known_why { entry } else { before.clone() }
}

/// What follows for one host.
enum Readiness {
    /// nova-compute is up, and the host is mapped to its cell.
    Ready,
    /// One of both is not so.
    NotReady(HostNotReady),
    /// It is not known: what was reported since the last deployment stays, else this entry holds.
    Unknown(HostNotReady),
}

/// Returns the entry of a host while the list of hypervisors alone cannot be read.
fn not_listed(reason: &str, cause: Option<&str>) -> Readiness {
    let text = match cause {
        Some(cause) => format!("Nova's list of hypervisors cannot be read: {cause}"),
        None => format!(
            "Nova's list of hypervisors cannot be read ({reason}); the cause is in NovaAPIReady of \
             the NovaCell."
        ),
    };
    Readiness::Unknown(HostNotReady::new(reasons::compute::NOVA_NOT_ANSWERING.word, &text))
}

fn judged(reading: &HostReading) -> Readiness {
    let HostReading { name: host, health, .. } = reading;
    let not_read = || {
        let text = format!(
            "Nova's API has not been read often enough to judge host {host}. If that lasts, the \
             namespace has no NovaCell, or NovaAPIReady of one has the cause."
        );
        Readiness::Unknown(HostNotReady::new(reasons::compute::NOT_READ.word, &text))
    };
    let not_ready = |word, text: String| Readiness::NotReady(HostNotReady::new(word, &text));
    match (&health.service, &health.mapping) {
        (ServiceHealth::Up { .. }, MappingHealth::Mapped) => Readiness::Ready,
        (ServiceHealth::Up { .. }, MappingHealth::NotMapped) => {
            not_ready(reasons::compute::NOT_MAPPED.word, not_mapped(reading))
        }
        (ServiceHealth::Up { .. }, MappingHealth::NotListed { reason }) => {
            not_listed(reason, health.cause.as_deref())
        }
        (ServiceHealth::Up { .. }, MappingHealth::Pending | MappingHealth::ApiFails)
        | (ServiceHealth::Pending, _) => not_read(),
        (ServiceHealth::Down { is_forced: true, .. }, _) => {
            let text = format!(
                "The service of host {host} is forced down. When the host is well: openstack \
                 --os-compute-api-version 2.11 compute service set --up {host} nova-compute"
            );
            not_ready(reasons::compute::FORCED_DOWN.word, text)
        }
        (ServiceHealth::Down { .. }, _) => {
            let text = format!(
                "nova-compute on host {host} has not reported to nova. Look on the host: systemctl \
                 status edpm_nova_compute; podman logs nova_compute"
            );
            not_ready(reasons::compute::SERVICE_DOWN.word, text)
        }
        (ServiceHealth::NotFound, _) => {
            let text = format!("No cell of the namespace has a compute service of host {host}.");
            not_ready(reasons::compute::SERVICE_NOT_FOUND.word, text)
        }
        (ServiceHealth::ApiFails, _) => {
            let text = match &health.cause {
                Some(cause) => format!("Nova's API cannot be read: {cause}"),
                None => "Nova's API does not answer; the cause is in NovaAPIReady of the NovaCell."
                    .to_owned(),
            };
            Readiness::Unknown(HostNotReady::new(reasons::compute::NOVA_NOT_ANSWERING.word, &text))
        }
        (ServiceHealth::CellNotAnswering, _) => {
            let text = format!("The database of the cell of host {host} does not answer nova.");
            Readiness::Unknown(HostNotReady::new(reasons::compute::CELL_NOT_ANSWERING.word, &text))
        }
    }
}

fn not_mapped(HostReading { name, discovered_by, .. }: &HostReading) -> String {
    let next_step = match discovered_by {
        Some(cell) => format!("{HOST_DISCOVERED} of NovaCell {cell} has how far its discovery is."),
        None => {
            "wait for nova's scheduler where it discovers hosts, or run where nova-manage reaches \
                 nova's API database: nova-manage cell_v2 discover_hosts"
                .to_owned()
        }
    };
    format!("Host {name} is not mapped to its cell, so nova does not schedule to it: {next_step}")
}

#[cfg(test)]
mod tests;
