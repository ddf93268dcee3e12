//! The record of what a deployment used and executed: hashes, and Ansible's counts.

use std::collections::BTreeSet;

use api::ansibleee::{AnsibleEe, HostOutcome};
use api::dataplane::{DeploymentStatus, ExecutionSummary, RunState};
use api::shared::SourceKind;
use kube::ResourceExt;
use operator_core::data_sources::{NamedSource, sources_of};
use operator_core::run_engine::Run;
use operator_core::run_engine::host_progress::count;
use operator_core::run_engine::run::SERVICE_LABEL;

use crate::deployment::node_set_part::NodeSetPart;
use crate::deployment::observed::Observed;
use crate::deployment::tls;
use crate::host::vars::sources_of_vars;

/// The value that replaces an object's hash if hosts or services were given different contents: it
/// equals no hash, so neither content counts as deployed.
pub const MIXED: &str = "mixed";

/// Adds the objects that were used, each with the hash that upstream's operators publish too.
///
/// `services` are those whose runs are about to be created: their present inputs count. The
/// inventory contains all variables from the beginning, so their objects are added when the
/// deployment begins.
pub fn used(
    seen: &Observed,
    parts: &[NodeSetPart],
    services: &BTreeSet<&str>,
    begins: bool,
    status: &mut DeploymentStatus,
) {
    let mut named: Vec<NamedSource> = Vec::new();
    if begins {
        named.extend(seen.node_sets.values().flat_map(|it| sources_of_vars(it)));
    }
    named.extend(sources_of_services(seen, services));
    let given = sources_of_services(seen, &begun(seen, parts));
    for named in named {
        let Some(digests) = seen.sources.get(&named.source(&seen.namespace)) else { continue };
        let is_given = given.iter().any(|it| it.is_same(&named));
        let hashes = if named.kind == SourceKind::Secret {
            &mut status.secret_hashes
        } else {
            &mut status.config_map_hashes
        };
        let recorded = hashes.get(&named.name);
        let is_other = recorded.is_some_and(|it| !digests.published.is(it));
        let hash = if is_given && is_other { MIXED.to_owned() } else { digests.published.text() };
        hashes.insert(named.name, hash);
    }
}

fn sources_of_services(seen: &Observed, services: &BTreeSet<&str>) -> Vec<NamedSource> {
    let mut named = Vec::new();
    for (name, service) in seen.services.iter().filter(|(it, _)| services.contains(it.as_str())) {
        named.extend(sources_of(&service.spec));
        let brought = tls::brought(seen, (name, service));
        named.extend(brought.iter().map(|it| NamedSource::secret(it)));
    }
    named
}

/// Returns the services that some host has been given already.
fn begun<'a>(seen: &'a Observed, parts: &'a [NodeSetPart]) -> BTreeSet<&'a str> {
    let recorded = parts.iter().flat_map(|it| &it.hosts).flat_map(|it| &it.recorded);
    let begun = recorded.filter(|it| it.state != RunState::Pending || it.attempt > 1);
    let made = seen.runs.iter().filter_map(|it| it.labels().get(SERVICE_LABEL));
    begun.map(|it| it.name.as_str()).chain(made.map(String::as_str)).collect()
}

/// Adds the runs that have ended, with Ansible's counts.
pub fn ran(runs: &[Run<'_>], status: &mut DeploymentStatus) {
    for run in runs.iter().filter(|it| it.is_finished()) {
        let hash = run.object.spec.input_hash.clone().unwrap_or_default();
        status.ansible_ee_hashes.insert(run.name(), hash);
        status.ansible_execution_summaries.insert(run.name(), summary(run.object));
    }
}

/// Returns Ansible's counts in the form of upstream's runner.
fn summary(run: &AnsibleEe) -> ExecutionSummary {
    let hosts = run.status.as_ref().map(|it| it.hosts.as_slice()).unwrap_or_default();
    let of = |outcomes: &[HostOutcome]| -> Vec<String> {
        let found = hosts.iter().filter(|it| outcomes.contains(&it.result));
        let names: BTreeSet<String> = found.map(|it| it.name.clone()).collect();
        names.into_iter().collect()
    };
    let failed = of(&[HostOutcome::Failed]);
    let unreachable =
        of(&[HostOutcome::Unreachable, HostOutcome::KeyRefused, HostOutcome::HostKeyMismatch]);
    let n_bad = failed.len() + unreachable.len();
    let percent = (200 * n_bad + hosts.len()).checked_div(2 * hosts.len()).unwrap_or_default();
    ExecutionSummary {
        total_hosts: Some(count(hosts.len())),
        failed_hosts: Some(count(failed.len())),
        unreachable_hosts: Some(count(unreachable.len())),
        failure_percent: Some(count(percent)),
        failed_host_list: failed,
        unreachable_host_list: unreachable,
    }
}
