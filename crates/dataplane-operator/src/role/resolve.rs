//! Resolves a group: what holds of each of its hosts whatever its runs do, computed once per pass.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use api::dataplane::{HostMachine, Node, Service};
use api::problem::Problem;
use api::shared::VolMounts;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::EnvVar;
use kube::ResourceExt;
use operator_core::data_sources::{NamedSource, SourceRef, sources_of};
use operator_core::hash;
use operator_core::keyed::{Digest, short, texts};
use operator_core::run_engine::run_template::AnsibleOptions;
use operator_core::run_engine::service_sequence::UNKNOWN;
use operator_core::run_engine::{DesiredService, limit};

use crate::host::conflicts::{Claim, ClaimIndex};
use crate::host::effective_spec::{EffectiveSpec, has_own_options};
use crate::host::inputs::{self, HostInputs, Inputs};
use crate::host::machines::machine_names::machine_of;
use crate::host::machines::provisioning_state::{self, ProvisioningState};
use crate::host::services::ServiceFaults;
use crate::host::ssh_trust::{Offers, SshHost};
use crate::host::vars;
use crate::reasons;
use crate::role::certificates::RoleCertificates;
use crate::role::machine_request::MachineRequest;
use crate::role::observed::Observed;
use crate::role::resolved::{ResolvedHost, is_first_deployment, may_begin, recorded_services};
use crate::role::{faults, inventory_shards, redeploy};

/// A resolved group.
pub struct Resolved<'a> {
    /// The hosts of its nodes that are not known from earlier passes, in their order.
    pub hosts: Vec<ResolvedHost<'a>>,
    /// The request for the hosts' machines, if there is one.
    pub machine_request: Option<MachineRequest<'a>>,
    /// The faults that concern all hosts alike.
    pub problems: ServiceFaults,
    /// The faults of the ssh keys of its hosts.
    pub ssh_faults: Vec<Problem>,
    /// The certificates of its hosts.
    pub certificates: RoleCertificates<'a>,
}

/// Resolves a group.
pub fn resolve(seen: &Observed, now: Timestamp) -> Resolved<'_> {
    let certificates = RoleCertificates::of(seen);
    let common = Common {
        seen,
        services: seen.listed().iter().map(|it| service_inputs(seen, &certificates, it)).collect(),
        // Includes runs of other owners: phase 1 may meet a new host key first.
        offers: Offers::of(seen.runs.iter().chain(&seen.others)),
        problems: faults::of_group(seen, &certificates),
        claims: ClaimIndex::of(&seen.claims),
        certificates,
        machine_request: MachineRequest::of(seen),
        last_groups: RefCell::default(),
        now,
    };
    let shards = inventory_shards::of_hosts(&seen.group, &seen.nodes);
    let unknown = seen.recalled.unknown(&seen.nodes);
    let hosts: Vec<ResolvedHost<'_>> =
        unknown.map(|(place, it)| resolve_host(&common, it, shards[place])).collect();
    let Common { problems, machine_request, certificates, .. } = common;
    let ssh_faults = faults::of_ssh_keys(seen, &hosts);
    Resolved { hosts, machine_request, problems, ssh_faults, certificates }
}

/// A listed service with its own inputs; `None` when the service does not exist.
type ServiceInputs<'a> = (&'a String, Option<(&'a Service, Inputs)>);

/// What is the same for all hosts of a group.
struct Common<'a> {
    seen: &'a Observed,
    services: Vec<ServiceInputs<'a>>,
    offers: Offers<'a>,
    problems: ServiceFaults,
    claims: ClaimIndex<'a>,
    certificates: RoleCertificates<'a>,
    machine_request: Option<MachineRequest<'a>>,
    /// The groups of the host before.
    last_groups: RefCell<Option<(RunSettings, Rc<[String]>)>>,
    now: Timestamp,
}

fn resolve_host<'a>(common: &Common<'a>, node: &'a Node, shard: usize) -> ResolvedHost<'a> {
    let Common { seen, machine_request: request, now, .. } = common;
    let (effective, is_left_out) = effective(seen, node);
    let machine = request.as_ref().map(|it| it.provisioning(node, &effective, *now));
    let record = record(seen, machine.as_ref(), node);
    let ssh_secret = effective.ssh_secret.as_deref().unwrap_or_default();
    let ssh = seen.sources.get(&SourceRef::secret(&seen.namespace, ssh_secret));
    let address = (effective.ansible_host.as_str(), effective.ansible_port);
    let has_own_options = has_own_options(&effective.vars);
    let host = SshHost::of_node(node, Some(node), ssh, &effective.name, address, has_own_options);
    let recorded = host.recorded.filter(|_| !matches!(&machine, Some(Ok(it)) if it.is_new));
    let trust = SshHost { recorded, machine: record.as_ref(), ..host }.trust(&common.offers);
    let claim = Claim::of_node_at(node, seen.role.as_deref(), effective.address().as_deref());
    let claim = claim.showing(|_| trust.key.clone());
    let taken = claim.taken(&common.claims);
    let shared_key = claim.shared_keys_text(&claim.shared_keys(&common.claims));
    let mut problems = faults::of_node(seen, node, &effective, &taken);
    let waits = shared_key.clone().filter(|_| is_first_deployment(node));
    problems.extend(waits.map(|it| Problem::new(&reasons::inputs::HOST_KEY_SHARED, it)));
    problems.extend_from_slice(&common.problems.of_all);
    let is_ready = problems.is_empty();
    problems.extend(common.problems.of_services.iter().map(|it| it.1.clone()));
    let lacking = common.certificates.lacking(seen, &effective.name);
    let uncertified = if lacking.is_empty() { BTreeSet::new() } else { bringing(common) };
    problems.extend(lacking);
    let is_ready = is_ready && (problems.is_empty() || is_first_deployment(node));
    let may_run = effective.deploy && !is_left_out && is_ready && may_begin(machine.as_ref());
    let has_unknown_vars = vars::are_unknown(&problems);
    let installation = record.as_ref().and_then(|it| it.own_installation());
    let redeploy = redeploy::redeploy_values(seen.role.as_deref(), node);
    let mut of_host = inputs::of_host(&effective, redeploy.as_deref());
    of_host.extend(installation.map(|it| ("machine".to_owned(), hash::short(it).into())));
    let (mut desired, inputs) = desired_services(common, node, &effective, shard, &of_host);
    if has_unknown_vars {
        desired = desired.iter().map(|it| as_recorded(node, &it.service)).collect();
    }
    ResolvedHost {
        node,
        has_services: seen.parent().is_some(),
        is_left_out,
        has_moved: has_moved(seen, node),
        is_taken: !taken.is_empty(),
        instance: redeploy::published(redeploy.as_deref(), installation),
        machine,
        record,
        ssh,
        trust,
        shared_key,
        problems,
        has_unknown_vars,
        shard,
        inputs,
        desired,
        uncertified,
        may_run,
        effective,
    }
}

/// Returns the listed services whose runs mount the certificates of hosts.
fn bringing(common: &Common<'_>) -> BTreeSet<String> {
    let brings = |(name, service): &ServiceInputs<'_>| {
        let (service, _) = service.as_ref()?;
        common.certificates.are_brought_by(service).then(|| (*name).clone())
    };
    common.services.iter().filter_map(brings).collect()
}

/// The effective spec of a node, and whether `ansibleLimit` leaves its host out.
fn effective(seen: &Observed, node: &Node) -> (EffectiveSpec, bool) {
    let mut effective = seen.effective(node);
    let group = seen.role.as_ref().map(|it| it.name_any());
    let groups: Vec<&str> = group.iter().map(String::as_str).collect();
    let limit = effective.options.limit.as_deref();
    let is_left_out = limit.is_some_and(|it| limit::leaves_out(it, &effective.name, &groups));
    if is_left_out {
        // No run will reach it, so no tags or limit narrow what it is compared with.
        effective.options = AnsibleOptions::default();
    }
    (effective, is_left_out)
}

/// Returns the record of a machine; while it cannot be determined, the recorded one.
fn record(
    seen: &Observed,
    machine: Option<&Result<ProvisioningState, Problem>>,
    node: &Node,
) -> Option<HostMachine> {
    let recorded = machine_of(node);
    if let Some(machine) = machine {
        return provisioning_state::record(machine, recorded);
    }
    // A host without a machine in any set may be renamed.
    let host = recorded?.host.clone().filter(|it| seen.machines.may_know(it));
    Some(HostMachine { host, ..recorded?.clone() })
}

/// Returns whether the host was last evaluated under another role than now, or under none.
fn has_moved(seen: &Observed, node: &Node) -> bool {
    let observed = node.status.as_ref().and_then(|it| it.observed_role.as_ref());
    observed.map(|it| it.uid.clone()) != seen.role.as_ref().and_then(|it| it.uid())
}

/// Returns the desired services of a host in order, and the union of their inputs.
fn desired_services(
    common: &Common<'_>,
    node: &Node,
    effective: &EffectiveSpec,
    shard: usize,
    of_host: &Inputs,
) -> (Vec<DesiredService>, Inputs) {
    let mut union = of_host.clone();
    let mut desired = Vec::new();
    let groups = common.groups(effective);
    let of_host = HostInputs::of(of_host);
    for ((name, service), group) in common.services.iter().zip(&*groups) {
        let Some((service, of_service)) = service else {
            desired.push(as_recorded(node, name));
            continue;
        };
        let mut of_service = of_service.clone();
        of_service.extend(common.certificates.inputs(common.seen, service, &effective.name));
        let hash = of_host.hash_with(&of_service);
        let run_hash = inputs::run_hash(&hash, &effective.options);
        // A run mounts only one inventory.
        let group = if shard > 0 { format!("{group}/{shard}") } else { group.clone() };
        union.extend(of_service);
        desired.push(DesiredService { service: (*name).clone(), hash, run_hash, group });
    }
    (desired, union)
}

/// Returns the desired state of a service that does not exist or whose variables are unknown: what
/// was deployed of it stays deployed.
fn as_recorded(node: &Node, name: &str) -> DesiredService {
    let record = recorded_services(node).iter().find(|it| it.name == name);
    let hash = Digest::from(record.map_or_else(|| UNKNOWN.to_owned(), |it| it.hash.clone()));
    DesiredService { service: name.to_owned(), run_hash: hash.clone(), hash, group: String::new() }
}

/// What a host's runs start with, whatever their service: hosts with the same settings may share
/// runs.
#[derive(Clone, PartialEq)]
struct RunSettings {
    env: Vec<EnvVar>,
    extra_mounts: Vec<VolMounts>,
    network_attachments: Vec<String>,
    options: AnsibleOptions,
}

impl RunSettings {
    fn are_of(&self, host: &EffectiveSpec) -> bool {
        (&self.env, &self.extra_mounts, &self.network_attachments, &self.options)
            == (&host.env, &host.extra_mounts, &host.network_attachments, &host.options)
    }

    fn of(host: &EffectiveSpec) -> Self {
        Self {
            env: host.env.clone(),
            extra_mounts: host.extra_mounts.clone(),
            network_attachments: host.network_attachments.clone(),
            options: host.options.clone(),
        }
    }

    /// Returns the hash of what hosts must have in common to share a run of a service; empty where
    /// the service does not exist.
    ///
    /// Variables may differ: they are part of each host's own hash.
    fn group(&self, (_, service): &ServiceInputs<'_>) -> String {
        let Some((service, of_service)) = service else { return String::new() };
        let options = &self.options;
        hash::digest(&(
            texts(of_service),
            &self.env,
            &self.extra_mounts,
            &self.network_attachments,
            (&options.tags, &options.skip_tags, &options.limit),
            &service.spec.open_stack_ansible_ee_runner_image,
        ))
    }
}

impl Common<'_> {
    /// Returns the group of each service on a host, in the order of the services. Most hosts have
    /// the settings of the one before.
    fn groups(&self, host: &EffectiveSpec) -> Rc<[String]> {
        let mut last = self.last_groups.borrow_mut();
        if let Some((_, groups)) = last.as_ref().filter(|it| it.0.are_of(host)) {
            return Rc::clone(groups);
        }
        let settings = RunSettings::of(host);
        let groups: Rc<[String]> = self.services.iter().map(|it| settings.group(it)).collect();
        *last = Some((settings, Rc::clone(&groups)));
        groups
    }
}

/// Returns a listed service with its inputs, to which its existing data sources and CA bundles
/// belong.
fn service_inputs<'a>(
    seen: &'a Observed,
    certificates: &RoleCertificates<'_>,
    name: &'a String,
) -> ServiceInputs<'a> {
    let with_inputs = |service: &'a Service| {
        let digest = |it: NamedSource| {
            let digests = seen.sources.get(&it.source(&seen.namespace))?;
            Some((it.title(), short(&digests.keys)))
        };
        let bundles = certificates.bundles(seen, (name, service)).into_iter().map(|it| it.1);
        let sources = sources_of(&service.spec).into_iter().chain(bundles);
        let sources = sources.filter_map(digest).collect();
        (service, inputs::of_service(service, name, &sources))
    };
    (name, seen.services.get(name).map(|it| with_inputs(it)))
}
