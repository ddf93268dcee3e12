//! The due runs of a deployment and their run templates.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::node_section::DEFAULT_BATCH_SIZE;
use kube::ResourceExt;
use operator_core::data_sources::service_type;
use operator_core::node_set_host::{self, dns_config};
use operator_core::plan::Target;
use operator_core::run_engine::batches::Batch;
use operator_core::run_engine::build;
use operator_core::run_engine::layout::{Layout, NodeSets};
use operator_core::run_engine::run::Attempt;
use operator_core::run_engine::run_template::{
    AnsibleOptions, DeploymentOptions, HostConnection, RunTemplate,
};
use operator_core::run_engine::service_sequence::NeededRun;
use operator_runtime::source_cache::Digests;
use serde_json::json;

use crate::deployment::evaluate::NODE_SET_LABEL;
use crate::deployment::hosts::ssh_digests;
use crate::deployment::node_set_part::{EvaluatedHost, NodeSetPart};
use crate::deployment::observed::Observed;
use crate::deployment::services::is_global;
use crate::deployment::{disruption, tls};
use crate::host::node_state::hash_of;
use crate::host::runs::{self, NewRun};
use crate::host::services::{play, sources};

const DEPLOYMENT_LABEL: &str = "openstackdataplanedeployment";
const SERVICE_LABEL: &str = "openstackdataplaneservice";
/// The variable with which `osp.edpm.reboot` restarts a deployed host, because it was drained.
const REBOOT_DRAINED: &str = "edpm_reboot_drained";
const APP: (&str, &str) = ("app", "openstackansibleee");

/// Returns the runs that are due.
pub fn new_runs(seen: &Observed, parts: &[NodeSetPart]) -> Vec<NewRun> {
    let shared = parts.iter().flat_map(|it| of_part(seen, it));
    let global: BTreeSet<&str> =
        parts.iter().flat_map(needs).map(|it| it.1.service.as_str()).collect();
    let global = global.into_iter().filter(|it| is_for_all(seen, it));
    shared.chain(global.filter_map(|it| everywhere(seen, it, parts))).collect()
}

/// Returns the hosts of a node set that need a run, each with the run that it needs.
fn needs(part: &NodeSetPart) -> impl Iterator<Item = (&EvaluatedHost, &NeededRun)> {
    part.hosts.iter().filter_map(|it| Some((it, it.sequence.needed_run()?)))
}

fn of_part(seen: &Observed, part: &NodeSetPart) -> Vec<NewRun> {
    let own = needs(part).filter(|(_, need)| !is_for_all(seen, &need.service));
    let own = own.map(|(host, need)| (host.name.clone(), need.clone()));
    let allowed = disruption::allowed(seen, part);
    let (drained, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
        own.partition(|(host, _)| allowed.contains(host.as_str()));
    let connections = connection(seen, [part]);
    let new = |needs, is_drained: bool| {
        let template = |batch: &Batch| {
            let mut template = run_template(seen, part, &batch.service, &[part])?;
            if is_drained && !template.template_vars.contains_key(REBOOT_DRAINED) {
                template.extra_vars.insert(REBOOT_DRAINED.into(), json!(true));
            }
            Some(template)
        };
        runs::new_runs(needs, &connections, DEFAULT_BATCH_SIZE, template)
    };
    new(drained, true).into_iter().chain(new(others, false)).collect()
}

/// Returns whether a service has one run for all node sets.
pub fn is_for_all(seen: &Observed, service: &str) -> bool {
    seen.services.get(service).is_some_and(|it| is_global(it))
}

/// Returns whether every host of a node set has reached a service, or has failed for good before.
pub fn have_arrived(part: &NodeSetPart, service: &str) -> bool {
    let at = place(part, service);
    part.hosts.iter().all(|it| it.live.done >= at || it.is_ended())
}

/// Returns the position of a service in a node set's list.
///
/// A service that is not listed comes after all others.
pub fn place(part: &NodeSetPart, service: &str) -> usize {
    let services = &part.begun.services;
    services.iter().position(|it| it == service).unwrap_or(services.len())
}

/// Returns the run of a service for all node sets, once all hosts of the leading node set have
/// reached it.
///
/// The run targets all hosts, also in a further attempt, because what such a play writes on one
/// host comes from all of them. So it waits for the missing inputs of every node set.
fn everywhere(seen: &Observed, service: &str, parts: &[NodeSetPart]) -> Option<NewRun> {
    let leader = parts.iter().find(|it| it.leads(service))?;
    let is_held = parts.iter().any(|it| it.lacking.blocks(service));
    if is_held || !have_arrived(leader, service) {
        return None;
    }
    let all: Vec<&NodeSetPart> = parts.iter().collect();
    let template = run_template(seen, leader, service, &all)?;
    let attempts = attempts_everywhere(seen, service, parts);
    let batch = Batch { service: service.to_owned(), group: leader.name.clone(), attempts };
    let step = build::run(&template, &batch, &connection(seen, all));
    Some(NewRun { service: service.to_owned(), step })
}

/// Returns the attempts that a run for all node sets carries: those that are due and, in the first
/// run, those of hosts that have not reached the service yet.
fn attempts_everywhere(
    seen: &Observed,
    service: &str,
    parts: &[NodeSetPart],
) -> BTreeMap<String, Attempt> {
    let is_its =
        |it: &Arc<AnsibleEe>| it.labels().get(SERVICE_LABEL).is_some_and(|it| it == service);
    let is_first = !seen.runs.iter().any(is_its);
    let first =
        Attempt { hash: hash_of(&seen.deployment.uid().unwrap_or_default(), service), attempt: 1 };
    let attempt = |part: &NodeSetPart, host: &EvaluatedHost| {
        if let Some(need) = host.sequence.needed_run().filter(|it| it.service == service) {
            return Some(need.attempt.clone());
        }
        let is_to_come = host.live.done < place(part, service);
        let is_awaited = is_to_come && !host.is_ended();
        (is_first && is_awaited).then(|| first.clone())
    };
    let has_it = |it: &&NodeSetPart| it.begun.services.iter().any(|it| it == service);
    let of_part = |part: &NodeSetPart| -> Vec<(String, Attempt)> {
        let of_host = |it: &EvaluatedHost| Some((it.name.clone(), attempt(part, it)?));
        part.hosts.iter().filter_map(of_host).collect()
    };
    parts.iter().filter(has_it).flat_map(of_part).collect()
}

/// Returns how runs connect to the hosts of node sets.
fn connection<'a>(
    seen: &Observed,
    parts: impl IntoIterator<Item = &'a NodeSetPart>,
) -> BTreeMap<String, HostConnection> {
    let of_part = |part: &'a NodeSetPart| {
        let of_host = |host: &EvaluatedHost| {
            let (set, address) = (part.node_set.as_deref()?, host.address.clone()?);
            let was_refused = host.sequence.was_key_refused();
            let secret = &set.spec.node_template.ansible_ssh_private_key_secret;
            let ssh = Digests::ssh_secret(secret, ssh_digests(seen, set));
            let node = host.node.as_deref();
            let connection =
                node_set_host::connection(node, address, ssh, &host.trust, was_refused);
            Some((host.name.clone(), connection))
        };
        part.hosts.iter().filter_map(of_host).collect::<Vec<_>>()
    };
    parts.into_iter().flat_map(of_part).collect()
}

/// Returns the run template of a service; `parts` are the node sets whose hosts the run targets.
///
/// Returns `None` when the service or the node set does not exist.
fn run_template(
    seen: &Observed,
    part: &NodeSetPart,
    name: &str,
    parts: &[&NodeSetPart],
) -> Option<RunTemplate> {
    let service = seen.services.get(name)?;
    let node_set = part.node_set.as_deref()?;
    let spec = &seen.deployment.spec;
    let is_global = is_global(service);
    let mut extra_vars = BTreeMap::new();
    if !spec.services_override.is_empty() {
        extra_vars.insert("edpm_services_override".into(), json!(spec.services_override));
    }
    let type_ = service_type(&service.spec, name);
    let touched = parts.iter().filter_map(|it| it.node_set.as_deref());
    let left_out = parts.iter().flat_map(|it| it.left_out.clone()).collect();
    let ssh_secret = |it: &&NodeSetPart| {
        let secret = &it.node_set.as_ref()?.spec.node_template.ansible_ssh_private_key_secret;
        Some((it.name.clone(), secret.clone()))
    };
    let ssh_secrets = parts.iter().filter_map(ssh_secret).collect();
    Some(RunTemplate {
        parent: Target::of(&*seen.deployment),
        play: play(service),
        service_type: type_,
        image: service.spec.open_stack_ansible_ee_runner_image.clone(),
        env: node_set.spec.env.clone(),
        extra_mounts: node_set.spec.node_template.extra_mounts.clone(),
        network_attachments: node_set.spec.network_attachments.clone(),
        dns_config: dns_config(node_set),
        layout: Layout::NodeSets(NodeSets {
            ssh_secrets,
            is_global,
            tls: tls::mounts(seen, (name, service), touched),
        }),
        sources: sources(&seen.sources, &seen.namespace, service),
        options: options(seen),
        fact_variables: service.spec.fact_variables.clone(),
        extra_vars,
        template_vars: spec.ansible_extra_vars.clone(),
        deployed: deployed(seen, &part.name, name, is_global, left_out),
    })
}

/// Returns the tags, skipped tags and limit of the runs; empty texts count as unset.
fn options(seen: &Observed) -> AnsibleOptions {
    let spec = &seen.deployment.spec;
    let text = |it: &Option<String>| it.clone().filter(|it| !it.is_empty());
    AnsibleOptions {
        tags: text(&spec.ansible_tags),
        skip_tags: text(&spec.ansible_skip_tags),
        limit: text(&spec.ansible_limit),
    }
}

fn deployed(
    seen: &Observed,
    node_set: &str,
    service: &str,
    is_global: bool,
    left_out: BTreeSet<String>,
) -> DeploymentOptions {
    let (spec, deployment) = (&seen.deployment.spec, seen.deployment.name_any());
    let labels = [
        APP,
        (SERVICE_LABEL, service),
        (DEPLOYMENT_LABEL, deployment.as_str()),
        (NODE_SET_LABEL, node_set),
    ];
    let labels =
        labels.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let of_set = (!is_global).then(|| node_set.to_owned());
    DeploymentOptions {
        names: [deployment.clone()].into_iter().chain(of_set).collect(),
        labels,
        node_selector: spec.ansible_job_node_selector.clone(),
        env_config_map: Some(spec.ansible_ee_env_config_map_name.clone())
            .filter(|it| !it.is_empty()),
        lets_jobs_go: !spec.preserve_jobs,
        is_everywhere: is_global,
        left_out,
    }
}
