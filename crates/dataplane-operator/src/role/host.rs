//! The evaluation of one host of a group: its effective spec, its faults and its next step.

use std::sync::Arc;

use api::dataplane::{HostMachine, Node, RunState, ServiceRun};
use api::problem::Problem;
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::data_sources::{SourceRef, sources_of};
use operator_core::hash;
use operator_core::keyed::{Digest, short, texts};
use operator_core::run_engine::host_key::{HostKeyTrust, accept_command};
use operator_core::run_engine::host_owner::take_over_command;
use operator_core::run_engine::retry::Retries;
use operator_core::run_engine::rollout::RolloutState;
use operator_core::run_engine::run_template::AnsibleOptions;
use operator_core::run_engine::service_sequence::{self, ServiceSequence, UNKNOWN, has_begun};
use operator_core::run_engine::{DesiredService, Host, Run, SequenceState, limit};
use operator_runtime::source_cache::Digests;

use crate::baremetal_request::provisioning_state::{self, ProvisioningState};
use crate::effective_spec::EffectiveSpec;
use crate::inputs::{self, Inputs};
use crate::reasons;
use crate::role::blocked_rollout::BlockedRollout;
use crate::role::faults::{self, OfGroup};
use crate::role::host_key_trust::{self, Offers};
use crate::role::machine_names::machine_of;
use crate::role::machine_request::MachineRequest;
use crate::role::observed::Observed;
use crate::role::{inventory_shards, redeploy, vars};

/// The result of evaluating one host.
#[derive(Clone, Debug)]
pub struct EvaluatedHost {
    /// The node.
    pub node: Arc<Node>,
    /// The effective spec of the node.
    pub effective: EffectiveSpec,
    /// Whether its services are known: its role exists, or it lists its own.
    pub has_services: bool,
    /// Whether some of its variables are unknown at present because an object is missing or
    /// invalid.
    pub has_unknown_vars: bool,
    /// Whether `ansibleLimit` excludes it: it keeps the state that it has.
    pub is_left_out: bool,
    /// The instance of the host; see [`redeploy`].
    pub instance: Option<String>,
    /// The state of its machine, or the fault that keeps it from getting one.
    ///
    /// `None` when the host is provisioned by other means.
    pub machine: Option<Result<ProvisioningState, Problem>>,
    /// The record of its machine for the status.
    pub record: Option<HostMachine>,
    /// The trusted ssh host key.
    pub trust: HostKeyTrust,
    /// The message about its host key, when another host presented the same key before.
    pub shared_key: Option<String>,
    /// The faults that keep it from being deployed.
    pub faults: Vec<Problem>,
    /// The inputs of all its services.
    pub inputs: Inputs,
    /// Its desired services, in order.
    pub desired: Vec<DesiredService>,
    /// The index of the role's inventory object that contains it, see [`inventory_shards`].
    pub part: usize,
    /// The result of its service sequence.
    pub sequence: ServiceSequence,
    /// Why its deployment does not begin yet, when the disruption budget blocks it.
    pub blocked: Option<BlockedRollout>,
    /// A service that failed on this host and is no longer listed, until all listed services have
    /// succeeded: listing another service instead has corrected nothing yet.
    pub unlisted: Option<String>,
}

impl EvaluatedHost {
    /// Returns the state of the host with respect to the disruption budget.
    pub fn rollout_state(&self) -> RolloutState {
        let was_deployed =
            self.node.status.as_ref().is_some_and(|it| !it.deployed_inputs.is_empty());
        // Before its status reports the failure, so that no host begins in the pass that first sees
        // it.
        if matches!(self.sequence.state, SequenceState::Failed { .. }) {
            return if was_deployed { RolloutState::Failed } else { RolloutState::FailedNew };
        }
        let mut state = RolloutState::of(self.recorded(), was_deployed);
        if state == RolloutState::Failed {
            // The inputs to be tried now may differ from those that failed.
            let is_listed = |it: &&ServiceRun| Some(&it.name) != self.unlisted.as_ref();
            let listed: Vec<ServiceRun> =
                self.sequence.services.iter().filter(is_listed).cloned().collect();
            state = RolloutState::of(&listed, was_deployed);
            if self.unlisted.is_some()
                && self.sequence.state != SequenceState::Done
                && !state.fails()
            {
                state = RolloutState::Corrected;
            }
        }
        // Otherwise its run was withdrawn, or never created.
        let is_under_way = self.is_under_way();
        let is_due = is_under_way || matches!(self.sequence.state, SequenceState::NeedsRun(_));
        match state {
            RolloutState::Disturbed if !is_under_way => RolloutState::Ready,
            RolloutState::Started if !is_under_way => RolloutState::New,
            // It cannot be tried at present, so other hosts do not wait for it.
            RolloutState::Corrected if !is_due => RolloutState::Failed,
            RolloutState::New
            | RolloutState::Started
            | RolloutState::FailedNew
            | RolloutState::Ready
            | RolloutState::Disturbed
            | RolloutState::Failed
            | RolloutState::Corrected => state,
        }
    }

    /// Returns whether a pause stops it: nothing of its deployment has begun, and it has not
    /// failed.
    pub fn may_be_paused(&self) -> bool {
        !has_begun(self.recorded()) && !self.rollout_state().fails()
    }

    /// Returns whether its present attempt has begun or waits in a run.
    pub fn is_at_work(&self) -> bool {
        matches!(self.sequence.state, SequenceState::NeedsRun(_) | SequenceState::InRun { .. })
            && self.is_under_way()
    }

    fn is_under_way(&self) -> bool {
        matches!(self.sequence.state, SequenceState::InRun { .. }) || has_begun(self.recorded())
    }

    fn recorded(&self) -> &[ServiceRun] {
        self.node.status.as_ref().map(|it| it.services.as_slice()).unwrap_or_default()
    }
}

/// The arguments that are the same for all hosts of a group.
#[derive(Clone, Copy)]
pub struct Shared<'a> {
    /// The observed objects.
    pub seen: &'a Observed,
    /// The faults that concern all hosts alike.
    pub faults: &'a OfGroup,
    /// The group's runs.
    pub runs: &'a [Run<'a>],
    /// The ssh host keys that were presented to runs.
    pub offers: &'a Offers<'a>,
    /// The request for the hosts' machines, if there is one.
    pub machine_request: Option<&'a MachineRequest>,
    /// The present time.
    pub now: Timestamp,
}

/// Evaluates one host; `blocked` keeps it from beginning.
pub fn evaluate(
    shared: &Shared<'_>,
    node: &Arc<Node>,
    blocked: Option<BlockedRollout>,
) -> EvaluatedHost {
    let Shared { seen, offers, machine_request: request, now, .. } = *shared;
    let (effective, is_left_out) = effective(seen, node);
    let machine = request.map(|it| it.provisioning(seen, node, &effective, now));
    let record = record(seen, machine.as_ref(), node);
    let installation = record.as_ref().and_then(|it| it.own_installation().map(str::to_owned));
    let redeploy = redeploy::of(seen.role.as_deref(), node);
    let instance = redeploy::published(redeploy.as_deref(), installation.as_deref());
    let of_machine = (record.as_ref(), matches!(&machine, Some(Ok(it)) if it.is_new));
    let trust = host_key_trust::trust(seen, node, &effective, of_machine, offers);
    let shared_key = host_key_trust::shared(seen, node, &effective, &trust);
    let (faults, is_ready) = faults_of(shared, node, &effective, shared_key.as_ref());
    let recorded = node.status.as_ref().map(|it| it.services.as_slice()).unwrap_or_default();
    let has_unknown_vars = vars::are_unknown(&faults);
    let part = inventory_shards::of_host(seen, &effective.name);
    let mut of_host = inputs::of_host(&effective, redeploy.as_deref());
    of_host.extend(installation.map(|it| ("machine".to_owned(), hash::short(&it).into())));
    let (mut desired, inputs) = desired_services(seen, &effective, part, &of_host, recorded);
    if has_unknown_vars {
        desired = desired.iter().map(|it| as_recorded(recorded, &it.service)).collect();
    }
    let may_run = effective.deploy
        && !is_left_out
        && (is_ready && (faults.is_empty() || is_first_deployment(node)))
        && blocked.is_none()
        && may_begin(machine.as_ref());
    let mut sequence = sequence(shared, node, (&effective, &trust), &desired, may_run);
    let has_services = seen.parent().is_some();
    let unlisted = unlisted(node, &desired).filter(|_| has_services);
    if has_services {
        sequence.services.extend(unlisted.and_then(|it| kept(it, &sequence)));
    } else {
        // What was recorded stays for when the role is back.
        sequence.services = recorded.to_vec();
    }
    let unlisted = unlisted.map(|it| it.name.clone());
    EvaluatedHost {
        node: Arc::clone(node),
        effective,
        has_services,
        has_unknown_vars,
        is_left_out,
        instance,
        machine,
        record,
        trust,
        shared_key,
        faults,
        inputs,
        desired,
        part,
        sequence,
        blocked,
        unlisted,
    }
}

/// The effective spec of a node, and whether `ansibleLimit` leaves its host out.
fn effective(seen: &Observed, node: &Node) -> (EffectiveSpec, bool) {
    let mut effective = seen.effective(node);
    let is_left_out = is_left_out(seen, &effective);
    if is_left_out {
        // No run will reach it, so no tags or limit narrow what it is compared with.
        effective.options = AnsibleOptions::default();
    }
    (effective, is_left_out)
}

/// The faults of a host, and whether there were none before those of its services.
fn faults_of(
    shared: &Shared<'_>,
    node: &Arc<Node>,
    effective: &EffectiveSpec,
    shared_key: Option<&String>,
) -> (Vec<Problem>, bool) {
    let mut faults = faults::of_node(shared.seen, node, effective);
    let waits = shared_key.cloned().filter(|_| is_first_deployment(node));
    faults.extend(waits.map(|it| Problem::new(&reasons::inputs::HOST_KEY_SHARED, it)));
    faults.extend_from_slice(&shared.faults.of_all);
    let is_ready = faults.is_empty();
    faults.extend(shared.faults.of_services.iter().map(|it| it.1.clone()));
    (faults, is_ready)
}

/// The service sequence of a host, which starts a run only if `may_run`.
fn sequence(
    shared: &Shared<'_>,
    node: &Node,
    (effective, trust): (&EffectiveSpec, &HostKeyTrust),
    desired: &[DesiredService],
    may_run: bool,
) -> ServiceSequence {
    let Shared { seen, runs, now, .. } = *shared;
    let ssh_secret = effective.ssh_secret.clone().unwrap_or_default();
    let ssh_version = ssh_digests(seen, &ssh_secret).map(|it| it.version.as_str());
    let accept = trust.is_learned.then(|| accept_command(&seen.namespace, &effective.name));
    let object = format!("openstackdataplanenode/{}", effective.name);
    let host = Host {
        name: &effective.name,
        desired,
        recorded: node.status.as_ref().map(|it| it.services.as_slice()).unwrap_or_default(),
        may_run,
        has_moved: has_moved(seen, node),
        ssh_key: (&ssh_secret, ssh_version.unwrap_or_default()),
        trusted: &trust.token(),
        accept: accept.as_deref(),
        take_over: &take_over_command(&seen.namespace, &object),
        retries: Retries::Healing(&redeploy::redeploy_command(node)),
    };
    let sequence = service_sequence::evaluate(&host, runs, now);
    if matches!(&sequence.state, SequenceState::NeedsRun(need) if shared.faults.blocks(&need.service))
    {
        return service_sequence::evaluate(&Host { may_run: false, ..host }, runs, now);
    }
    sequence
}

/// Returns the record of a service that failed on a host in service and is no longer desired.
fn unlisted<'a>(node: &'a Node, expected: &[DesiredService]) -> Option<&'a ServiceRun> {
    let recorded = &node.status.as_ref().filter(|_| !is_first_deployment(node))?.services;
    let fails = |it: &&ServiceRun| it.state == RunState::Failed || it.reason.is_some();
    recorded.iter().filter(fails).find(|it| !expected.iter().any(|own| own.service == it.name))
}

/// Returns that record while the status still has to report it: until the host is done, or another
/// service has failed.
fn kept(unlisted: &ServiceRun, sequence: &ServiceSequence) -> Option<ServiceRun> {
    let tells = |it: &ServiceRun| it.name == unlisted.name || it.state == RunState::Failed;
    let is_told = sequence.state == SequenceState::Done || sequence.services.iter().any(tells);
    (!is_told).then(|| ServiceRun { state: RunState::Failed, run: None, ..unlisted.clone() })
}

/// Returns whether the host has never had all of its services.
///
/// Such a host runs the services before one whose inputs are missing. A host in service waits until
/// all of them can run, so that it is not left half changed.
fn is_first_deployment(node: &Node) -> bool {
    node.status.as_ref().is_none_or(|it| it.deployed_inputs.is_empty())
}

/// Returns whether the host's machine lets services begin; true when no machine was requested.
pub fn may_begin(machine: Option<&Result<ProvisioningState, Problem>>) -> bool {
    machine.is_none_or(|it| it.as_ref().is_ok_and(|it| it.record.ready))
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

fn is_left_out(seen: &Observed, effective: &EffectiveSpec) -> bool {
    let group = seen.role.as_ref().map(|it| it.name_any());
    let groups: Vec<&str> = group.iter().map(String::as_str).collect();
    let limit = effective.options.limit.as_deref();
    limit.is_some_and(|it| limit::leaves_out(it, &effective.name, &groups))
}

/// Returns the digests of the ssh Secret; `None` when it does not exist.
pub fn ssh_digests<'a>(seen: &'a Observed, secret: &str) -> Option<&'a Digests> {
    seen.sources.get(&SourceRef::secret(&seen.namespace, secret))
}

/// Returns whether the host was last evaluated under another role than now, or under none.
fn has_moved(seen: &Observed, node: &Node) -> bool {
    let observed = node.status.as_ref().and_then(|it| it.observed_role.as_ref());
    observed.map(|it| it.uid.clone()) != seen.role.as_ref().and_then(|it| it.uid())
}

/// Returns the desired services of a host in order, and the union of their inputs.
fn desired_services(
    seen: &Observed,
    effective: &EffectiveSpec,
    part: usize,
    of_host: &Inputs,
    recorded: &[ServiceRun],
) -> (Vec<DesiredService>, Inputs) {
    let n_parts = inventory_shards::count(seen);
    let mut union = of_host.clone();
    let mut expected = Vec::new();
    for name in seen.listed() {
        let Some(service) = seen.services.get(name) else {
            expected.push(as_recorded(recorded, name));
            continue;
        };
        let sources = source_digests(seen, name);
        let of_service = inputs::of_service(service, name, &sources);
        let hash = inputs::hash([of_host, &of_service]);
        let run_hash = inputs::run_hash(&hash, &effective.options);
        let group = group(effective, service, &of_service);
        // A run mounts only one inventory.
        let group = if n_parts > 1 { format!("{group}/{part}") } else { group };
        union.extend(of_service);
        expected.push(DesiredService { service: name.clone(), hash, run_hash, group });
    }
    (expected, union)
}

/// Returns the desired state of a service that does not exist or whose variables are unknown: what
/// was deployed of it stays deployed.
fn as_recorded(recorded: &[ServiceRun], name: &str) -> DesiredService {
    let record = recorded.iter().find(|it| it.name == name);
    let hash = Digest::from(record.map_or_else(|| UNKNOWN.to_owned(), |it| it.hash.clone()));
    DesiredService { service: name.to_owned(), run_hash: hash.clone(), hash, group: String::new() }
}

/// Returns the hash of what hosts must have in common to share a run.
///
/// Variables may differ: they are part of each host's own hash.
fn group(
    effective: &EffectiveSpec,
    service: &api::dataplane::Service,
    of_service: &Inputs,
) -> String {
    let options = &effective.options;
    hash::digest(&(
        texts(of_service),
        &effective.env,
        &effective.extra_mounts,
        &effective.network_attachments,
        (&options.tags, &options.skip_tags, &options.limit),
        &service.spec.open_stack_ansible_ee_runner_image,
    ))
}

/// Returns `ConfigMap x` → digest of its content, for each existing object that a service names.
fn source_digests(seen: &Observed, service: &str) -> Inputs {
    let Some(service) = seen.services.get(service) else { return Inputs::new() };
    sources_of(&service.spec)
        .into_iter()
        .filter_map(|it| {
            let digests = seen.sources.get(&it.source(&seen.namespace))?;
            Some((it.title(), short(&digests.keys)))
        })
        .collect()
}
