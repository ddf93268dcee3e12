//! The status of a node set, from its evaluation.

use std::collections::BTreeMap;

use api::conditions::{
    self, ConditionDraft, READY, Severity, first_names, merge_conditions, shortened, truncated,
};
use api::dataplane::condition_types::{
    CERTIFICATES_READY, DEPLOYMENT_READY, INPUT_READY, SETUP_READY, UP_TO_DATE,
};
use api::dataplane::{HostMachine, HostState, NodeSet, NodeSetStatus};
use api::problem::Problem;
use api::shared::SourceKind;
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::data_sources::{NamedSource, sources_of};
use operator_core::finalizers::{is_only_finalizer, is_terminating};
use operator_core::host_key_checking;
use operator_core::keyed::{Renewal, kept};
use operator_core::node_set_host::HostNetworkValues;
use operator_core::plan::{Step, Target};
use operator_core::run_engine::changed_text;
use operator_core::run_engine::host_progress::count;
use operator_core::run_engine::mounts::node_sets::inventory_name;
use operator_core::run_engine::outcome::FailureReason;
use operator_runtime::source_cache::Digests;

use crate::conditions::{NAMED, input, service_inputs};
use crate::finalizers::{INVENTORY_FINALIZER, of_others};
use crate::host::conflicts::shared_keys::HOST_KEY_UNIQUE;
use crate::host::inputs::changed_inputs;
use crate::host::tls::brings_certificates;
use crate::ignored_annotations;
use crate::node_set::deployment_history::{FAILURES, KnownHost};
use crate::node_set::dns::DNS_DATA_READY;
use crate::node_set::ipam::IP_RESERVATION_READY;
use crate::node_set::last_looks::MACHINES_GIVEN_BACK;
use crate::node_set::machine_request::Machines;
use crate::node_set::observed::{Observed, own_set};
use crate::node_set::resolve::Resolved;
use crate::node_set::{inputs, kept_hosts, last_looks, terminating};
use crate::{reasons, spec_warnings};

/// Condition type: the ServiceAccount of the runs exists. It does not affect `Ready`.
pub const SERVICE_ACCOUNT_READY: &str = "ServiceAccountReady";

/// Inputs that each run takes from the node set when it is created, so that they can be corrected
/// while runs fail.
const OF_PODS: [&str; 3] = ["env", "networkAttachments", "nodeTemplate.extraMounts"];
/// Length limit of the part of a message about one host, or about changed inputs.
const TEXT: usize = 300;

/// The text where hosts can have no nodes.
const UNSERVED: &str = "Its hosts can have no nodes; see NodesAccepted.";

/// Returns the status step, if the status changes; `of_nodes` is the condition of refused nodes.
pub fn step(
    seen: &Observed,
    resolved: &Resolved<'_>,
    rejected: Option<ConditionDraft>,
    of_nodes: Option<ConditionDraft>,
    now: Timestamp,
) -> Option<Step> {
    let set = &seen.set;
    let nothing = NodeSetStatus::default();
    let recorded = set.status.as_ref().unwrap_or(&nothing);
    let mut drafts = conditions(seen, resolved, recorded, rejected);
    drafts.extend(last_looks::condition(seen, now));
    drafts.extend(ignored_annotations::of_group(&**set, seen.nodes.own.keys()));
    drafts.extend(without_effect(set, resolved));
    drafts.extend(of_nodes);
    let outcome = resolved.outcome.clone();
    let (config_hash, inputs) = published(seen, resolved, recorded);
    let of_terminating = |recorded: &HostNetworkValues, present: &HostNetworkValues| {
        let mut all = kept_hosts::recorded(&resolved.terminating, recorded);
        all.extend(present.clone());
        all
    };
    let is_written = resolved.content.is_some() || seen.inventory.is_some();
    let expected = NodeSetStatus {
        observed_generation: set.metadata.generation,
        conditions: merge_conditions(&recorded.conditions, drafts, set.metadata.generation, now),
        nodes: count(outcome.hosts.len()),
        ready_nodes: count(outcome.n_ready()),
        hosts: outcome.clone().into_hosts(),
        inventory_secret_name: is_written.then(|| inventory_name(&set.name_any())),
        config_hash,
        inputs,
        all_hostnames: of_terminating(&recorded.all_hostnames, &resolved.served.names),
        all_ips: of_terminating(&recorded.all_ips, &resolved.served.addresses),
        dns_cluster_addresses: resolved.served.dns_servers.clone(),
        ctlplane_search_domain: resolved.served.search_domain.clone(),
        certificates: resolved.served.certificates.clone(),
        machines: all_machines(resolved),
        bmh_ref_hash: resolved.machines.digest(),
        ..outcome.status
    };
    let (renewed, renewal) = renewed(seen, resolved, &expected);
    let way_on = "To bring a change to the hosts, create an OpenStackDataPlaneDeployment.";
    let target = Target::of::<NodeSet>(set);
    renewal.step(target, set.status.as_ref(), (&expected, &renewed), way_on)
}

/// Returns the condition about what in the specs of the node set and its services is without effect.
fn without_effect(set: &NodeSet, resolved: &Resolved<'_>) -> Option<ConditionDraft> {
    let mounts = &set.spec.node_template.extra_mounts;
    let mut found = spec_warnings::of_mounts("spec.nodeTemplate.extraMounts", mounts);
    found.extend_from_slice(&resolved.served.without_effect);
    spec_warnings::condition(&format!("OpenStackDataPlaneNodeSet {}", set.name_any()), &found)
}

/// Returns the records of the machines of all hosts, also of those that are terminating.
fn all_machines(resolved: &Resolved<'_>) -> BTreeMap<String, HostMachine> {
    let Machines { records, of_terminating, .. } = &resolved.machines;
    records.iter().chain(of_terminating).map(|(name, it)| (name.clone(), it.clone())).collect()
}

/// Returns the same status with its digests re-keyed with the present key. While a deployment is
/// under way, the config digest stays, because it identifies what the deployment began with.
fn renewed(
    seen: &Observed,
    resolved: &Resolved<'_>,
    desired: &NodeSetStatus,
) -> (NodeSetStatus, Renewal) {
    let (mut renewed, mut renewal) = (desired.clone(), Renewal::default());
    if seen.is_in_use() {
        return (renewed, renewal);
    }
    let present = inputs::digest(&resolved.inputs);
    renewal.of_some(renewed.config_hash.as_mut(), &present);
    renewal.of_some(renewed.deployed_config_hash.as_mut(), &present);
    renewal.of_inputs(&mut renewed.inputs, &resolved.inputs);
    renewal.of_inputs(&mut renewed.deployed_inputs, &resolved.inputs);
    (renewed, renewal)
}

/// Returns the config digest and inputs of the inventory. Both stay while the inventory is frozen,
/// because a deployment under way uses the digest to identify what it began with.
fn published(
    seen: &Observed,
    resolved: &Resolved<'_>,
    recorded: &NodeSetStatus,
) -> (Option<String>, BTreeMap<String, String>) {
    let is_kept = seen.is_in_use() || resolved.content.is_none();
    if is_kept && (recorded.config_hash.is_some() || resolved.content.is_none()) {
        return (recorded.config_hash.clone(), recorded.inputs.clone());
    }
    let config_hash = inputs::digest(&resolved.inputs).kept(recorded.config_hash.as_ref());
    (Some(config_hash), kept(&recorded.inputs, &resolved.inputs))
}

fn conditions(
    seen: &Observed,
    resolved: &Resolved<'_>,
    recorded: &NodeSetStatus,
    rejected: Option<ConditionDraft>,
) -> Vec<ConditionDraft> {
    let name = seen.set.name_any();
    let faults: Vec<Problem> =
        resolved.problems.iter().chain(&resolved.network_faults).cloned().collect();
    let deployment = deployment(seen, resolved);
    let is_deployed = deployment.holds();
    let machines = resolved.machines.condition(seen, &resolved.hosts);
    let mut drafts: Vec<ConditionDraft> = machines.into_iter().collect();
    drafts.push(input(&faults));
    drafts.extend(resolved.served.conditions.clone());
    drafts.extend([setup(seen, resolved, recorded), deployment]);
    drafts.extend(resolved.gates.as_ref().map(|it| it.condition.clone()));
    drafts.extend(rejected);
    // Missing inputs of a deployment do not affect hosts that need none. An edit whose inputs were
    // never complete, however, has no earlier state to keep.
    let missing =
        [INPUT_READY, IP_RESERVATION_READY, DNS_DATA_READY, CERTIFICATES_READY, SETUP_READY];
    let stands = conditions::has_held(&recorded.conditions, READY, seen.set.metadata.generation);
    let is_blocking = |it: &&ConditionDraft| {
        !is_deployed || !missing.contains(&it.type_.as_str()) || it.type_ == INPUT_READY && !stands
    };
    let good = format!("OpenStackDataPlaneNodeSet {name} is deployed.");
    let good = reasons::node_set::READY.condition(READY, good);
    let ready = conditions::ready(drafts.iter().filter(is_blocking), good);
    let of_services = service_inputs(&resolved.service_faults);
    drafts.extend([ready, up_to_date(seen, resolved), service_account(), of_services]);
    let shared = resolved.shared_keys.as_ref();
    drafts.extend(shared.map(|it| reasons::inputs::HOST_KEY_SHARED.condition(HOST_KEY_UNIQUE, it)));
    let levels = seen.set.spec.nodes.values().map(|it| it.ansible.as_ref());
    let levels = levels.chain([seen.set.spec.node_template.ansible.as_ref()]).flatten();
    let vars = levels.map(|it| &it.ansible_vars);
    drafts.extend(host_key_checking::condition(vars, "ansibleVars of the node set"));
    drafts
}

/// Returns a condition that always holds: upstream's runs need their own ServiceAccount, and
/// clients may wait for it; here runs have none.
fn service_account() -> ConditionDraft {
    let text = "Runs have no ServiceAccount of their own, and need none.";
    reasons::node_set::NO_SERVICE_ACCOUNT.condition(SERVICE_ACCOUNT_READY, text)
}

fn setup(seen: &Observed, resolved: &Resolved<'_>, recorded: &NodeSetStatus) -> ConditionDraft {
    let name = seen.set.name_any();
    if is_terminating(&*seen.set) {
        let cause = blocked(seen, resolved);
        let text = format!("OpenStackDataPlaneNodeSet {name} is to be deleted, and {cause}");
        return reasons::node_set::DELETION_WAITS.condition(SETUP_READY, text);
    }
    let is_complete = resolved.problems.is_empty();
    if let Some(it) = resolved.served.missing().filter(|_| is_complete) {
        let text = format!("{}: {}", it.type_, it.message);
        return reasons::node_set::NOT_SERVED_YET.condition(SETUP_READY, text);
    }
    if resolved.lacks_nodes {
        let are_made = seen.nodes.are_made;
        let text = if are_made { "The nodes of its hosts are being made." } else { UNSERVED };
        return reasons::node_set::NODES_AWAITED.condition(SETUP_READY, text);
    }
    if resolved.content.is_none() {
        let text = "There is no inventory for its present spec; see InputReady.";
        return reasons::inputs::INPUT_MISSING.condition(SETUP_READY, text);
    }
    if let ([first, ..], Some(known)) =
        (resolved.outcome.under_way.as_slice(), &recorded.config_hash)
        && !inputs::digest(&resolved.inputs).is(known)
    {
        // A deployment that begins now would use the inputs before the change.
        let text = format!(
            "The inventory of OpenStackDataPlaneNodeSet {name} waits for the end of \
             OpenStackDataPlaneDeployment {first}; another one begins after that."
        );
        return reasons::node_set::DEPLOYMENT_UNDER_WAY.condition(SETUP_READY, text);
    }
    let text = format!("Deployments of OpenStackDataPlaneNodeSet {name} can begin.");
    reasons::node_set::SET_UP.condition(SETUP_READY, text)
}

/// Returns what blocks the deletion of a node set.
fn blocked(seen: &Observed, resolved: &Resolved<'_>) -> String {
    let Some(first) = resolved.outcome.under_way.first() else {
        if let Some(text) = cleanup(seen) {
            return text;
        }
        if !last_looks::held_names(seen).is_empty() {
            return format!("its machines are not given back yet: see {MACHINES_GIVEN_BACK}.");
        }
        let others = of_others(&*seen.set).join(", ");
        return match own_set(seen) {
            _ if !is_only_finalizer(&*seen.set, INVENTORY_FINALIZER) => {
                format!("waits until the controllers of its finalizers remove them: {others}.")
            }
            Some(set) => {
                let name = set.name_any();
                format!("waits until OpenStackBaremetalSet {name} has given back its machines.")
            }
            None => "waits until the OpenStackDataPlaneNodes of its hosts are gone.".to_owned(),
        };
    };
    format!(
        "waits for OpenStackDataPlaneDeployment {first}, which is under way and needs its inventory: \
         it goes when that has ended. To end that one as well: kubectl delete -n {} \
         openstackdataplanedeployment/{first}",
        seen.namespace
    )
}

/// Returns what blocks the deletion while operators clean up after hosts.
fn cleanup(seen: &Observed) -> Option<String> {
    let names: Vec<String> = terminating::names(seen).into_iter().collect();
    let first = seen.nodes.get(names.first()?)?;
    Some(format!(
        "waits until others have cleaned up after its hosts and removed their finalizers from \
         OpenStackDataPlaneNode {}, whose conditions say what they wait for ({}): see docs/removal.md.",
        first_names(&names, NAMED),
        of_others(&**first).join(", ")
    ))
}

fn deployment(seen: &Observed, resolved: &Resolved<'_>) -> ConditionDraft {
    let outcome = &resolved.outcome;
    let name = seen.set.name_any();
    if let [first, ..] = seen.unreadable_deployments.as_slice() {
        let text = format!(
            "OpenStackDataPlaneDeployment {} exists and cannot be read: {}. What is known of its hosts \
             stays as it is: correct that field, or delete the deployment and create another one.",
            first.name, first.why
        );
        return reasons::node_set::DEPLOYMENT_UNREADABLE.condition(DEPLOYMENT_READY, text);
    }
    if let [first, ..] = outcome.under_way.as_slice() {
        let text = format!(
            "OpenStackDataPlaneDeployment {first} is under way; its own status reports its \
             progress."
        );
        return reasons::node_set::DEPLOYING.condition(DEPLOYMENT_READY, text);
    }
    let with = |state| outcome.hosts.iter().filter(|it| it.state == state).count();
    let (n_failed, n_open) = (with(HostState::Failed), with(HostState::Undeployed));
    if n_failed > 0 {
        return failed(resolved, n_failed);
    }
    let is_deployed = !outcome.hosts.is_empty() || outcome.status.deployed_config_hash.is_some();
    if outcome.hosts.is_empty() {
        let text = format!(
            "Nothing is deployed: OpenStackDataPlaneNodeSet {name} has no hosts; add spec.nodes."
        );
        return if is_deployed {
            reasons::node_set::DEPLOYED.condition(DEPLOYMENT_READY, text)
        } else {
            reasons::node_set::NOT_DEPLOYED.condition(DEPLOYMENT_READY, text)
        };
    }
    let leaving = outcome.hosts.iter().filter(|it| it.state == HostState::Terminating);
    let leaving: Vec<&str> = leaving.map(|it| it.name.as_str()).collect();
    if !leaving.is_empty() && !is_terminating(&*seen.set) {
        let text = format!(
            "OpenStackDataPlaneNode {} is being deleted: it is made anew, and the host is to be deployed \
             then.",
            first_names(&leaving, NAMED)
        );
        return reasons::node_set::NOT_DEPLOYED.condition(DEPLOYMENT_READY, text);
    }
    if let Some(text) = half_changed(resolved) {
        let text = format!("{text} Create another OpenStackDataPlaneDeployment.");
        return reasons::node_set::NOT_DEPLOYED.condition(DEPLOYMENT_READY, text);
    }
    if n_open > 0 {
        let text = format!(
            "{n_open} of {} hosts of OpenStackDataPlaneNodeSet {name} have nothing deployed: create an \
             OpenStackDataPlaneDeployment that lists {name} in spec.nodeSets.",
            outcome.hosts.len()
        );
        return reasons::node_set::NOT_DEPLOYED.condition(DEPLOYMENT_READY, text);
    }
    let text = format!("The last deployment succeeded on all {} hosts.", outcome.hosts.len());
    reasons::node_set::DEPLOYED.condition(DEPLOYMENT_READY, text)
}

/// Returns a message if hosts that have been in service got only a part of the last deployment.
fn half_changed(resolved: &Resolved<'_>) -> Option<String> {
    let hosts = &resolved.outcome.hosts;
    let is_half = |it: &&KnownHost| it.state == HostState::Undeployed && it.hash.is_some();
    let n_half = hosts.iter().filter(is_half).count();
    (n_half > 0).then(|| {
        format!(
            "The last deployment has left {n_half} of {} hosts half changed: it was over before all of \
             its services had run there, or they were taken out of the node set and put back.",
            hosts.len()
        )
    })
}

/// Reports the first hosts on which the last deployment failed, each with its cause.
fn failed(resolved: &Resolved<'_>, n_failed: usize) -> ConditionDraft {
    let reported = &resolved.outcome.status.failures;
    let n_hosts = resolved.outcome.hosts.len();
    let mut texts = vec![format!("The last deployment failed on {n_failed} of {n_hosts} hosts.")];
    texts.extend(reported.iter().map(|it| {
        let text = shortened(&it.message, TEXT);
        format!("{}: {} in service {}: {text}", it.host, it.reason, it.service)
    }));
    if reported.is_empty() {
        let failed = resolved.outcome.hosts.iter().filter(|it| it.state == HostState::Failed);
        let names: Vec<&str> = failed.take(FAILURES).map(|it| it.name.as_str()).collect();
        texts.push(format!("The deployment that was at {} has gone.", names.join(", ")));
    }
    texts.extend(half_changed(resolved));
    texts.push("Correct the cause, then create another OpenStackDataPlaneDeployment.".to_owned());
    let reason = match reported.first() {
        Some(first) => FailureReason::parse(&first.reason).reason(),
        None => &reasons::node_set::DEPLOYMENT_GONE,
    };
    reason.condition(DEPLOYMENT_READY, texts.join(" ")).with_severity(Severity::Error)
}

/// Returns whether the hosts carry what a deployment would bring now.
pub(super) fn up_to_date(seen: &Observed, resolved: &Resolved<'_>) -> ConditionDraft {
    let outcome = &resolved.outcome;
    if let [first, ..] = outcome.under_way.as_slice() {
        return under_way(seen, resolved, first);
    }
    let Some(deployed) = &outcome.status.deployed_config_hash else {
        let text = "No deployment of all its services has succeeded on all hosts yet.";
        return reasons::NEVER_DEPLOYED.condition(UP_TO_DATE, text);
    };
    let is_same = inputs::digest(&resolved.inputs).is(deployed);
    let mut names = if is_same || outcome.status.deployed_inputs.is_empty() {
        Vec::new()
    } else {
        changed_inputs(&outcome.status.deployed_inputs, &resolved.inputs)
    };
    names.extend(changed_sources(seen, resolved));
    names.extend(changed_certificates(seen, resolved));
    if is_same && names.is_empty() {
        let text = "The last deployment used the present inputs.";
        return reasons::UP_TO_DATE.condition(UP_TO_DATE, text);
    }
    let text = if names.is_empty() {
        "Changed while the last deployment began, so it is not known which of the two it used."
            .to_owned()
    } else {
        changed_text(&truncated(&names.join(", "), TEXT))
    };
    let text = format!("{text} Create an OpenStackDataPlaneDeployment to bring it to the hosts.");
    reasons::INPUTS_CHANGED.condition(UP_TO_DATE, text)
}

/// Reports changes that wait for the end of a deployment that began with other inputs.
fn under_way(seen: &Observed, resolved: &Resolved<'_>, deployment: &str) -> ConditionDraft {
    let recorded = seen.set.status.as_ref().map(|it| it.inputs.clone()).unwrap_or_default();
    let mut names = changed_inputs(&recorded, &resolved.inputs);
    names.retain(|it| !OF_PODS.contains(&it.as_str()));
    let names = names.join(", ");
    let mut text = format!("OpenStackDataPlaneDeployment {deployment} is under way.");
    if !names.is_empty() && !recorded.is_empty() {
        let names = truncated(&names, TEXT);
        text = format!(
            "{text} It does not use what was changed since it began, which another one can bring to \
             the hosts: {names}."
        );
    }
    reasons::node_set::DEPLOYING.condition(UP_TO_DATE, text)
}

/// Returns whether an object that services read has changed since they were last deployed.
pub(super) fn has_changed_sources(seen: &Observed, resolved: &Resolved<'_>) -> bool {
    !changed_sources(seen, resolved).is_empty() || !changed_certificates(seen, resolved).is_empty()
}

/// Returns the objects of listed services that have changed since they were last deployed.
fn changed_sources(seen: &Observed, resolved: &Resolved<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for (service, object) in &seen.services {
        for named in sources_of(&object.spec) {
            let present = seen.sources.get(&named.source(&seen.namespace));
            if is_changed(resolved, &named, present) {
                names.push(format!("{} of service {service}", named.title()));
            }
        }
    }
    names
}

/// Returns the certificate Secrets that were renewed, added or removed since they were last
/// deployed. For services that only deployments bring, only the deployed ones count.
fn changed_certificates(seen: &Observed, resolved: &Resolved<'_>) -> Vec<String> {
    let bringing = seen.services.iter().filter(|(_, it)| brings_certificates(it));
    let Some((service, _)) = bringing.min_by_key(|(name, _)| *name) else { return Vec::new() };
    let secrets = resolved.served.certificates.iter().flat_map(|it| {
        let is_listed = seen.services.contains_key(&it.service);
        let deployed = &resolved.outcome.status.secret_hashes;
        it.secrets.iter().filter(move |it| is_listed || deployed.contains_key(*it))
    });
    let named = secrets.map(|it| NamedSource::secret(it));
    let is_other = |it: &NamedSource| {
        let present = seen.sources.get(&it.source(&seen.namespace));
        // A Secret that was just written is unknown until it was read.
        present.is_some() && is_changed(resolved, it, present)
    };
    named.filter(is_other).map(|it| format!("{} of service {service}", it.title())).collect()
}

fn is_changed(resolved: &Resolved<'_>, named: &NamedSource, present: Option<&Digests>) -> bool {
    let outcome = &resolved.outcome.status;
    let is_secret = named.kind == SourceKind::Secret;
    let deployed = if is_secret { &outcome.secret_hashes } else { &outcome.config_map_hashes };
    match (deployed.get(&named.name), present) {
        (Some(text), Some(present)) => !present.published.is(text),
        // Of a Secret that is gone, the record is too; without it no service ran that requires it.
        (None, None) => is_secret && !named.is_optional,
        (Some(_), None) | (None, Some(_)) => true,
    }
}
