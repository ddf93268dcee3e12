//! The statuses of a node and of a role, from what was judged.

use api::conditions::{
    self, Condition, ConditionDraft, ConditionStatus, READY, Severity, merge_conditions,
};
use api::dataplane::condition_types::{DEPLOYMENT_READY, INPUT_READY, SETUP_READY, UP_TO_DATE};
use api::dataplane::{Node, NodeStatus, ObservedRole, Role, RoleStatus, RunState, ServiceRun};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::keyed::{Renewal, kept};
use operator_core::plan::{Step, Target, status_step};
use operator_core::run_engine::rollout::BlockReason;
use operator_core::run_engine::service_sequence::{is_as_deployed, renew};
use operator_core::run_engine::{SequenceState, changed_text, host_key_checking};

use crate::baremetal_request::set;
use crate::conditions::input;
use crate::host_conflicts::shared_keys::{HOST_KEY_SHARED, HOST_KEY_UNIQUE};
use crate::inputs;
use crate::problem::Fault;
use crate::role::build::is_reachable;
use crate::role::host::{EvaluatedHost, may_begin};
use crate::role::inventory::node_inventory_name;
use crate::role::machine_request::MachineRequest;
use crate::role::observed::{Observed, data_plane_of};
use crate::role::redeploy::redeploy_command;
use crate::role::{faults, provisioning, secret_vars};

/// The data plane that a role names exists.
pub const DATA_PLANE_FOUND: &str = "DataPlaneFound";

/// How many hosts a message names.
const NAMED_HOSTS: usize = 5;
/// How long the part of a message about one host may be.
const HOST_TEXT: usize = 300;

/// What a node's status says of itself, before times.
pub struct NodeFindings {
    /// The summary.
    pub ready: ConditionDraft,
    /// Whether the last deployment used the present inputs.
    pub up_to_date: ConditionDraft,
    is_deployed: bool,
    all: Vec<ConditionDraft>,
}

/// Judges the conditions of a host; `refusal` is what is said of a refused write of its group.
pub fn node_findings(
    host: &EvaluatedHost,
    role: Option<&Role>,
    machine_request: Option<&MachineRequest>,
    rejection: Option<&ConditionDraft>,
) -> NodeFindings {
    // A run does not wait for what is asked of machines.
    let (of_machines, of_runs) = match rejection {
        Some(it) if set::is_refused(it) => (Some(it), None),
        _ => (None, rejection),
    };
    let deployment = match (&host.sequence.state, of_runs) {
        // Its run is what cannot be made, or what it needs.
        (SequenceState::NeedsRun(_), Some(rejected)) => {
            rejected.clone().with_type(DEPLOYMENT_READY)
        }
        _ => deployment(host),
    };
    let mut drafts =
        vec![provisioning::of(host, machine_request, of_machines), input(&host.faults), deployment];
    // What is missing for a deployment takes nothing from a host that needs none.
    let stands = !host.effective.deploy || has_stood(&host.node, role);
    let is_deployed = drafts[2].holds();
    let keeps_ready = is_deployed && stands;
    if role.is_none() {
        // Nobody else tells of a node that is its own group.
        drafts.extend(rejection.cloned());
    }
    let blocking: Vec<ConditionDraft> =
        drafts.iter().filter(|it| !keeps_ready || it.type_ != INPUT_READY).cloned().collect();
    let good = ConditionDraft::good(
        READY,
        "Ready",
        format!("OpenStackDataPlaneNode {} is deployed.", host.node.name_any()),
    );
    let ready = conditions::ready(&blocking, good);
    let up_to_date = up_to_date(host);
    let mut all = drafts;
    all.extend(conditions::kstatus(&ready));
    all.extend([ready.clone(), up_to_date.clone(), setup(host)]);
    let shared = host.shared_key.as_ref();
    all.extend(shared.map(|it| ConditionDraft::warning(HOST_KEY_UNIQUE, HOST_KEY_SHARED, it)));
    all.extend(host_key_checking::condition([&host.effective.vars], "variables of the host"));
    NodeFindings { ready, up_to_date, is_deployed, all }
}

/// Whether the host is in an inventory that runs can begin with; what keeps it out of one is told by
/// `InputReady`.
fn setup(host: &EvaluatedHost) -> ConditionDraft {
    if is_set_up(host) {
        return ConditionDraft::good(SETUP_READY, "Ready", "The inventory is written.");
    }
    let text = "The inventory waits for its inputs; see InputReady.";
    ConditionDraft::waiting(SETUP_READY, "InputMissing", text)
}

fn is_set_up(host: &EvaluatedHost) -> bool {
    is_reachable(&host.effective) && !host.has_unknown_vars
}

/// Whether all hosts of a role are.
fn setup_of_all(hosts: &[(EvaluatedHost, ConditionDraft, ConditionDraft)]) -> ConditionDraft {
    let open: Vec<String> =
        hosts.iter().filter(|it| !is_set_up(&it.0)).map(|it| it.0.node.name_any()).collect();
    if open.is_empty() {
        return ConditionDraft::good(SETUP_READY, "Ready", "Every node is in an inventory.");
    }
    let text = format!(
        "{} nodes are in no inventory: {}; see their InputReady.",
        open.len(),
        conditions::first_names(&open, NAMED_HOSTS)
    );
    ConditionDraft::waiting(SETUP_READY, "InputMissing", text)
}

/// Whether it was Ready in its present form, its role's included, before something went missing: an
/// edit that cannot be deployed, although it is to be, has nothing that could stay.
fn has_stood(node: &Node, role: Option<&Role>) -> bool {
    let Some(status) = &node.status else { return false };
    // A role that is gone is no edit of its nodes.
    let is_role_same = role.is_none_or(|it| status.observed_role == Some(observed_role(it)));
    is_role_same && conditions::has_held(&status.conditions, READY, node.metadata.generation)
}

fn deployment(host: &EvaluatedHost) -> ConditionDraft {
    let services = &host.sequence.services;
    match &host.sequence.state {
        // Without its role a host has no services, which is not the same as all of them done.
        SequenceState::Done if !host.has_services => not_running(host),
        SequenceState::Done if services.iter().all(|it| it.deployed_hash.is_some()) => {
            let text = format!("{} services succeeded on this host.", services.len());
            ConditionDraft::good(DEPLOYMENT_READY, "Deployed", text)
        }
        SequenceState::Done => partial(),
        SequenceState::OutOfDate => not_running(host),
        SequenceState::NeedsRun(_) => going_on(&host.node, services, None),
        SequenceState::InRun { waiting_for, .. } => {
            going_on(&host.node, services, waiting_for.as_deref())
        }
        SequenceState::Failed { reason, message, .. } => {
            let kind = if reason.heals_by_itself() {
                ConditionDraft::warning
            } else {
                ConditionDraft::error
            };
            kind(DEPLOYMENT_READY, reason.as_str(), message.clone())
        }
    }
}

fn partial() -> ConditionDraft {
    ConditionDraft::waiting(
        DEPLOYMENT_READY,
        "PartialRun",
        "Only a part of the services has run: remove ansibleTags, ansibleSkipTags and ansibleLimit \
         from deployStrategy to complete the deployment.",
    )
}

/// Nothing may run: what was deployed stays deployed.
fn not_running(host: &EvaluatedHost) -> ConditionDraft {
    let services = &host.sequence.services;
    // Without its role a host has no inputs that it could be behind.
    let waits = host.blocked.is_some() && !edit_is_blocked(host);
    let is_off = !host.effective.deploy || !host.has_services || host.is_left_out || waits;
    if is_off && !services.is_empty() && services.iter().all(|it| is_as_deployed(it, services)) {
        let text = "The services succeeded on this host with earlier inputs; see UpToDate.";
        return ConditionDraft::good(DEPLOYMENT_READY, "Deployed", text);
    }
    if !may_begin(host.machine.as_ref()) && host.effective.deploy {
        let text = "The deployment waits for the host's machine; see BaremetalReady.";
        return ConditionDraft::waiting(DEPLOYMENT_READY, "MachineNotReady", text);
    }
    if !host.faults.is_empty() {
        let text = "The deployment waits for its inputs; see InputReady.";
        return ConditionDraft::waiting(DEPLOYMENT_READY, "InputMissing", text);
    }
    if let Some(blocked) = &host.blocked {
        return ConditionDraft::waiting(DEPLOYMENT_READY, blocked.blocked.reason(), blocked.text());
    }
    if host.is_left_out {
        let text = "Nothing is deployed: ansibleLimit of deployStrategy leaves this host out.";
        return ConditionDraft::waiting(DEPLOYMENT_READY, "LeftOut", text);
    }
    ConditionDraft::waiting(
        DEPLOYMENT_READY,
        "NotRequested",
        "Nothing is deployed: set deployStrategy.deploy to true on the node, its role or their \
         OpenStackDataPlane.",
    )
}

/// Whether an edit of the host's own object waits for hosts that fail, and for nobody who is at work.
fn edit_is_blocked(host: &EvaluatedHost) -> bool {
    let (Some(held), Some(status)) = (&host.blocked, &host.node.status) else { return false };
    let is_new = status.observed_generation != host.node.metadata.generation;
    let reported = conditions::find(&status.conditions, DEPLOYMENT_READY);
    held.blocked.blocks_edit(is_new, reported.map(|it| it.reason.as_str()))
}

/// The cause of the last failure stays visible while it is tried again.
///
/// Which service runs is told once for all of them: each further one would cost a write.
fn going_on(node: &Node, services: &[ServiceRun], waiting_for: Option<&str>) -> ConditionDraft {
    if let Some(failed) = services.iter().find(|it| it.reason.is_some()) {
        return ConditionDraft::warning(
            DEPLOYMENT_READY,
            failed.reason.as_deref().unwrap_or_default(),
            failed.message.clone().unwrap_or_default(),
        );
    }
    if let Some(what) = waiting_for {
        return ConditionDraft::waiting(
            DEPLOYMENT_READY,
            "Queued",
            format!("The next run waits: {what}"),
        );
    }
    let text = match services.iter().find(|it| it.state == RunState::Running) {
        Some(first) => format!(
            "Services are being deployed to this host, beginning with {}; kubectl edpm status {} \
             tells which one runs now.",
            first.name,
            node.name_any()
        ),
        None => "Services are about to be deployed to this host.".to_owned(),
    };
    ConditionDraft::waiting(DEPLOYMENT_READY, "Deploying", text)
}

fn up_to_date(host: &EvaluatedHost) -> ConditionDraft {
    let status = host.node.status.as_ref();
    let deployed = status.map(|it| it.deployed_inputs.clone()).unwrap_or_default();
    let is_partial = host.sequence.services.iter().any(|it| it.deployed_hash.is_none());
    let is_done = host.sequence.state == SequenceState::Done && host.has_services;
    if is_done && host.has_unknown_vars {
        let text = "Some variables are missing or cannot be read, so it cannot be told.";
        return ConditionDraft::unknown(UP_TO_DATE, "InputMissing", text);
    }
    if is_done && faults::lack_services(&host.faults) {
        let text = "A service is missing or cannot be read, so it cannot be told.";
        return ConditionDraft::unknown(UP_TO_DATE, "InputMissing", text);
    }
    if is_done && !is_partial && !host.effective.options.is_partial() {
        let text = "The last deployment used the present inputs.";
        return ConditionDraft::good(UP_TO_DATE, "UpToDate", text);
    }
    if is_done {
        return partial().with_type(UP_TO_DATE);
    }
    if deployed.is_empty() {
        let text = "No deployment has been completed yet.";
        return ConditionDraft::waiting(UP_TO_DATE, "NeverDeployed", text);
    }
    if !host.has_services {
        let text = "Nobody can tell: without its role it is not known what this host is to have; \
                    what was deployed stays.";
        return ConditionDraft::unknown(UP_TO_DATE, "RoleUnknown", text);
    }
    let names = inputs::changed(&deployed, &host.inputs).join(", ");
    let names = conditions::truncated(&names, HOST_TEXT);
    let mut text = changed_text(&names);
    if let Some(blocked) = &host.blocked {
        text = format!("{text} {}", blocked.text());
    }
    ConditionDraft::waiting(UP_TO_DATE, "InputsChanged", text)
}

/// The status step of a node, where its status does not say so already.
pub fn node_step(
    seen: &Observed,
    host: &EvaluatedHost,
    conditions: NodeFindings,
    now: Timestamp,
) -> Option<Step> {
    let node = &host.node;
    let observed = node.status.as_ref();
    let previous = ours(observed.map(|it| it.conditions.as_slice()).unwrap_or_default());
    let is_complete = conditions.up_to_date.status == ConditionStatus::True;
    let limits = seen.limits();
    let desired = NodeStatus {
        observed_generation: node.metadata.generation,
        observed_role: seen.role.as_deref().map(observed_role),
        conditions: merge_conditions(&previous, conditions.all, node.metadata.generation, now),
        inventory_config_map_name: Some(node_inventory_name(&node.name_any())),
        inventory_secret_name: inventory_secret_name(host),
        ssh_key_secret_name: host.effective.ssh_secret.clone(),
        network_attachments: host.effective.network_attachments.clone(),
        deploy: Some(host.effective.deploy),
        deployed: conditions.is_deployed.then_some(true),
        max_unavailable: limits.max_unavailable,
        pause_on_failure: limits.pause_on_failure.then_some(true),
        host_name: Some(host.effective.host_name.clone()),
        address: host.effective.address(),
        host_key: host.trust.key.as_ref().map(ToString::to_string),
        host_instance: instance(host),
        machine: host.record.clone(),
        services: host.sequence.services.clone(),
        deployed_inputs: if is_complete {
            kept(&observed.map(|it| it.deployed_inputs.clone()).unwrap_or_default(), &host.inputs)
        } else {
            observed.map(|it| it.deployed_inputs.clone()).unwrap_or_default()
        },
    };
    let next = desired.conditions.clone();
    let way_on = format!("To deploy it again: {}", redeploy_command(node));
    let step = |desired: &NodeStatus| {
        let (mut renewed, mut renewal) = (desired.clone(), Renewal::default());
        renew(&mut renewed.services, &host.desired, &mut renewal);
        renewal.of_inputs(&mut renewed.deployed_inputs, &host.inputs);
        let conditions = (previous.as_slice(), next.as_slice());
        renewal.step(Target::of::<Node>(node), observed, (desired, &renewed), conditions, &way_on)
    };
    if matches!(host.sequence.state, SequenceState::NeedsRun(_) | SequenceState::InRun { .. }) {
        // A key that was learned on the way is told with the next write; until then its run tells.
        let host_key = observed.and_then(|it| it.host_key.clone());
        step(&NodeStatus { host_key, ..desired.clone() })?;
    }
    step(&desired)
}

/// What others follow: a host that waits for its turn is still what it was, and whoever deploys on
/// top of it must not be there first.
fn instance(host: &EvaluatedHost) -> Option<String> {
    if host.blocked.is_none() {
        return host.instance.clone();
    }
    host.node.status.as_ref().and_then(|it| it.host_instance.clone())
}

/// What cannot be told at present stays as it was published.
fn inventory_secret_name(host: &EvaluatedHost) -> Option<String> {
    if host.has_unknown_vars {
        return host.node.status.as_ref()?.inventory_secret_name.clone();
    }
    secret_vars::is_mounted(&[host]).then(|| node_inventory_name(&host.node.name_any()))
}

/// Conditions of other operators carry a domain in their type.
pub fn ours(conditions: &[Condition]) -> Vec<Condition> {
    conditions.iter().filter(|it| !it.type_.contains('/')).cloned().collect()
}

fn observed_role(role: &Role) -> ObservedRole {
    ObservedRole {
        name: role.name_any(),
        uid: role.uid().unwrap_or_default(),
        generation: role.metadata.generation.unwrap_or_default(),
    }
}

/// The status step of a role, where its status does not say so already.
pub fn role_step(
    seen: &Observed,
    faults: &[Fault],
    rejection: Option<ConditionDraft>,
    hosts: &[(EvaluatedHost, ConditionDraft, ConditionDraft)],
    machine_request: Option<&MachineRequest>,
    now: Timestamp,
) -> Option<Step> {
    let role = seen.role.as_deref()?;
    let nodes = nodes_finding(seen, hosts);
    let is_deployed = nodes.holds() && !hosts.is_empty();
    let good = nodes.clone().with_type(READY);
    let blocking: Vec<ConditionDraft> =
        [Some(input(faults)), rejection.clone(), Some(nodes)].into_iter().flatten().collect();
    let ready = conditions::ready(&blocking, good);
    let mut all = blocking;
    all.extend(conditions::kstatus(&ready));
    all.push(ready);
    all.push(setup_of_all(hosts));
    all.extend(data_plane(seen.data_plane.is_some(), role));
    // Each node says it of itself: here it is told how many there are.
    let of_machines = rejection.filter(set::is_refused);
    let all_hosts = hosts.iter().map(|it| &it.0);
    let machines =
        machine_request.map(|it| provisioning::of_all(it, of_machines.as_ref(), all_hosts));
    all.extend(machines.as_ref().map(|it| it.condition.clone()));
    let count = |holds: fn(&(EvaluatedHost, ConditionDraft, ConditionDraft)) -> bool| {
        i64::try_from(hosts.iter().filter(|it| holds(it)).count()).unwrap_or(i64::MAX)
    };
    let observed = role.status.as_ref();
    let previous = observed.map(|it| it.conditions.clone()).unwrap_or_default();
    let desired = RoleStatus {
        observed_generation: role.metadata.generation,
        conditions: merge_conditions(&previous, all, role.metadata.generation, now),
        deployed: is_deployed.then_some(true),
        nodes: count(|_| true),
        ready_nodes: count(|(_, ready, _)| ready.holds()),
        up_to_date_nodes: count(|(_, _, up_to_date)| up_to_date.holds()),
        provisioned_nodes: machines.map(|it| it.n_there),
    };
    let next = desired.conditions.clone();
    status_step(Target::of::<Role>(role), observed, &desired, &previous, &next)
}

/// Whether the data plane that the role names exists; nothing where it names none.
///
/// `Ready` does not depend on it: a role that says itself what is deployed needs no data plane.
fn data_plane(is_there: bool, role: &Role) -> Option<ConditionDraft> {
    let name = data_plane_of(role)?;
    if is_there {
        let text = format!(
            "What deployStrategy of node and role leaves open is taken from OpenStackDataPlane \
             {name}."
        );
        return Some(ConditionDraft::good(DATA_PLANE_FOUND, "Found", text));
    }
    let text = format!(
        "OpenStackDataPlane {name}, named in spec.dataPlane of OpenStackDataPlaneRole {}, does not \
         exist, so nothing is taken from it: create it or correct spec.dataPlane.",
        role.name_any()
    );
    // Who says itself whether to deploy lacks nothing: no reason for an alarm that stays for ever.
    let is_decided = role.spec.deploy_strategy.as_ref().is_some_and(|it| it.deploy.is_some());
    let kind = if is_decided { ConditionDraft::waiting } else { ConditionDraft::warning };
    Some(kind(DATA_PLANE_FOUND, "DataPlaneNotFound", text))
}

/// The sum of the nodes, with the first ones that are not ready by name.
fn nodes_finding(
    seen: &Observed,
    hosts: &[(EvaluatedHost, ConditionDraft, ConditionDraft)],
) -> ConditionDraft {
    let total = hosts.len();
    let mut open: Vec<&(EvaluatedHost, ConditionDraft, ConditionDraft)> =
        hosts.iter().filter(|(_, ready, _)| !ready.holds()).collect();
    let mut texts = vec![format!("{}/{total} nodes are ready.", total - open.len())];
    open.sort_by_key(|(_, ready, _)| severity_rank(ready));
    texts.extend(open.iter().take(NAMED_HOSTS).map(|it| host_text(it)));
    if open.len() > NAMED_HOSTS {
        texts.push(format!("And {} more.", open.len() - NAMED_HOSTS));
    }
    texts.extend(held_text(seen, hosts));
    let text = texts.join(" ");
    if hosts.is_empty() {
        let text = "The role has no nodes: nothing is run.";
        return ConditionDraft::good(DEPLOYMENT_READY, "NodesReady", text);
    }
    let Some((_, worst, _)) = open.first() else {
        return ConditionDraft::good(DEPLOYMENT_READY, "NodesReady", text);
    };
    match worst.severity {
        Some(Severity::Error) => ConditionDraft::error(DEPLOYMENT_READY, &worst.reason, text),
        Some(Severity::Warning) => ConditionDraft::warning(DEPLOYMENT_READY, &worst.reason, text),
        _ => ConditionDraft::waiting(DEPLOYMENT_READY, &worst.reason, text),
    }
}

/// How many nodes the role's limits hold back.
fn held_text(
    seen: &Observed,
    hosts: &[(EvaluatedHost, ConditionDraft, ConditionDraft)],
) -> Option<String> {
    let held = hosts.iter().filter_map(|it| it.0.blocked.as_ref());
    let n_held = held.clone().count();
    let first = held
        .clone()
        .find(|it| it.blocked != BlockReason::LimitReached)
        .or_else(|| held.clone().next())?;
    Some(match first.blocked {
        BlockReason::LimitReached => {
            let max = seen.limits().max_unavailable_text();
            format!("{n_held} wait for their turn (maxUnavailable {max}).")
        }
        BlockReason::Stuck => {
            let max = seen.limits().max_unavailable_text();
            format!("{n_held} wait for their turn (maxUnavailable {max}): {}", first.way_on())
        }
        BlockReason::Paused => format!(
            "The rollout is paused (pauseOnFailure): {n_held} wait until no host fails; correct \
             the cause, or set deployStrategy.pauseOnFailure to false."
        ),
    })
}

fn severity_rank(condition: &ConditionDraft) -> u8 {
    match condition.severity {
        Some(Severity::Error) => 0,
        Some(Severity::Warning) => 1,
        _ => 2,
    }
}

/// One host in the role's message: what it runs, or why it is not ready.
fn host_text((host, ready, _): &(EvaluatedHost, ConditionDraft, ConditionDraft)) -> String {
    let name = host.node.name_any();
    if let (SequenceState::InRun { run, .. }, Some(Severity::Info)) =
        (&host.sequence.state, ready.severity)
    {
        return format!("{name}: runs {run}.");
    }
    format!("{name}: {}: {}", ready.reason, conditions::truncated(&ready.message, HOST_TEXT))
}
