//! The conditions and the status of a node, from the evaluation of its host.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::conditions::{self, ConditionDraft, ConditionStatus, READY, merge_conditions};
use api::dataplane::condition_types::{
    BAREMETAL_READY, DEPLOYMENT_READY, INPUT_READY, SETUP_READY, UP_TO_DATE,
};
use api::dataplane::{Node, NodeStatus, ObservedRole, Role, ServiceRun};
use api::problem::Problem;
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::host_key_checking;
use operator_core::keyed::{Renewal, kept};
use operator_core::plan::{Step, Target};
use operator_core::run_engine::outcome::last_failure;
use operator_core::run_engine::service_sequence::{is_as_deployed, renew};
use operator_core::run_engine::{Run, SequenceState, changed_text};

use crate::conditions::input;
use crate::host::conflicts::shared_keys::HOST_KEY_UNIQUE;
use crate::host::inputs;
use crate::host::machines::{ProvisioningState, machine_conditions, set};
use crate::host::node_conditions::is_ready;
use crate::host::services::lack_services;
use crate::host::status::own;
use crate::reasons;
use crate::role::build::inventory_name;
use crate::role::evaluate::{EvaluatedHost, Turn};
use crate::role::inventory_part::InventoryPart;
use crate::role::inventory_shards::node_inventory_name;
use crate::role::machine_request::MachineRequest;
use crate::role::observed::{NodeGroup, Observed};
use crate::role::redeploy::redeploy_command;
use crate::role::resolved::{ResolvedHost, may_begin};
use crate::role::secret_vars;
use crate::role::summary::HostSummary;
use crate::spec_warnings;

/// The maximum number of characters about one host in a message.
pub(super) const HOST_TEXT: usize = 300;

/// An evaluated host with the drafts of its node's conditions, without timestamps.
pub struct NodeFindings<'a> {
    /// The host.
    pub evaluated: EvaluatedHost<'a>,
    /// The summary.
    pub ready: ConditionDraft,
    /// Whether the last deployment used the present inputs.
    pub up_to_date: ConditionDraft,
    /// Whether its machine is provisioned.
    pub machine: ConditionDraft,
    is_deployed: bool,
    all: Vec<ConditionDraft>,
}

impl NodeFindings<'_> {
    /// Sums up the host; `runs` are those that carry an attempt of it, and `turn` is from before its group
    /// admitted hosts.
    pub fn summary(&self, role: Option<&Role>, turn: Turn, runs: &[&Run<'_>]) -> HostSummary {
        let EvaluatedHost { host, sequence, blocked, .. } = &self.evaluated;
        let name = host.effective.name.clone();
        let wanted = runs.iter().filter(|it| host.effective.deploy && sequence.wants(it, &name));
        HostSummary {
            turn,
            blocked: blocked.clone(),
            ready: self.ready.clone(),
            is_up_to_date: self.up_to_date.holds(),
            machine: host.machine.as_ref().map(|_| self.machine.clone()),
            run: match &sequence.state {
                SequenceState::InRun { run, .. } => Some(run.clone()),
                SequenceState::Done
                | SequenceState::OutOfDate
                | SequenceState::NeedsRun(_)
                | SequenceState::Failed { .. } => None,
            },
            wanted_runs: wanted.map(|it| it.name()).collect(),
            may_be_paused: self.evaluated.may_be_paused(),
            ssh_secret: host.effective.ssh_secret.clone(),
            part: host.is_set_up().then(|| Arc::new(InventoryPart::of(role, host))),
            has_unknown_vars: host.has_unknown_vars,
            shard: host.shard,
            name,
        }
    }
}

/// Returns the conditions of a host; `rejection` is the condition of a rejected write of its group.
pub fn node_findings<'a>(
    evaluated: EvaluatedHost<'a>,
    role: Option<&Role>,
    machine_request: Option<&MachineRequest<'_>>,
    rejection: Option<&ConditionDraft>,
) -> NodeFindings<'a> {
    let host = evaluated.host;
    // Runs do not wait for a rejected set of machines.
    let (of_machines, of_runs) = match rejection {
        Some(it) if set::is_refused(it) => (Some(it), None),
        _ => (None, rejection),
    };
    let deployment = match (&evaluated.sequence.state, of_runs) {
        // The rejected write is the host's run, or an object that the run needs.
        (SequenceState::NeedsRun(_), Some(rejected)) => {
            rejected.clone().with_type(DEPLOYMENT_READY)
        }
        _ => deployment(&evaluated),
    };
    // A host that needs no deployment stays ready when an input of a deployment is missing.
    let stands = !host.effective.deploy || has_stood(host.node, role);
    let is_deployed = deployment.holds();
    let keeps_ready = is_deployed && stands;
    let machine = machine_condition(host, machine_request, of_machines);
    let mut drafts = vec![machine.clone(), input(&host.problems), deployment];
    if role.is_none() {
        // A node without a role reports the rejection itself.
        drafts.extend(rejection.cloned());
    }
    let counts = |it: &&ConditionDraft| !keeps_ready || it.type_ != INPUT_READY;
    let ready = conditions::ready(drafts.iter().filter(counts), is_ready(host.node));
    let up_to_date = up_to_date(&evaluated);
    let mut all = drafts;
    all.extend([ready.clone(), up_to_date.clone(), setup(host)]);
    let shared = host.shared_key.as_ref();
    all.extend(shared.map(|it| reasons::inputs::HOST_KEY_SHARED.condition(HOST_KEY_UNIQUE, it)));
    all.extend(host_key_checking::condition([&host.effective.vars], "variables of the host"));
    all.extend(without_effect(host.node));
    NodeFindings { evaluated, ready, up_to_date, machine, is_deployed, all }
}

/// Returns the condition about what in a node's own spec is without effect.
fn without_effect(node: &Node) -> Option<ConditionDraft> {
    let own = node.spec.node.as_ref()?;
    let found = spec_warnings::of_mounts("spec.node.extraMounts", &own.extra_mounts);
    spec_warnings::condition(&format!("OpenStackDataPlaneNode {}", node.name_any()), &found)
}

/// Returns the condition of one host's machine; `rejected` is the condition of a rejected write of
/// the set.
fn machine_condition(
    host: &ResolvedHost<'_>,
    machine_request: Option<&MachineRequest<'_>>,
    rejected: Option<&ConditionDraft>,
) -> ConditionDraft {
    let address = host.effective.address().unwrap_or_default();
    let is_open = |it: &Result<ProvisioningState, Problem>| {
        it.as_ref().is_ok_and(|it| !it.is_installed && it.error.is_none())
    };
    let Some((machine, request)) = host.machine.as_ref().zip(machine_request) else {
        return not_required(host);
    };
    match rejected.filter(|_| is_open(machine)) {
        Some(rejected) => rejected.clone().with_type(BAREMETAL_READY),
        None => machine_conditions::condition(
            BAREMETAL_READY,
            &request.request.owner,
            machine,
            &address,
        ),
    }
}

/// Returns the condition of a host without a machine request; it names a machine that the host had.
fn not_required(host: &ResolvedHost<'_>) -> ConditionDraft {
    let machine = host.record.as_ref().and_then(|it| it.machine.as_ref());
    let text = match machine {
        None => "The host is provisioned by others.".to_owned(),
        Some(machine) => format!(
            "No machine is requested any more. Machine {machine}, which was provisioned for the \
             host, stays in its OpenStackBaremetalSet until that is deleted."
        ),
    };
    reasons::machines::NOT_REQUIRED.condition(BAREMETAL_READY, text)
}

/// Returns whether the host is in an inventory that runs can use; `InputReady` reports the cause if
/// it is not.
fn setup(host: &ResolvedHost<'_>) -> ConditionDraft {
    if host.is_set_up() {
        return reasons::role::SET_UP.condition(SETUP_READY, "The inventory is written.");
    }
    let text = "The inventory waits for its inputs; see InputReady.";
    reasons::inputs::INPUT_MISSING.condition(SETUP_READY, text)
}

/// Returns whether the node was ready at its present generation and its role's, before an input
/// went missing. After an edit that cannot be deployed, there is no readiness to keep.
fn has_stood(node: &Node, role: Option<&Role>) -> bool {
    let Some(status) = &node.status else { return false };
    // The deletion of a role is not an edit of its nodes.
    let is_role_same = role.is_none_or(|it| status.observed_role == Some(ObservedRole::of(it)));
    is_role_same && conditions::has_held(&status.conditions, READY, node.metadata.generation)
}

fn deployment(evaluated: &EvaluatedHost<'_>) -> ConditionDraft {
    let EvaluatedHost { host, sequence, .. } = evaluated;
    let services = &sequence.services;
    match &sequence.state {
        // Without its role a host has no services, which does not mean that all of them succeeded.
        SequenceState::Done if !host.has_services => not_running(evaluated),
        SequenceState::Done if services.iter().all(|it| it.deployed_hash.is_some()) => {
            let text = format!("{} services succeeded on this host.", services.len());
            reasons::role::DEPLOYED.condition(DEPLOYMENT_READY, text)
        }
        SequenceState::Done => partial(),
        SequenceState::OutOfDate => not_running(evaluated),
        SequenceState::NeedsRun(_) => going_on(host.node, services, None),
        SequenceState::InRun { run, trouble: Some(what), .. } => {
            reasons::RUN_BLOCKED.condition(DEPLOYMENT_READY, format!("AnsibleEE {run}: {what}"))
        }
        SequenceState::InRun { waiting_for, .. } => {
            going_on(host.node, services, waiting_for.as_deref())
        }
        SequenceState::Failed { reason, message, .. } => {
            reason.reason().condition(DEPLOYMENT_READY, message.clone())
        }
    }
}

fn partial() -> ConditionDraft {
    reasons::role::PARTIAL_RUN.condition(
        DEPLOYMENT_READY,
        "Only a part of the services has run: remove ansibleTags, ansibleSkipTags and ansibleLimit \
         from deployStrategy to complete the deployment.",
    )
}

/// Returns the condition while nothing may run: what was deployed stays deployed.
fn not_running(evaluated: &EvaluatedHost<'_>) -> ConditionDraft {
    let EvaluatedHost { host, blocked, .. } = evaluated;
    let services = &evaluated.sequence.services;
    // Without its role a host has no inputs, so it cannot be out of date.
    let waits = blocked.is_some() && !edit_is_blocked(evaluated);
    let is_off = !host.effective.deploy || !host.has_services || host.is_left_out || waits;
    if is_off && !services.is_empty() && services.iter().all(|it| is_as_deployed(it, services)) {
        let text = "The services succeeded on this host with earlier inputs; see UpToDate.";
        return reasons::role::DEPLOYED.condition(DEPLOYMENT_READY, text);
    }
    if !may_begin(host.machine.as_ref()) && host.effective.deploy {
        let text = "The deployment waits for the host's machine; see BaremetalReady.";
        return reasons::machines::MACHINE_NOT_READY.condition(DEPLOYMENT_READY, text);
    }
    if !host.problems.is_empty() {
        let text = "The deployment waits for its inputs; see InputReady.";
        return reasons::inputs::INPUT_MISSING.condition(DEPLOYMENT_READY, text);
    }
    if let Some(blocked) = blocked {
        return blocked.blocked.reason().condition(DEPLOYMENT_READY, blocked.text());
    }
    if host.is_left_out {
        let text = "Nothing is deployed: ansibleLimit of deployStrategy leaves this host out.";
        return reasons::role::LEFT_OUT.condition(DEPLOYMENT_READY, text);
    }
    reasons::NOT_REQUESTED.condition(
        DEPLOYMENT_READY,
        "Nothing is deployed: set deployStrategy.deploy to true on the node, its role or their \
         OpenStackDataPlane.",
    )
}

/// Returns whether an edit of the node waits only for failed hosts, and for none that is at work.
fn edit_is_blocked(evaluated: &EvaluatedHost<'_>) -> bool {
    let node = evaluated.host.node;
    let (Some(held), Some(status)) = (&evaluated.blocked, &node.status) else { return false };
    let is_new = status.observed_generation != node.metadata.generation;
    let reported = conditions::find(&status.conditions, DEPLOYMENT_READY);
    held.blocked.blocks_edit(is_new, reported.map(|it| it.reason.as_str()))
}

/// Returns the condition of an open deployment.
///
/// The cause of the last failure stays visible during the retry. No service is named, because each one
/// would cost a write.
fn going_on(node: &Node, services: &[ServiceRun], waiting_for: Option<&str>) -> ConditionDraft {
    if let Some(failed) = last_failure(DEPLOYMENT_READY, services) {
        return failed;
    }
    if let Some(what) = waiting_for {
        return reasons::QUEUED.condition(DEPLOYMENT_READY, format!("The next run waits: {what}"));
    }
    let text = format!(
        "Services are being deployed to this host; kubectl edpm status {} shows which one runs now.",
        node.name_any()
    );
    reasons::role::DEPLOYING.condition(DEPLOYMENT_READY, text)
}

fn up_to_date(evaluated: &EvaluatedHost<'_>) -> ConditionDraft {
    let EvaluatedHost { host, sequence, .. } = evaluated;
    let status = host.node.status.as_ref();
    let deployed = status.map(|it| it.deployed_inputs.clone()).unwrap_or_default();
    let is_partial = sequence.services.iter().any(|it| it.deployed_hash.is_none());
    let is_done = sequence.state == SequenceState::Done && host.has_services;
    if is_done && host.has_unknown_vars {
        let text = "Some variables are missing or cannot be read, so it is unknown.";
        return reasons::role::INPUT_UNKNOWN.condition(UP_TO_DATE, text);
    }
    if is_done && lack_services(&host.problems) {
        let text = "A service is missing or cannot be read, so it is unknown.";
        return reasons::role::INPUT_UNKNOWN.condition(UP_TO_DATE, text);
    }
    if is_done && !is_partial && !host.effective.options.is_partial() {
        let text = "The last deployment used the present inputs.";
        return reasons::UP_TO_DATE.condition(UP_TO_DATE, text);
    }
    if is_done {
        return partial().with_type(UP_TO_DATE);
    }
    if deployed.is_empty() {
        let text = "No deployment has been completed yet.";
        return reasons::NEVER_DEPLOYED.condition(UP_TO_DATE, text);
    }
    if !host.has_services {
        let text = "Without its role it is unknown what this host is to have; what was deployed \
                    stays.";
        return reasons::role::ROLE_UNKNOWN.condition(UP_TO_DATE, text);
    }
    let names = inputs::changed_inputs(&deployed, &host.inputs).join(", ");
    let names = conditions::truncated(&names, HOST_TEXT);
    let mut text = changed_text(&names);
    if let Some(blocked) = &evaluated.blocked {
        text = format!("{text} {}", blocked.text());
    }
    reasons::INPUTS_CHANGED.condition(UP_TO_DATE, text)
}

/// Returns the step that writes the status of a node; `None` when it is up to date.
///
/// `shards_with_secret` are the parts of the role's inventory with variables from Secrets.
pub fn node_step(
    seen: &Observed,
    findings: &NodeFindings<'_>,
    shards_with_secret: &BTreeSet<usize>,
    now: Timestamp,
) -> Option<Step> {
    let EvaluatedHost { host, sequence, .. } = &findings.evaluated;
    let node = host.node;
    let observed = observed(node);
    let observed = observed.as_ref();
    let deployed = observed.map(|it| it.deployed_inputs.clone()).unwrap_or_default();
    let is_complete = findings.up_to_date.status == ConditionStatus::True;
    let (generation, limits) = (node.metadata.generation, seen.limits());
    let own = node_inventory_name(&node.name_any());
    let shared = seen.role.as_ref().map(|_| inventory_name(seen, host.shard));
    let with_secret = shared.clone().filter(|_| shards_with_secret.contains(&host.shard));
    let [secret, shared_secret] = secret_names(host, &own, with_secret);
    let desired = NodeStatus {
        observed_generation: generation,
        group: match &seen.group {
            NodeGroup::Role(name) => Some(format!("Role/{name}")),
            NodeGroup::Node(_) => None,
        },
        observed_role: seen.role.as_deref().map(ObservedRole::of),
        conditions: merge_conditions(node.conditions(), findings.all.clone(), generation, now),
        inventory_config_map_name: Some(own),
        inventory_secret_name: secret,
        shared_inventory_config_map_name: shared,
        shared_inventory_secret_name: shared_secret,
        ssh_key_secret_name: host.effective.ssh_secret.clone(),
        network_attachments: host.effective.network_attachments.clone(),
        deploy: Some(host.effective.deploy),
        deployed: findings.is_deployed.then_some(true),
        max_unavailable: limits.max_unavailable,
        pause_on_failure: limits.pause_on_failure.then_some(true),
        host_name: Some(host.effective.host_name.clone()),
        address: host.effective.address(),
        host_key: host.trust.key.as_ref().map(ToString::to_string),
        host_instance: instance(&findings.evaluated),
        machine: host.record.clone(),
        services: sequence.services.clone(),
        tls: host.effective.tls.clone(),
        deployed_inputs: if is_complete { kept(&deployed, &host.inputs) } else { deployed },
        ..NodeStatus::default()
    };
    let way_on = format!("To deploy it again: {}", redeploy_command(node));
    let step = |desired: &NodeStatus| {
        let (mut renewed, mut renewal) = (desired.clone(), Renewal::default());
        renew(&mut renewed.services, &host.desired, &mut renewal);
        renewal.of_inputs(&mut renewed.deployed_inputs, &host.inputs);
        renewal.step(Target::of::<Node>(node), observed, (desired, &renewed), &way_on)
    };
    if sequence.is_due() {
        // A key that its run reports is written with what the run comes to.
        let host_key = observed.and_then(|it| it.host_key.clone());
        step(&NodeStatus { host_key, ..desired.clone() })?;
    }
    step(&desired)
}

/// Returns the controller's own part of a node's status, without what other operators write.
fn observed(node: &Node) -> Option<NodeStatus> {
    let mut observed = own(node.status.as_ref()?);
    observed.conditions.retain(|it| !it.type_.contains('/'));
    Some(observed)
}

/// Returns the Secrets beside the host's own inventory and beside the one that it shares; while variables
/// are unknown, the recorded ones.
fn secret_names(host: &ResolvedHost<'_>, own: &str, shared: Option<String>) -> [Option<String>; 2] {
    if host.has_unknown_vars {
        let recorded = host.node.status.clone().unwrap_or_default();
        return [recorded.inventory_secret_name, recorded.shared_inventory_secret_name];
    }
    [secret_vars::is_mounted(host).then(|| own.to_owned()), shared]
}

/// Returns the instance that others follow.
///
/// A blocked host keeps its previous instance, so that nothing is deployed on top of it too early.
fn instance(evaluated: &EvaluatedHost<'_>) -> Option<String> {
    let host = evaluated.host;
    if evaluated.blocked.is_none() {
        return host.instance.clone();
    }
    host.node.status.as_ref().and_then(|it| it.host_instance.clone())
}
