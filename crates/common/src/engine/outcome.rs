//! What the result of a run means for one host: class, words and whether it is tried again.

use crate::api::ansibleee::{AnsibleEeStatus, HostFailure, HostOutcome};
use crate::engine::run::Run;

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Reason {
    /// No ssh connection to the host.
    HostUnreachable,
    /// The host refused the ssh key.
    KeyRefused,
    /// The host showed another host key than the known one, or none is known.
    HostKeyMismatch,
    /// A task failed on the host.
    TaskFailed,
    /// No play of the playbook reached the host.
    NoHostMatched,
    /// Ansible could not read the playbook, the inventory or the options.
    InvalidPlaybook,
    /// The pod was evicted, preempted or killed, or its worker went away.
    PodEvicted,
    /// The runner image cannot be pulled.
    ImagePullFailed,
    /// A Secret, ConfigMap or key that the pod mounts is missing.
    InputMissing,
    /// The run took longer than allowed.
    DeadlineExceeded,
    /// The run ended, or was deleted, without saying what happened on the host.
    ResultUnknown,
}

impl Reason {
    /// All reasons, for tables.
    pub const ALL: [Self; 11] = [
        Self::HostUnreachable,
        Self::KeyRefused,
        Self::HostKeyMismatch,
        Self::TaskFailed,
        Self::NoHostMatched,
        Self::InvalidPlaybook,
        Self::PodEvicted,
        Self::ImagePullFailed,
        Self::InputMissing,
        Self::DeadlineExceeded,
        Self::ResultUnknown,
    ];

    /// The one word used in conditions, Events and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HostUnreachable => "HostUnreachable",
            Self::KeyRefused => "KeyRefused",
            Self::HostKeyMismatch => "HostKeyMismatch",
            Self::TaskFailed => "TaskFailed",
            Self::NoHostMatched => "NoHostMatched",
            Self::InvalidPlaybook => "InvalidPlaybook",
            Self::PodEvicted => "PodEvicted",
            Self::ImagePullFailed => "ImagePullFailed",
            Self::InputMissing => "InputMissing",
            Self::DeadlineExceeded => "DeadlineExceeded",
            Self::ResultUnknown => "ResultUnknown",
        }
    }

    /// The reason of that word; a word of another version of ours counts as unknown.
    pub fn parse(word: &str) -> Self {
        Self::ALL.into_iter().find(|it| it.as_str() == word).unwrap_or(Self::ResultUnknown)
    }

    /// Whether it is tried again without a human, with growing pauses.
    pub fn heals_by_itself(self) -> bool {
        matches!(
            self,
            Self::HostUnreachable
                | Self::KeyRefused
                | Self::HostKeyMismatch
                | Self::PodEvicted
                | Self::ImagePullFailed
                | Self::InputMissing
        )
    }

    /// Whether another content of the ssh Secret is a reason to try at once.
    pub fn heals_with_ssh_secret(self) -> bool {
        matches!(self, Self::KeyRefused | Self::HostKeyMismatch)
    }

    /// What the human does next. `redeploy` is the command that asks for another attempt.
    fn next_step(self, redeploy: &str) -> String {
        match self {
            Self::HostUnreachable => {
                "Check that the host is up and that its ansibleHost and ansiblePort are right; \
                 it is tried again by itself."
                    .into()
            }
            Self::KeyRefused => "Put a key that the host accepts for ansibleUser into \
                                 ssh-privatekey of that Secret; it is tried again by itself."
                .into(),
            Self::HostKeyMismatch => {
                "Compare with the host's own key, then correct known_hosts of the ssh Secret; it \
                 is tried again by itself."
                    .into()
            }
            Self::PodEvicted => "It is tried again by itself.".into(),
            Self::ImagePullFailed => {
                "Correct the image's name or its registry; it is tried again by itself.".into()
            }
            Self::InputMissing => "Create what is missing; it is tried again by itself.".into(),
            Self::TaskFailed
            | Self::NoHostMatched
            | Self::InvalidPlaybook
            | Self::DeadlineExceeded
            | Self::ResultUnknown => {
                format!("It runs again when an input changes, or with: {redeploy}")
            }
        }
    }
}

/// What an attempt came to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It did what it should.
    Succeeded,
    /// The human's own limit left the host out: nothing was done there.
    LeftOut,
    /// It failed.
    Failed {
        /// Why.
        reason: Reason,
        /// Object, cause and next step.
        message: String,
    },
}

/// What a finished run means for a host.
pub fn of(run: &Run<'_>, host: &str, partial: bool, redeploy: &str) -> Outcome {
    let reason = match run.outcome(host) {
        HostOutcome::Ok => return Outcome::Succeeded,
        // Another host's failure does not mean that this one should have been reached.
        HostOutcome::NotReached if partial => return Outcome::LeftOut,
        HostOutcome::Failed => Reason::TaskFailed,
        HostOutcome::Unreachable => Reason::HostUnreachable,
        HostOutcome::KeyRefused => Reason::KeyRefused,
        HostOutcome::HostKeyMismatch => Reason::HostKeyMismatch,
        HostOutcome::NotReached => Reason::NoHostMatched,
        HostOutcome::Unknown => class_of(run.object.status.as_ref()),
    };
    Outcome::Failed { reason, message: message(run, host, reason, redeploy) }
}

/// What is said of a run that is gone before its result was seen.
pub fn lost(service: &str, run: &str, host: &str, redeploy: &str) -> (Reason, String) {
    let reason = Reason::ResultUnknown;
    let next = reason.next_step(redeploy);
    let text = format!(
        "Host {host} has no result (service {service}, AnsibleEE {run}): the run was deleted before \
         it had told one. {next}"
    );
    (reason, text)
}

/// The class of a run that reported nothing about a host.
fn class_of(status: Option<&AnsibleEeStatus>) -> Reason {
    let word = status.and_then(|it| it.reason.as_deref()).unwrap_or_default();
    Reason::parse(word)
}

fn message(run: &Run<'_>, host: &str, reason: Reason, redeploy: &str) -> String {
    let status = run.object.status.as_ref();
    let failures = status.map(|it| it.failures.as_slice()).unwrap_or_default();
    let cause = failures.iter().find(|it| it.host == host).map(|it| cause(it, reason));
    let cause = cause.or_else(|| status.and_then(run_cause)).unwrap_or_default();
    let service = &run.service;
    let name = run.name();
    let what = match reason {
        Reason::HostUnreachable => "cannot be reached",
        Reason::KeyRefused => "refuses the ssh key",
        Reason::HostKeyMismatch => "shows a host key that is not the known one",
        Reason::TaskFailed => "failed",
        Reason::NoHostMatched => "was not reached by any play",
        Reason::InvalidPlaybook => "was not touched: the playbook is invalid",
        Reason::PodEvicted => "has no result: the runner pod was evicted or killed",
        Reason::ImagePullFailed => "was not touched: the runner image cannot be pulled",
        Reason::InputMissing => "was not touched: an input of the runner pod is missing",
        Reason::DeadlineExceeded => "has no result: the run took longer than allowed",
        Reason::ResultUnknown => "has no result",
    };
    let cause = if cause.is_empty() { String::new() } else { format!(": {cause}") };
    let next = reason.next_step(redeploy);
    format!("Host {host} {what} (service {service}, AnsibleEE {name}){cause}. {next}")
}

/// One line for what Ansible said about a host.
fn cause(failure: &HostFailure, reason: Reason) -> String {
    let first = failure.gist();
    if reason != Reason::TaskFailed {
        return first;
    }
    format!("task '{}' at {}: {first}", failure.task, failure.path)
}

/// One line for what happened to a run as a whole.
fn run_cause(status: &AnsibleEeStatus) -> Option<String> {
    let ready = crate::conditions::find(&status.conditions, crate::conditions::READY)?;
    Some(ready.message.trim_end_matches('.').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_known_by_its_word() {
        for reason in Reason::ALL {
            assert_eq!(Reason::parse(reason.as_str()), reason);
        }
        assert_eq!(Reason::parse("Succeeded"), Reason::ResultUnknown);
    }

    #[test]
    fn what_does_not_heal_by_itself_prints_the_command_that_does() {
        for reason in Reason::ALL {
            let step = reason.next_step("kubectl annotate x");
            assert_eq!(
                step.contains("kubectl annotate x"),
                !reason.heals_by_itself(),
                "{reason:?}"
            );
        }
    }
}
