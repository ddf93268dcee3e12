//! Which services of nova a node set may take for those of its hosts.
//!
//! A name proves nothing: hosts of two namespaces over one nova may have the same one. The proof is
//! a deployment of a service of type nova by this node set that has succeeded on the host.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::ansibleee::{AnsibleEe, HostOutcome};
use api::conditions::{ConditionStatus, find};
use api::dataplane::condition_types::{DEPLOYMENT_READY, INPUT_READY, SETUP_READY};
use api::dataplane::{HostReadiness, HostState, NodeSet, NodeSetStatus};
use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::services::NOVA_TYPE;
use operator_core::node_set_host::{canonical_host_name, hosts, prefix};
use operator_core::object_key::Key;
use operator_core::run_engine::Run;

use crate::node_set_computes::removal::record::records;

/// The name under which the status of a node set has the digest of its list of services.
const SERVICES: &str = "services";

/// How far a node set has deployed nova on a host; absent where nothing has begun there.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum NovaDeployment {
    /// A deployment has begun, and may have started nova-compute.
    Begun,
    /// A deployment of a service of type nova has succeeded.
    Succeeded,
}

/// Whether a node set decides what is done in nova about the service of a host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Claim {
    /// It does: it alone has deployed nova there.
    Own,
    /// Nothing is changed: no deployment of nova is known to have succeeded on the host.
    Unproven,
    /// This object does, as in `NovaExternalCompute ns/n0`.
    Other(String),
    /// Nothing is changed: this object has deployed nova under the host's name too.
    Contested(String),
}

impl Claim {
    /// Returns the claim to enable a service that has the marker of a drain, on a host where a
    /// deployment has begun: that needs no proof, only that no other object has the host.
    #[must_use]
    pub fn to_enable(self) -> Self {
        match self {
            Self::Unproven => Self::Own,
            Self::Own | Self::Other(_) | Self::Contested(_) => self,
        }
    }
}

/// Returns whether a node set of a namespace decides about a host; `compute` has registered under its
/// name in the same nova, and `other` is another node set that has deployed nova there.
pub fn claim(namespace: &str, is_proven: bool, compute: Option<Key>, other: Option<&Key>) -> Claim {
    let is_here = compute.as_ref().is_some_and(|it| it.namespace == namespace);
    let compute = compute.map(|it| format!("NovaExternalCompute {it}"));
    let other = other.map(|it| format!("OpenStackDataPlaneNodeSet {it}"));
    match compute.or(other) {
        // In one namespace, a compute of the same host is the one that stays.
        Some(other) if is_proven && !is_here => Claim::Contested(other),
        Some(other) => Claim::Other(other),
        None if is_proven => Claim::Own,
        None => Claim::Unproven,
    }
}

/// Returns that another object has deployed nova under the name of a host too, in a clause.
pub fn contested(host: &str, other: &str) -> String {
    format!("{other} has deployed nova as host {host} in the same nova too")
}

/// Returns the names under which a node set has deployed nova in cells of its namespace that
/// `is_its` accepts, from the report about it.
pub fn proven(report: &HostReadiness, is_its: impl Fn(&str) -> bool) -> Vec<String> {
    let records = records(report);
    let is_proven = |name: &String| {
        let Some(record) = records.get(name) else { return true };
        !record.is_unproven && (record.cell.is_empty() || is_its(&record.cell))
    };
    let all = report.spec.host_finalizers.iter();
    all.filter(|(name, _)| is_proven(name)).map(|(_, host)| host.clone()).collect()
}

/// Returns how far nova is deployed on each host of a node set, by its name in the inventory; `runs`
/// are those of deployments of the node set, which go with the deployments.
pub fn deployments(
    set: &NodeSet,
    report: Option<&HostReadiness>,
    runs: &[Arc<AnsibleEe>],
) -> BTreeMap<String, NovaDeployment> {
    let mut found = BTreeMap::new();
    for run in runs.iter().filter_map(|it| Run::of(it)).filter(|it| is_of_nova(it, set)) {
        for name in run.attempts.keys().filter(|_| run.has_begun()) {
            note(&mut found, name, has_deployed(&run, name));
        }
    }
    let status = set.status.as_ref();
    let whole = status.filter(|it| has_deployed_services(set, it));
    let whole = whole.and_then(|it| it.deployed_config_hash.as_deref()).map(prefix);
    for host in status.iter().flat_map(|it| &it.hosts) {
        // With this digest, a deployment of all services has succeeded on all hosts.
        let is_whole = host.hash.is_some() && host.hash == whole;
        if host.hash.is_some() || host.state != HostState::Undeployed {
            note(&mut found, &host.name, is_whole);
        }
    }
    let recorded = report.map(records).unwrap_or_default();
    for host in hosts(set) {
        let finalizer = report.and_then(|it| it.spec.host_finalizers.get(&host.name));
        if finalizer.is_some_and(|it| *it == canonical_host_name(set, &host)) {
            let is_unproven = recorded.get(&host.name).is_some_and(|it| it.is_unproven);
            note(&mut found, &host.name, !is_unproven);
        }
    }
    found
}

/// Returns when the last run that deploys nova on a host ended, `Timestamp::MAX` before its end; `None`
/// where there is no such run.
pub fn deployed_at(set: &NodeSet, runs: &[Arc<AnsibleEe>], name: &str) -> Option<Timestamp> {
    let all = runs.iter().filter_map(|it| Run::of(it)).filter(|it| is_of_nova(it, set));
    let of_host = all.filter(|it| it.has_begun() && it.attempts.contains_key(name));
    let end = |it: Run<'_>| it.ended().filter(|_| it.is_finished()).map(|it| it.0);
    of_host.map(|it| end(it).unwrap_or(Timestamp::MAX)).max()
}

fn note(found: &mut BTreeMap<String, NovaDeployment>, name: &str, has_succeeded: bool) {
    let here = found.entry(name.to_owned()).or_insert(NovaDeployment::Begun);
    if has_succeeded {
        *here = NovaDeployment::Succeeded;
    }
}

/// Whether the last deployment of all services was one of the present ones: before it, nova may not
/// have been among them. The status says so of the present list alone, and only while nothing keeps an
/// earlier list there.
fn has_deployed_services(set: &NodeSet, status: &NodeSetStatus) -> bool {
    let deployed = status.deployed_inputs.get(SERVICES);
    let is_present = status.observed_generation == set.metadata.generation;
    let is_true = |type_: &&str| {
        find(&status.conditions, type_).is_some_and(|it| it.status == ConditionStatus::True)
    };
    is_present
        && [INPUT_READY, SETUP_READY, DEPLOYMENT_READY].iter().all(is_true)
        && deployed.is_some()
        && deployed == status.inputs.get(SERVICES)
}

/// Whether a run deploys a service of type nova for this node set, and not for an earlier one of its
/// name.
fn is_of_nova(run: &Run<'_>, set: &NodeSet) -> bool {
    let type_ = run.object.spec.extra_vars.get("edpm_service_type");
    type_.is_some_and(|it| *it == NOVA_TYPE)
        && run.object.creation_timestamp() >= set.creation_timestamp()
}

/// Whether a run has deployed its whole service on a host: one of only some tasks proves nothing.
fn has_deployed(run: &Run<'_>, name: &str) -> bool {
    let options = run.object.spec.cmd_line.as_deref().unwrap_or_default();
    let is_narrowed = ["--tags", "--skip-tags"].into_iter().any(|it| options.contains(it));
    !is_narrowed && run.is_finished() && run.outcome(name) == HostOutcome::Ok
}

#[cfg(test)]
mod tests;
