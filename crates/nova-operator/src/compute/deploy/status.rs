//! The status of a compute, derived from its evaluation.

use api::conditions::{
    self, ConditionDraft, ConditionStatus, READY, find, merge_conditions, truncated,
};
use api::dataplane::ServiceRun;
use api::nova::{ExternalCompute, ExternalComputeStatus};
use jiff::Timestamp;
use nova_config::annotations::DRAIN_BEFORE;
use nova_config::conditions::{
    DEPLOYMENT_READY, HOST_MAPPED, NOVA_MATCHES, SERVICE_UP, UP_TO_DATE,
};
use nova_config::services::{LIBVIRT, NOVA, NOVA_REGISTERED};
use operator_core::keyed::{Renewal, kept};
use operator_core::plan::{Step, Target};
use operator_core::run_engine::outcome::last_failure;
use operator_core::run_engine::service_sequence::{has_begun, is_as_deployed, renew};
use operator_core::run_engine::{SequenceState, changed_text};

use crate::compute::deploy::drain::HostDrain;
use crate::compute::deploy::evaluate::Evaluation;
use crate::compute::deploy::messages::in_service;
use crate::compute::deploy::nova_matches::noticed;
use crate::compute::deploy::resolve::Resolved;
use crate::compute::deploy::{inputs, migration_key};
use crate::compute_status::deployed_files;
use crate::nova::identity::Identity;
use crate::reasons;
use crate::rollout::blocked_rollout::BlockedRollout;

/// Key in `status.hash`: the digest of all inputs.
const INPUT: &str = "input";

/// Maximum length of the list of changed inputs.
const NAMES_LIMIT: usize = 300;

/// Returns the step that writes the status, or `None` when the status is up to date.
pub fn step(resolved: &Resolved<'_>, evaluated: &Evaluation<'_>, now: Timestamp) -> Option<Step> {
    let compute = resolved.host.of.compute;
    let observed = compute.status.as_ref();
    let generation = compute.metadata.generation;
    let expected = desired_status(
        resolved,
        evaluated,
        merge_conditions(compute.conditions(), conditions(resolved, evaluated), generation, now),
    );
    let (renewed, renewal) = renewed(resolved, evaluated, &expected);
    let target = Target::of::<ExternalCompute>(compute);
    let way_on = format!("To deploy it again: {}", resolved.host.way_to_deploy);
    let step = renewal.step(target, observed, (&expected, &renewed), &way_on)?;
    Some(noticed(step, compute, &evaluated.recorded))
}

/// Returns the same status with its digests renewed with the current key.
fn renewed(
    resolved: &Resolved<'_>,
    evaluated: &Evaluation<'_>,
    desired: &ExternalComputeStatus,
) -> (ExternalComputeStatus, Renewal) {
    let (mut renewed, mut renewal) = (desired.clone(), Renewal::default());
    renew(&mut renewed.services, &resolved.desired, &mut renewal);
    if let Some(inputs) = resolved.inputs.as_ref().map(|it| &it.all) {
        renewal.of_inputs(&mut renewed.deployed_inputs, inputs);
        renewal.of_some(renewed.hash.get_mut(INPUT), &inputs::short(inputs));
    }
    if let Some(renewing) = &evaluated.files.renewing {
        for file in &mut renewed.config_files {
            if let Some(digest) = renewing.digests.get(&file.name) {
                renewal.of(&mut file.hash, digest);
            }
        }
        renewal.of_inputs(&mut renewed.deployed_files, &renewing.digests);
    }
    (renewed, renewal)
}

fn desired_status(
    resolved: &Resolved<'_>,
    evaluated: &Evaluation<'_>,
    conditions: Vec<conditions::Condition>,
) -> ExternalComputeStatus {
    let compute = resolved.host.of.compute;
    let observed = compute.status.clone().unwrap_or_default();
    let deployed_files = deployed_files::deployed(&observed, &evaluated.sequence.services);
    let node = resolved.host.of.node.and_then(|it| it.status.clone()).unwrap_or_default();
    let mut hash = observed.hash;
    let mut deployed_inputs = observed.deployed_inputs;
    if let Some(inputs) = resolved.inputs.as_ref().map(|it| &it.all) {
        hash.insert(INPUT.to_owned(), inputs::short(inputs).kept(hash.get(INPUT)));
        if evaluated.sequence.state == SequenceState::Done {
            deployed_inputs = kept(&deployed_inputs, inputs);
        }
    }
    // Set once: nova's records depend on the name from the first attempt on.
    let has_attempts = !evaluated.sequence.services.is_empty();
    let recorded_name = observed.host_name.filter(|_| has_attempts);
    // nova-compute has to be stopped later at the address of the last attempt, even if the node has
    // another address by then.
    let is_beginning = matches!(evaluated.sequence.state, SequenceState::NeedsRun(_));
    let address = match observed.address {
        Some(recorded) if has_attempts && !is_beginning => Some(recorded),
        recorded => node.address.or(recorded),
    };
    let Identity { nova, service_id, compute_id } = evaluated.recorded.clone();
    ExternalComputeStatus {
        observed_generation: compute.metadata.generation,
        conditions,
        hash,
        config_files: evaluated.files.listed.clone(),
        host_name: recorded_name.or(node.host_name),
        compute_id,
        service_id,
        nova,
        address,
        host_instance: resolved.instance.text(),
        services: evaluated.sequence.services.clone(),
        deployed_inputs,
        deployed_files,
        credentials: evaluated.credentials.clone(),
    }
}

fn conditions(resolved: &Resolved<'_>, evaluated: &Evaluation<'_>) -> Vec<ConditionDraft> {
    let compute = resolved.host.of.compute;
    let good = reasons::compute::READY.condition(READY, format!("{}.", in_service(compute)));
    let stands = !resolved.deploy || has_stood(resolved.host.of.compute);
    let deployment = deployment(resolved, evaluated, stands);
    let mut all = vec![
        resolved.input.clone(),
        resolved.node.clone(),
        resolved.cell.clone(),
        resolved.config.clone(),
    ];
    all.extend(evaluated.rejection.clone());
    all.push(deployment);
    let ready = if keeps_ready(resolved, evaluated, stands) {
        evaluated.health.problem(&resolved.host).unwrap_or(good)
    } else {
        conditions::ready(&all, good)
    };
    all.extend([
        ready,
        up_to_date(resolved, evaluated),
        resolved.warnings.clone(),
        resolved.cell_matches.clone(),
    ]);
    all.extend(evaluated.health.conditions.iter().cloned());
    all.extend(evaluated.health.drained.clone());
    all.extend(evaluated.in_sync.clone());
    all.extend(resolved.repair.node_redeploy(&compute.spec.dataplane_node_name));
    all
}

/// Whether it was Ready in its current generation before an input went missing, apart from what
/// nova's API says.
fn has_stood(compute: &ExternalCompute) -> bool {
    let (conditions, generation) = (compute.conditions(), compute.metadata.generation);
    let is_ready = conditions::has_held(conditions, READY, generation);
    let cause = find(conditions, READY).map(|it| it.reason.as_str());
    let is_unhealthy = [NOVA_MATCHES, SERVICE_UP, HOST_MAPPED].into_iter().any(|type_| {
        find(conditions, type_).is_some_and(|it| {
            it.status == ConditionStatus::False && Some(it.reason.as_str()) == cause
        })
    });
    let is_unread = cause == Some(reasons::compute::WAITING_FOR_NOVA.word);
    is_ready || is_unhealthy || is_unread
}

/// Whether the compute stays Ready: nothing has to be deployed, so a missing node, cell or Secret
/// does not undo the deployment (D1). A change that has to be deployed but cannot be makes it not
/// Ready.
fn keeps_ready(resolved: &Resolved<'_>, evaluated: &Evaluation<'_>, stands: bool) -> bool {
    match evaluated.sequence.state {
        SequenceState::Done => stands || resolved.input.holds() && resolved.inputs.is_some(),
        SequenceState::OutOfDate => keeps_deployed(resolved, evaluated),
        SequenceState::NeedsRun(_) | SequenceState::InRun { .. } | SequenceState::Failed { .. } => {
            false
        }
    }
}

/// Whether nothing has to run now, so that the previous deployment stays valid. Not so for a change
/// that failed computes block while none is being deployed.
fn keeps_deployed(resolved: &Resolved<'_>, evaluated: &Evaluation<'_>) -> bool {
    let compute = resolved.host.of.compute;
    let reported = find(compute.conditions(), DEPLOYMENT_READY).map(|it| it.reason.as_str());
    let observed = compute.status.as_ref().and_then(|it| it.observed_generation);
    let is_new = observed != compute.metadata.generation;
    let blocks_edit = |it: &BlockedRollout| it.blocked().blocks_edit(is_new, reported);
    let edit_is_blocked = evaluated.blocked.as_ref().is_some_and(blocks_edit);
    !is_wanted(resolved, evaluated) && !edit_is_blocked && is_deployed(&evaluated.sequence.services)
}

/// Whether a run is desired now.
fn is_wanted(resolved: &Resolved<'_>, evaluated: &Evaluation<'_>) -> bool {
    resolved.deploy && evaluated.blocked.is_none()
}

/// Whether each service has succeeded, the last one included: without a record of it, a deployment
/// never completed.
fn is_deployed(services: &[ServiceRun]) -> bool {
    let is_done =
        |name: &&str| services.iter().any(|it| it.name == **name && is_as_deployed(it, services));
    [LIBVIRT, NOVA, NOVA_REGISTERED].iter().all(is_done)
}

fn deployment(resolved: &Resolved<'_>, evaluated: &Evaluation<'_>, stands: bool) -> ConditionDraft {
    let services = &evaluated.sequence.services;
    if let Some(held) = held_by_identity(resolved, evaluated) {
        return held.clone();
    }
    match &evaluated.sequence.state {
        // The services are assumed unchanged, but the unknown inputs may contain a change.
        SequenceState::Done if resolved.inputs.is_none() && !stands => {
            not_running(resolved, evaluated)
        }
        SequenceState::Done => {
            let text = "libvirt and nova-compute run, and the compute has registered.";
            reasons::compute::DEPLOYED.condition(DEPLOYMENT_READY, text)
        }
        SequenceState::OutOfDate => not_running(resolved, evaluated),
        SequenceState::NeedsRun(_) if evaluated.waits_for_drain => waiting_for_drain(resolved),
        SequenceState::NeedsRun(_) => going_on(services, None),
        SequenceState::InRun { run, trouble: Some(what), .. } => {
            reasons::RUN_BLOCKED.condition(DEPLOYMENT_READY, format!("AnsibleEE {run}: {what}"))
        }
        SequenceState::InRun { waiting_for, .. } => going_on(services, waiting_for.as_deref()),
        SequenceState::Failed { reason, message, .. } => {
            let text = format!("{message}{}", stays_drained(resolved, &evaluated.drain));
            reason.reason().condition(DEPLOYMENT_READY, text)
        }
    }
}

/// Returns what keeps the identity of the host from being free, where an attempt is wanted and waits
/// for that.
fn held_by_identity<'a>(
    resolved: &Resolved<'_>,
    evaluated: &'a Evaluation<'_>,
) -> Option<&'a ConditionDraft> {
    let is_waiting =
        matches!(evaluated.sequence.state, SequenceState::Failed { .. } | SequenceState::OutOfDate);
    evaluated.identity.as_ref().filter(|_| is_waiting && is_wanted(resolved, evaluated))
}

fn waiting_for_drain(resolved: &Resolved<'_>) -> ConditionDraft {
    let node = &resolved.host.of.compute.spec.dataplane_node_name;
    let text = format!(
        "The change is deployed once the host is drained; see Drained. To deploy it without a drain, \
         set annotation {DRAIN_BEFORE} of OpenStackDataPlaneNode {node} to false."
    );
    reasons::compute::WAITING_FOR_DRAIN.condition(DEPLOYMENT_READY, text)
}

/// Returns what follows the cause of a failure on a host that a rollout has drained.
fn stays_drained(resolved: &Resolved<'_>, drain: &HostDrain<'_>) -> String {
    if !drain.drains_before || !drain.may_be_disabled {
        return String::new();
    }
    format!(
        " The host stays drained, and the rollout stops here. When the cause is corrected, it goes \
         on; to give the host back as it is, set annotation {DRAIN_BEFORE} of OpenStackDataPlaneNode \
         {} to false.",
        resolved.host.of.compute.spec.dataplane_node_name
    )
}

fn not_running(resolved: &Resolved<'_>, evaluated: &Evaluation<'_>) -> ConditionDraft {
    if keeps_deployed(resolved, evaluated) {
        let text = "The services succeeded on this host with earlier inputs; see UpToDate.";
        return reasons::compute::DEPLOYED.condition(DEPLOYMENT_READY, text);
    }
    if let Some(blocked) = &evaluated.blocked {
        return blocked.reason().condition(DEPLOYMENT_READY, blocked.text());
    }
    if !resolved.deploy {
        let text =
            "Nothing is deployed: set deployStrategy.deploy to true on the node or its role.";
        return reasons::NOT_REQUESTED.condition(DEPLOYMENT_READY, text);
    }
    let text = if resolved.is_untried {
        "The deployment waits until the NovaCell has logged in to its message bus with what its \
         Secrets hold now."
    } else {
        "The deployment waits; the other conditions report for what."
    };
    reasons::compute::WAITING.condition(DEPLOYMENT_READY, text)
}

/// The cause of the last failure stays visible during the next attempt.
fn going_on(services: &[ServiceRun], waiting_for: Option<&str>) -> ConditionDraft {
    if let Some(failed) = last_failure(DEPLOYMENT_READY, services) {
        return failed;
    }
    if let Some(what) = waiting_for {
        return reasons::QUEUED.condition(DEPLOYMENT_READY, format!("The next run waits: {what}"));
    }
    let is_running = has_begun(services);
    let text = if is_running {
        "libvirt and nova-compute are being deployed to this host."
    } else {
        "libvirt and nova-compute are about to be deployed to this host."
    };
    reasons::compute::DEPLOYING.condition(DEPLOYMENT_READY, text)
}

fn up_to_date(resolved: &Resolved<'_>, evaluated: &Evaluation<'_>) -> ConditionDraft {
    let compute = resolved.host.of.compute;
    let deployed = compute.status.as_ref().map(|it| it.deployed_inputs.clone()).unwrap_or_default();
    let Some(present) = resolved.inputs.as_ref().map(|it| &it.all) else {
        if deployed.is_empty() {
            return never_deployed();
        }
        if let Some(said) = find(compute.conditions(), UP_TO_DATE)
            .filter(|_| resolved.is_untried && has_stood(compute))
        {
            return ConditionDraft::repeated(said);
        }
        let text = "Some inputs are missing or cannot be read, so it is unknown.";
        return reasons::compute::INPUTS_UNKNOWN.condition(UP_TO_DATE, text);
    };
    if evaluated.sequence.state == SequenceState::Done {
        let due = &resolved.due_key_files;
        if !evaluated.files.changed.is_empty() || !due.is_empty() {
            return operator_changed(resolved, &evaluated.files.changed, due);
        }
        let text = "The last deployment used the present inputs.";
        return reasons::UP_TO_DATE.condition(UP_TO_DATE, text);
    }
    if deployed.is_empty() {
        return never_deployed();
    }
    let names = truncated(&inputs::changed_inputs(&deployed, present).join(", "), NAMES_LIMIT);
    let mut text = changed_text(&names);
    if let Some(blocked) = &evaluated.blocked {
        text = format!("{text} {}", blocked.text());
    }
    reasons::INPUTS_CHANGED.condition(UP_TO_DATE, text)
}

/// Says that another release renders files otherwise than they were deployed, although no input of the
/// user has changed; `due` are those of the key for migrations that it was deployed without.
fn operator_changed(resolved: &Resolved<'_>, changed: &[String], due: &[String]) -> ConditionDraft {
    let since = format!(", or since Secret {} is there", migration_key::SECRET);
    let text = format!(
        "Other files are rendered from the present inputs than were deployed, by another release of \
         the operator or for another release of nova{}: {}. Nothing runs for that: they are deployed \
         with the next change, or by: {}",
        if due.is_empty() { "" } else { &since },
        truncated(&[changed, due].concat().join(", "), NAMES_LIMIT),
        resolved.host.way_to_deploy
    );
    reasons::compute::OPERATOR_CHANGED.condition(UP_TO_DATE, text)
}

fn never_deployed() -> ConditionDraft {
    reasons::NEVER_DEPLOYED.condition(UP_TO_DATE, "No deployment has been completed yet.")
}
