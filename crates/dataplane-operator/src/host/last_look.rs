//! The last look at a host before its machine is given back: a run looks for guests there.

use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::baremetal::BaremetalSet;
use api::conditions::{Reason, truncated};
use api::dataplane::{HostMachine, Node};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::hash;
use operator_core::plan::{Plan, Step, Target};
use operator_core::run_engine::Run;
use operator_core::run_engine::host_guests::with_look;
use operator_core::run_engine::host_key::recorded_trust;
use operator_core::run_engine::last_run::{
    self, ATTEMPTS, Holds, LastAttempt, LastRun, LastRunState, newest, superseded,
};
use operator_core::run_engine::layout::Layout;
use operator_core::run_engine::outcome::FailureReason;
use operator_core::run_engine::run_template::{
    DeploymentOptions, HostConnection, Play, RunTemplate,
};
use operator_core::run_engine::service_sequence::NeededRun;
use operator_core::run_engine::ssh_secret::SshSecret;
use operator_runtime::source_cache::Digests;

use crate::annotations::SKIP_CLEANUP;
use crate::host::machines::provisioning_state::answers;
use crate::labels::LAST_LOOK;
use crate::reasons;

/// The service name and the service type of these runs.
const SERVICE: &str = "last-look";

const PLAY: &str = include_str!("../../plays/last-look.yaml");
/// Maximum length of the cause of a failed attempt.
const CAUSE_LIMIT: usize = 400;

/// A host whose machine is to be given back: which attempts it needs is evaluated here alike for the
/// hosts of roles and of node sets.
pub struct LeavingHost<'a> {
    /// Its node, which has its name in the inventory. The runs belong to the node, and go with it.
    pub node: &'a Node,
    /// The record of its machine.
    pub machine: Option<&'a HostMachine>,
    /// Whether the provisioner answers and reads the power of its machine as off.
    pub is_off: bool,
    /// The address at which runs reach it, as far as it is known.
    pub address: Option<String>,
    /// Its ssh Secret: the name, and the digests where it exists.
    pub ssh: (String, Option<&'a Digests>),
    /// Its runs, with what runs of its services start with.
    pub template: RunTemplate,
}

/// What holds a machine.
pub struct Held {
    /// Why, in a word.
    pub reason: &'static Reason,
    /// The cause and the next step.
    pub message: String,
}

/// Returns the template of a run of the look at the host of a node, which needs no collection. The
/// caller adds what runs of the host's services start with.
pub fn template(node: &Node, layout: Layout) -> RunTemplate {
    let labels = node.uid().map(|it| (LAST_LOOK.to_owned(), it)).into_iter().collect();
    RunTemplate {
        deployed: DeploymentOptions { labels, ..DeploymentOptions::default() },
        ..RunTemplate::of(Target::of(node), Play::Contents(with_look(PLAY)), SERVICE, layout)
    }
}

/// Returns whether the provisioner of a set answers and reads the power of a host's machine as off.
pub fn is_off(set: &BaremetalSet, host: &str) -> bool {
    answers(set) && set.host_status(host).is_some_and(|it| it.powered_off)
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

impl LeavingHost<'_> {
    /// Adds the run that is due, and the deletions of old runs.
    pub fn add(&self, plan: &mut Plan, looks: &[Arc<AnsibleEe>], now: Timestamp) {
        let runs = self.runs(looks);
        let Some((attempt, _)) = self.attempt(&runs, now) else { return };
        plan.steps.extend(superseded(&runs, &self.node.name_any()));
        match attempt.state {
            LastRunState::Due { need, was_key_refused } => {
                plan.steps.extend(self.run(need, was_key_refused));
            }
            LastRunState::RetryAt(at) => plan.requeue_at(at, now),
            LastRunState::Done
            | LastRunState::Spent
            | LastRunState::Waits(_)
            | LastRunState::InRun(_) => {}
        }
    }

    /// Returns what holds the machine; `None` where it may be given back.
    pub fn held(&self, looks: &[Arc<AnsibleEe>], now: Timestamp) -> Option<Held> {
        let runs = self.runs(looks);
        let (attempt, cause) = self.attempt(&runs, now)?;
        let (reason, message) = self.explained(&attempt, &runs, &cause);
        Some(Held { reason, message })
    }

    /// Returns the last attempt and why it has failed; `None` where the machine may be given back. The
    /// runs are the only record of the attempts.
    fn attempt(&self, runs: &[Run<'_>], now: Timestamp) -> Option<(LastAttempt, String)> {
        let (name, ssh) = (self.node.name_any(), self.ssh());
        let recorded: Vec<_> = newest((SERVICE, &name), runs, None).into_iter().collect();
        let last = LastRun {
            service: SERVICE,
            name: &name,
            identity: &self.identity(),
            recorded: &recorded,
            ssh: (ssh.name, ssh.version),
            trust: &recorded_trust(self.node),
            holds: Holds::All,
        };
        let attempt = last.evaluate(runs, now);
        // A machine that is off runs no guest; guests that were found there may still be on its disks.
        let is_given_up = attempt.n_failed >= ATTEMPTS && attempt.held_by.is_none() && self.is_off;
        let is_over = is_given_up || attempt.state == LastRunState::Done;
        let cause = last.cause(&attempt, runs);
        (!is_over).then_some((attempt, cause))
    }

    /// Hash of what all attempts have in common: a change, as of what was refused, is tried at once.
    fn identity(&self) -> String {
        let it = &self.template;
        let copied = (&it.env, &it.extra_mounts, &it.network_attachments, &it.dns_config);
        let installation = self.machine.map(|it| &it.installation);
        hash::digest(&(SERVICE, self.node.uid(), installation, copied))
    }

    fn ssh(&self) -> SshSecret<'_> {
        Digests::ssh_secret(&self.ssh.0, self.ssh.1)
    }

    /// Returns the runs of the look at this host.
    fn runs<'a>(&self, looks: &'a [Arc<AnsibleEe>]) -> Vec<Run<'a>> {
        let uid = self.node.uid();
        let is_own =
            |it: &&Arc<AnsibleEe>| uid.is_some() && it.labels().get(LAST_LOOK) == uid.as_ref();
        looks.iter().filter(is_own).filter_map(|it| Run::of(it)).collect()
    }

    /// Returns the run of an attempt; `None` while the host's address is not known.
    fn run(&self, need: NeededRun, was_key_refused: bool) -> Option<Step> {
        let (address, trust) = (self.address.clone()?, recorded_trust(self.node));
        let connection = HostConnection::new(address, self.ssh(), &trust, was_key_refused);
        last_run::step(&self.template, &self.node.name_any(), need, connection)
    }

    /// Returns what holds the machine, with the next step.
    fn explained(
        &self,
        attempt: &LastAttempt,
        runs: &[Run<'_>],
        cause: &str,
    ) -> (&'static Reason, String) {
        let name = self.node.name_any();
        let namespace = self.node.namespace().unwrap_or_default();
        let skip = skip_command(&namespace, &format!("openstackdataplanenode/{name}"));
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
            LastRunState::Due { .. } if self.address.is_none() => {
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
