//! The last look at a host before its machine is given back: a run looks for guests there.

use std::collections::BTreeMap;

use api::ansibleee::AnsibleEe;
use api::conditions::{Reason, truncated};
use api::dataplane::Node;
use jiff::Timestamp;
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use operator_core::plan::{Plan, Step, Target};
use operator_core::run_engine::Run;
use operator_core::run_engine::host_guests::with_look;
use operator_core::run_engine::host_key::HostKeyTrust;
use operator_core::run_engine::last_run::{
    ATTEMPTS, Holds, LastAttempt, LastRun, LastRunState, newest, superseded,
};
use operator_core::run_engine::layout::Layout;
use operator_core::run_engine::outcome::FailureReason;
use operator_core::run_engine::run_template::{
    AnsibleOptions, DeploymentOptions, Play, RunTemplate,
};
use operator_core::run_engine::service_sequence::NeededRun;

use crate::reasons;

/// Annotation on a node, or on a role or node set for all its hosts: their machines are given back
/// without this look.
pub const SKIP_CLEANUP: &str = "dataplane.openstack.org/skip-cleanup";
/// Label of these runs, with the UID of the object that describes the host.
pub const LAST_LOOK: &str = "dataplane.openstack.org/last-look";
/// The service name and the service type of these runs.
pub const SERVICE: &str = "last-look";

const PLAY: &str = include_str!("../../plays/last-look.yaml");
/// Maximum length of the cause of a failed attempt.
const CAUSE_LIMIT: usize = 400;

/// A host whose machine is to be given back.
pub struct LeavingHost<'a> {
    /// Its name in the inventory.
    pub name: &'a str,
    /// Whether its address is known.
    pub has_address: bool,
    /// Hash of what all attempts have in common: a change, as of what was refused, is tried at once.
    pub identity: String,
    /// Name and resource version of the ssh Secret.
    pub ssh: (&'a str, &'a str),
    /// What is trusted as its own key.
    pub trust: HostKeyTrust,
    /// Whether the provisioner answers and reads the power of its machine as off.
    pub is_off: bool,
    /// The command to give the machine back without this look.
    pub skip: String,
}

/// What the look at a host has come to.
pub enum Look {
    /// The machine may be given back.
    Over,
    /// It may not yet.
    Held(Held),
}

/// What holds a machine.
pub struct Held {
    /// Why, in a word.
    pub reason: &'static Reason,
    /// The cause and the next step.
    pub message: String,
    /// The attempt that is due.
    pub due: Option<Due>,
    /// When the next attempt is due.
    pub retry_at: Option<Timestamp>,
}

/// An attempt that is due.
pub struct Due {
    /// The attempt.
    pub need: NeededRun,
    /// Whether the last one failed because of the host's own key.
    pub was_key_refused: bool,
}

/// Returns the template of a run of the look at the host of an object, which needs no collection;
/// `None` while the object has no UID. The caller adds what the object has runs start with.
pub fn template<K>(object: &K, layout: Layout) -> Option<RunTemplate>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Some(RunTemplate {
        parent: Target::of(object),
        play: Play::Contents(with_look(PLAY)),
        service_type: SERVICE.to_owned(),
        image: None,
        env: Vec::new(),
        extra_mounts: Vec::new(),
        network_attachments: Vec::new(),
        dns_config: None,
        layout,
        sources: Vec::new(),
        options: AnsibleOptions::default(),
        fact_variables: Vec::new(),
        extra_vars: BTreeMap::new(),
        template_vars: BTreeMap::new(),
        deployed: DeploymentOptions {
            labels: BTreeMap::from([(LAST_LOOK.to_owned(), object.uid()?)]),
            ..DeploymentOptions::default()
        },
    })
}

/// Returns whether a run is one of the look at the host of an object.
pub fn is_of(run: &AnsibleEe, uid: Option<&String>) -> bool {
    uid.is_some() && run.labels().get(LAST_LOOK) == uid
}

/// Returns whether the user lets the machines of an object go without this look.
pub fn is_skipped(object: &impl ResourceExt) -> bool {
    object.annotations().get(SKIP_CLEANUP).is_some_and(|it| it == "true")
}

/// Returns whether the user lets the machine of a host go without this look: by its node, or else by
/// its role or node set.
pub fn is_host_skipped<G: ResourceExt>(node: Option<&Node>, group: Option<&G>) -> bool {
    let own = node.and_then(|it| it.annotations().get(SKIP_CLEANUP));
    own.or_else(|| group?.annotations().get(SKIP_CLEANUP)).is_some_and(|it| it == "true")
}

/// Returns the command to give back the machines of an object without this look; `object` is
/// `resource/name`.
pub fn skip_command(namespace: &str, object: &str) -> String {
    format!("kubectl annotate --overwrite -n {namespace} {object} {SKIP_CLEANUP}=true")
}

impl Held {
    /// Adds the run that is due, as `run` makes it, and the deletions of old runs of the host.
    pub fn add(
        self,
        plan: &mut Plan,
        runs: &[Run<'_>],
        name: &str,
        now: Timestamp,
        run: impl FnOnce(Due) -> Option<Step>,
    ) {
        plan.steps.extend(superseded(runs, name));
        if let Some(at) = self.retry_at {
            plan.requeue_at(at, now);
        }
        plan.steps.extend(self.due.and_then(run));
    }
}

impl LeavingHost<'_> {
    /// Evaluates the attempts; `runs` are those of the look at this host, and their only record.
    pub fn evaluate(&self, runs: &[Run<'_>], now: Timestamp) -> Look {
        let recorded: Vec<_> = newest((SERVICE, self.name), runs, None).into_iter().collect();
        let last = LastRun {
            service: SERVICE,
            name: self.name,
            identity: &self.identity,
            recorded: &recorded,
            ssh: self.ssh,
            trust: &self.trust,
            holds: Holds::All,
        };
        let attempt = last.evaluate(runs, now);
        // A machine that is off runs no guest; guests that were found there may still be on its disks.
        let is_given_up = attempt.n_failed >= ATTEMPTS && attempt.held_by.is_none() && self.is_off;
        if is_given_up || matches!(attempt.state, LastRunState::Done) {
            return Look::Over;
        }
        let (reason, message) = self.explained(&attempt, runs, &last.cause(&attempt, runs));
        let (due, retry_at) = match attempt.state {
            LastRunState::Due { need, was_key_refused } => {
                (Some(Due { need, was_key_refused }), None)
            }
            LastRunState::RetryAt(at) => (None, Some(at)),
            LastRunState::Done
            | LastRunState::Spent
            | LastRunState::Waits(_)
            | LastRunState::InRun(_) => (None, None),
        };
        Look::Held(Held { reason, message, due, retry_at })
    }

    /// Returns what holds the machine, with the next step.
    fn explained(
        &self,
        attempt: &LastAttempt,
        runs: &[Run<'_>],
        cause: &str,
    ) -> (&'static Reason, String) {
        let (name, skip) = (self.name, &self.skip);
        if let Some(trouble) = self.trouble(&attempt.state, runs) {
            let text = format!(
                "The machine of host {name} is not given back, because no run can look for guests \
                 there: {trouble}. To give it back without: {skip}"
            );
            return (&reasons::machines::MACHINE_HELD, text);
        }
        if attempt.services.first().is_none_or(|it| it.reason.is_none()) {
            let waiting = if let LastRunState::Waits(what) = &attempt.state { what } else { "" };
            let waits =
                if waiting.is_empty() { String::new() } else { format!(" It waits: {waiting}.") };
            let text = format!(
                "A run looks for guests on host {name} before its machine is given back.{waits} To \
                 give it back without: {skip}"
            );
            return (&reasons::machines::LOOKING_FOR_GUESTS, text);
        }
        let cause = truncated(cause.trim_end_matches('.'), CAUSE_LIMIT);
        let way_on = match attempt.held_by {
            Some(FailureReason::GuestsOnHost) => {
                "Migrate or delete them; `virsh list --all` and `ps` on the host show them."
            }
            Some(_) => "Give the host back to its owner.",
            None => {
                "Mend the cause; or, if the host is gone, switch its machine off, with Ironic in \
                 maintenance: once three attempts have failed, a machine that its provisioner reads \
                 as off is given back."
            }
        };
        let is_spent = attempt.state == LastRunState::Spent;
        let when = if is_spent { "when that is corrected" } else { "automatically" };
        let text = format!(
            "The machine of host {name} is not given back, because no run has found that there are no \
             guests: {cause}. {way_on} It is tried again {when}. To give it back without: {skip}"
        );
        (&reasons::machines::MACHINE_HELD, text)
    }

    /// Returns what keeps a run from looking, which may last longer than its time limit.
    fn trouble(&self, state: &LastRunState, runs: &[Run<'_>]) -> Option<String> {
        match state {
            LastRunState::Due { .. } if !self.has_address => {
                Some("its address is not known".to_owned())
            }
            LastRunState::InRun(run) => {
                let run = runs.iter().find(|it| it.name() == *run)?;
                let said = truncated(run.trouble()?.trim_end_matches('.'), CAUSE_LIMIT);
                Some(format!("AnsibleEE {}: {said}", run.name()))
            }
            LastRunState::Done
            | LastRunState::Spent
            | LastRunState::Waits(_)
            | LastRunState::RetryAt(_)
            | LastRunState::Due { .. } => None,
        }
    }
}
