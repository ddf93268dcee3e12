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

use crate::compute::deploy::evaluate::Evaluation;
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

/// What a status is derived from.
struct Reported<'a> {
    compute: &'a ExternalCompute,
    resolved: &'a Resolved<'a>,
    evaluated: &'a Evaluation<'a>,
    /// Whether it was Ready in its current generation before an input went missing.
    has_stood: bool,
}

/// Returns the step that writes the status, or `None` when the status is up to date.
pub fn step(resolved: &Resolved<'_>, evaluated: &Evaluation<'_>, now: Timestamp) -> Option<Step> {
    let compute = resolved.host.compute;
    let reported = Reported { compute, resolved, evaluated, has_stood: has_stood(compute) };
    let (drafts, generation) = (reported.conditions(), compute.metadata.generation);
    let conditions = merge_conditions(compute.conditions(), drafts, generation, now);
    let expected = reported.desired_status(conditions);
    let (renewed, renewal) = reported.renewed(&expected);
    let way_on = format!("To deploy it again: {}", resolved.host.way_to_deploy);
    let (target, observed) = (Target::of::<ExternalCompute>(compute), compute.status.as_ref());
    let step = renewal.step(target, observed, (&expected, &renewed), &way_on)?;
    Some(noticed(step, &resolved.host.recorded, &evaluated.recorded))
}

impl Reported<'_> {
    /// Returns the same status with its digests renewed with the current key.
    fn renewed(&self, desired: &ExternalComputeStatus) -> (ExternalComputeStatus, Renewal) {
        let (mut renewed, mut renewal) = (desired.clone(), Renewal::default());
        renew(&mut renewed.services, &self.resolved.desired, &mut renewal);
        if let Some(inputs) = self.resolved.inputs.as_ref().map(|it| &it.all) {
            renewal.of_inputs(&mut renewed.deployed_inputs, inputs);
            renewal.of_some(renewed.hash.get_mut(INPUT), &inputs::short(inputs));
        }
        if let Some(renewing) = &self.evaluated.files.renewing {
            for file in &mut renewed.config_files {
                if let Some(digest) = renewing.digests.get(&file.name) {
                    renewal.of(&mut file.hash, digest);
                }
            }
            renewal.of_inputs(&mut renewed.deployed_files, &renewing.digests);
        }
        (renewed, renewal)
    }

    fn desired_status(&self, conditions: Vec<conditions::Condition>) -> ExternalComputeStatus {
        let observed = self.compute.status.clone().unwrap_or_default();
        let deployed_files = deployed_files::deployed(&observed, &self.evaluated.sequence.services);
        let node = self.resolved.host.node.and_then(|it| it.status.clone()).unwrap_or_default();
        let mut hash = observed.hash;
        let mut deployed_inputs = observed.deployed_inputs;
        if let Some(inputs) = self.resolved.inputs.as_ref().map(|it| &it.all) {
            hash.insert(INPUT.to_owned(), inputs::short(inputs).kept(hash.get(INPUT)));
            if self.evaluated.sequence.state == SequenceState::Done {
                deployed_inputs = kept(&deployed_inputs, inputs);
            }
        }
        // Set once: nova's records depend on the name from the first attempt on.
        let has_attempts = !self.evaluated.sequence.services.is_empty();
        let recorded_name = observed.host_name.filter(|_| has_attempts);
        // nova-compute has to be stopped later at the address of the last attempt, even if the node
        // has another address by then.
        let is_beginning = matches!(self.evaluated.sequence.state, SequenceState::NeedsRun(_));
        let address = match observed.address {
            Some(recorded) if has_attempts && !is_beginning => Some(recorded),
            recorded => node.address.or(recorded),
        };
        let Identity { nova, service_id, compute_id } = self.evaluated.recorded.clone();
        ExternalComputeStatus {
            observed_generation: self.compute.metadata.generation,
            conditions,
            hash,
            config_files: self.evaluated.files.listed.clone(),
            host_name: recorded_name.or(node.host_name),
            compute_id,
            service_id,
            nova,
            address,
            host_instance: self.resolved.instance.text(),
            services: self.evaluated.sequence.services.clone(),
            deployed_inputs,
            deployed_files,
            credentials: self.evaluated.credentials.clone(),
        }
    }

    fn conditions(&self) -> Vec<ConditionDraft> {
        let good =
            reasons::compute::READY.condition(READY, format!("{}.", self.resolved.host.in_service));
        let deployment = self.deployment();
        let mut all = vec![
            self.resolved.input.clone(),
            self.resolved.node.condition.clone(),
            self.resolved.cell.condition.clone(),
            self.resolved.config.clone(),
        ];
        all.extend(self.evaluated.rejection.clone());
        all.push(deployment);
        let ready = if self.keeps_ready() {
            self.evaluated.health.problem(&self.resolved.host).unwrap_or(good)
        } else {
            conditions::ready(&all, good)
        };
        all.extend([
            ready,
            self.up_to_date(),
            self.resolved.warnings.clone(),
            self.resolved.cell_matches.clone(),
        ]);
        all.extend(self.evaluated.health.conditions.iter().cloned());
        all.extend(self.evaluated.health.drained.clone());
        all.extend(self.evaluated.in_sync.clone());
        all.extend(self.resolved.repair.node_redeploy(&self.compute.spec.dataplane_node_name));
        all
    }

    /// Whether the compute stays Ready: nothing has to be deployed, so a missing node, cell or Secret
    /// does not undo the deployment (D1). A change that has to be deployed but cannot be makes it not
    /// Ready.
    fn keeps_ready(&self) -> bool {
        match self.evaluated.sequence.state {
            SequenceState::Done => {
                self.stands() || self.resolved.input.holds() && self.resolved.inputs.is_some()
            }
            SequenceState::OutOfDate => self.keeps_deployed(),
            SequenceState::NeedsRun(_)
            | SequenceState::InRun { .. }
            | SequenceState::Failed { .. } => false,
        }
    }

    /// Whether nothing has to run now, so that the previous deployment stays valid. Not so for a change
    /// that failed computes block while none is being deployed.
    fn keeps_deployed(&self) -> bool {
        let reported =
            find(self.compute.conditions(), DEPLOYMENT_READY).map(|it| it.reason.as_str());
        let observed = self.compute.status.as_ref().and_then(|it| it.observed_generation);
        let is_new = observed != self.compute.metadata.generation;
        let blocks_edit = |it: &BlockedRollout| it.blocked().blocks_edit(is_new, reported);
        let edit_is_blocked = self.evaluated.blocked.as_ref().is_some_and(blocks_edit);
        !self.is_wanted() && !edit_is_blocked && is_deployed(&self.evaluated.sequence.services)
    }

    /// Whether a run is desired now.
    fn is_wanted(&self) -> bool {
        self.resolved.deploy && self.evaluated.blocked.is_none()
    }

    fn deployment(&self) -> ConditionDraft {
        let services = &self.evaluated.sequence.services;
        if let Some(held) = self.held_by_identity() {
            return held.clone();
        }
        match &self.evaluated.sequence.state {
            // The services are assumed unchanged, but the unknown inputs may contain a change.
            SequenceState::Done if self.resolved.inputs.is_none() && !self.stands() => {
                self.not_running()
            }
            SequenceState::Done => {
                let text = "libvirt and nova-compute run, and the compute has registered.";
                reasons::compute::DEPLOYED.condition(DEPLOYMENT_READY, text)
            }
            SequenceState::OutOfDate => self.not_running(),
            SequenceState::NeedsRun(_) if self.evaluated.waits_for_drain => {
                self.waiting_for_drain()
            }
            SequenceState::NeedsRun(_) => going_on(services, None),
            SequenceState::InRun { run, trouble: Some(what), .. } => {
                reasons::RUN_BLOCKED.condition(DEPLOYMENT_READY, format!("AnsibleEE {run}: {what}"))
            }
            SequenceState::InRun { waiting_for, .. } => going_on(services, waiting_for.as_deref()),
            SequenceState::Failed { reason, message, .. } => {
                let text = format!("{message}{}", self.stays_drained());
                reason.reason().condition(DEPLOYMENT_READY, text)
            }
        }
    }

    /// Returns what keeps the identity of the host from being free, where an attempt is wanted and waits
    /// for that.
    fn held_by_identity(&self) -> Option<&ConditionDraft> {
        let is_waiting = matches!(
            self.evaluated.sequence.state,
            SequenceState::Failed { .. } | SequenceState::OutOfDate
        );
        self.evaluated.identity.as_ref().filter(|_| is_waiting && self.is_wanted())
    }

    fn waiting_for_drain(&self) -> ConditionDraft {
        let node = &self.compute.spec.dataplane_node_name;
        let text = format!(
            "The change is deployed once the host is drained; see Drained. To deploy it without a drain, \
             set annotation {DRAIN_BEFORE} of OpenStackDataPlaneNode {node} to false."
        );
        reasons::compute::WAITING_FOR_DRAIN.condition(DEPLOYMENT_READY, text)
    }

    /// Returns what follows the cause of a failure on a host that a rollout has drained.
    fn stays_drained(&self) -> String {
        let drain = &self.evaluated.drain;
        if !drain.drains_before || !drain.may_be_disabled {
            return String::new();
        }
        format!(
            " The host stays drained, and the rollout stops here. When the cause is corrected, it goes \
             on; to give the host back as it is, set annotation {DRAIN_BEFORE} of OpenStackDataPlaneNode \
             {} to false.",
            self.compute.spec.dataplane_node_name
        )
    }

    fn not_running(&self) -> ConditionDraft {
        if self.keeps_deployed() {
            let text = "The services succeeded on this host with earlier inputs; see UpToDate.";
            return reasons::compute::DEPLOYED.condition(DEPLOYMENT_READY, text);
        }
        if let Some(blocked) = &self.evaluated.blocked {
            return blocked.reason().condition(DEPLOYMENT_READY, blocked.text());
        }
        if !self.resolved.deploy {
            let text =
                "Nothing is deployed: set deployStrategy.deploy to true on the node or its role.";
            return reasons::NOT_REQUESTED.condition(DEPLOYMENT_READY, text);
        }
        let text = if self.resolved.is_untried {
            "The deployment waits until the NovaCell has logged in to its message bus with what its \
             Secrets hold now."
        } else {
            "The deployment waits; the other conditions report for what."
        };
        reasons::compute::WAITING.condition(DEPLOYMENT_READY, text)
    }

    fn up_to_date(&self) -> ConditionDraft {
        let deployed =
            self.compute.status.as_ref().map(|it| it.deployed_inputs.clone()).unwrap_or_default();
        let Some(present) = self.resolved.inputs.as_ref().map(|it| &it.all) else {
            if deployed.is_empty() {
                return never_deployed();
            }
            if let Some(said) = find(self.compute.conditions(), UP_TO_DATE)
                .filter(|_| self.resolved.is_untried && self.has_stood)
            {
                return ConditionDraft::repeated(said);
            }
            let text = "Some inputs are missing or cannot be read, so it is unknown.";
            return reasons::compute::INPUTS_UNKNOWN.condition(UP_TO_DATE, text);
        };
        if self.evaluated.sequence.state == SequenceState::Done {
            if !self.evaluated.files.changed.is_empty() || !self.resolved.due_key_files.is_empty() {
                return self.operator_changed();
            }
            let text = "The last deployment used the present inputs.";
            return reasons::UP_TO_DATE.condition(UP_TO_DATE, text);
        }
        if deployed.is_empty() {
            return never_deployed();
        }
        let names = truncated(&inputs::changed_inputs(&deployed, present).join(", "), NAMES_LIMIT);
        let mut text = changed_text(&names);
        if let Some(blocked) = &self.evaluated.blocked {
            text = format!("{text} {}", blocked.text());
        }
        reasons::INPUTS_CHANGED.condition(UP_TO_DATE, text)
    }

    /// Says that another release renders files otherwise than they were deployed, although no input of the
    /// user has changed; also names those of the key for migrations that it was deployed without.
    fn operator_changed(&self) -> ConditionDraft {
        let (changed, due) = (&self.evaluated.files.changed, &self.resolved.due_key_files);
        let since = format!(", or since Secret {} is there", migration_key::SECRET);
        let text = format!(
            "Other files are rendered from the present inputs than were deployed, by another release of \
             the operator or for another release of nova{}: {}. Nothing runs for that: they are deployed \
             with the next change, or by: {}",
            if due.is_empty() { "" } else { &since },
            truncated(&[changed.as_slice(), due].concat().join(", "), NAMES_LIMIT),
            self.resolved.host.way_to_deploy
        );
        reasons::compute::OPERATOR_CHANGED.condition(UP_TO_DATE, text)
    }

    /// Whether the last deployment stays valid while inputs are unknown.
    fn stands(&self) -> bool {
        !self.resolved.deploy || self.has_stood
    }
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

/// Whether each service has succeeded, the last one included: without a record of it, a deployment
/// never completed.
fn is_deployed(services: &[ServiceRun]) -> bool {
    let is_done =
        |name: &&str| services.iter().any(|it| it.name == **name && is_as_deployed(it, services));
    [LIBVIRT, NOVA, NOVA_REGISTERED].iter().all(is_done)
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

fn never_deployed() -> ConditionDraft {
    reasons::NEVER_DEPLOYED.condition(UP_TO_DATE, "No deployment has been completed yet.")
}
