//! What the result of a run means for one host: failure reason, message and whether it is retried.

use api::ansibleee::{AnsibleEeStatus, HostFailure, HostKeyProblem, HostOutcome};
use api::conditions::{ConditionDraft, Reason, Severity};
use api::dataplane::service_run::ServiceRun;

use crate::host_identity;
use crate::reasons;
use crate::run_engine::host_key::{HostKey, accept_command};
use crate::run_engine::retry::Retries;
use crate::run_engine::run::Run;
use crate::run_engine::{host_guests, host_owner};

/// Declares [`FailureReason`]: each with the reason of conditions that report it, which is a warning
/// if it heals, else an error; with what a message says of the host; and, unless only the cause itself
/// tells, with what the user can do about it.
macro_rules! failure_reasons {
    ($($(#[$about:meta])+ $name:ident => $reason:ident, $what:literal $(, $help:literal)?;)+) => {
        /// Why an attempt failed.
        #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
        pub enum FailureReason {
            $($(#[$about])+ $name,)+
        }

        impl FailureReason {
            /// All reasons, in the order of the docs.
            pub const ALL: [Self; [$(Self::$name),+].len()] = [$(Self::$name),+];

            /// Returns the reason of conditions that report it.
            pub const fn reason(self) -> &'static Reason {
                match self {
                    $(Self::$name => &reasons::$reason,)+
                }
            }

            /// Returns what a message says of the host, and what the user can do.
            const fn texts(self) -> (&'static str, &'static str) {
                match self {
                    $(Self::$name => ($what, concat!($($help)?)),)+
                }
            }
        }
    };
}

failure_reasons! {
    /// No ssh connection to the host.
    HostUnreachable => HOST_UNREACHABLE, "cannot be reached",
        "Check that the host is up and that its ansibleHost and ansiblePort are right";
    /// The host refused the ssh key.
    KeyRefused => KEY_REFUSED, "refuses the ssh key",
        "Put a key that the host accepts for ansibleUser into ssh-privatekey of the ssh Secret";
    /// The host showed another host key than the known one, or none is known.
    HostKeyMismatch => HOST_KEY_MISMATCH, "shows a host key that is not the known one",
        "Compare with the host's own key, then correct known_hosts of the ssh Secret";
    /// The host records another owner than the object that owns the run.
    HostNotOwned => HOST_NOT_OWNED, "was not touched",
        "Correct the address, or delete the object that has the host; a file that names no owner \
         may be removed from the host";
    /// Guests are on the host, which what was to be done there would end or leave behind.
    GuestsOnHost => GUESTS_ON_HOST, "has guests", "Migrate or delete them";
    /// The host has lost its recorded identity.
    IdentityMissing => IDENTITY_MISSING, "has lost its identity",
        "It is restored once the host has no servers";
    /// Something else is registered under the name of the host.
    ProviderNameTaken => PROVIDER_NAME_TAKEN, "has no resource provider of its own",
        "That provider is to be deleted once the host has no servers";
    /// The pod was evicted, preempted or killed, or its worker went away.
    PodEvicted => POD_EVICTED, "has no result: the runner pod was evicted or killed";
    /// The runner image cannot be pulled.
    ImagePullFailed => IMAGE_PULL_FAILED, "was not touched: the runner image cannot be pulled",
        "Correct the image's name or its registry";
    /// A Secret, ConfigMap or key that the pod mounts is missing.
    InputMissing => INPUT_MISSING, "was not touched: an input of the runner pod is missing",
        "Create what is missing";
    /// A task failed on the host.
    TaskFailed => TASK_FAILED, "failed";
    /// The host has another identity than the recorded one.
    IdentityMismatch => IDENTITY_MISMATCH, "has another identity than the recorded one";
    /// The service refuses to start without an identity.
    IdentityNotFound => IDENTITY_NOT_FOUND, "has no identity";
    /// The service refuses to start, because its host is registered under another identity.
    DuplicateComputeNode => DUPLICATE_COMPUTE_NODE, "has a compute node under another identity";
    /// No play of the playbook reached the host.
    NoHostMatched => NO_HOST_MATCHED, "was not reached by any play";
    /// Ansible could not read the playbook, the inventory or the options.
    InvalidPlaybook => INVALID_PLAYBOOK, "was not touched: the playbook is invalid";
    /// The run cannot become a Job: the operator or the API server rejects its spec.
    InvalidSpec => INVALID_SPEC, "was not touched: its run is refused";
    /// The run took longer than allowed.
    DeadlineExceeded => DEADLINE_EXCEEDED, "has no result: the run took longer than allowed";
    /// The run ended, or was deleted, without a result for the host.
    ResultUnknown => RESULT_UNKNOWN, "has no result";
}

impl FailureReason {
    /// Returns the CamelCase word used in conditions, Events and metrics.
    pub fn as_str(self) -> &'static str {
        self.reason().word
    }

    /// Returns the reason of that word; unknown words, as from another release, are
    /// `ResultUnknown`.
    pub fn parse(word: &str) -> Self {
        Self::ALL.into_iter().find(|it| it.as_str() == word).unwrap_or(Self::ResultUnknown)
    }

    /// Returns whether it is retried without the user, with a growing backoff.
    pub fn heals_by_itself(self) -> bool {
        self.reason().severity == Some(Severity::Warning)
    }

    /// Returns whether a change of the ssh Secret causes an immediate retry.
    pub fn heals_with_ssh_secret(self) -> bool {
        matches!(self, Self::KeyRefused | Self::HostKeyMismatch)
    }

    /// Returns whether another attempt would end the same way, because the run itself was rejected.
    pub fn is_final(self) -> bool {
        self == Self::InvalidSpec
    }

    /// Returns what the user does next, after the attempt with that number.
    fn next_step(self, retries: Retries<'_>, attempt: i64) -> String {
        let again = match retries {
            Retries::Healing(redeploy) if !self.heals_by_itself() => {
                return format!("It runs again when an input changes, or with: {redeploy}");
            }
            Retries::Limited { way_on, .. } if self.is_final() => {
                format!("another attempt would be refused as well, so {way_on}.")
            }
            Retries::Limited { attempts, way_on } if attempt >= attempts => {
                format!("that was the last of {attempts} attempts, so then {way_on}.")
            }
            Retries::Healing(_) | Retries::Limited { .. } => "it is retried automatically.".into(),
        };
        match self.texts().1 {
            "" => format!("{}{}", again[..1].to_uppercase(), &again[1..]),
            help => format!("{help}; {again}"),
        }
    }
}

/// Returns the condition of that type for the first service whose last attempt failed: a warning,
/// because another attempt is under way. `None` if none failed.
pub fn last_failure(type_: &str, services: &[ServiceRun]) -> Option<ConditionDraft> {
    let failed = services.iter().find(|it| it.reason.is_some())?;
    let reason = FailureReason::parse(failed.reason.as_deref()?).reason();
    let message = failed.message.clone().unwrap_or_default();
    Some(reason.condition(type_, message).with_severity(Severity::Warning))
}

/// The result of an attempt on one host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The service was deployed.
    Succeeded,
    /// The user's own limit excluded the host: nothing was done there.
    LeftOut,
    /// It failed.
    Failed {
        /// Why.
        reason: FailureReason,
        /// Object, cause and next step.
        message: String,
    },
}

/// Commands and retry rules for the messages to the user.
#[derive(Clone, Copy, Debug)]
pub struct Remediation<'a> {
    /// Which failures are retried, and how the user requests another attempt.
    pub retries: Retries<'a>,
    /// The namespace of the host's node; `None` where no command for the node is named.
    pub namespace: Option<&'a str>,
    /// Whether the host's key is learned; otherwise the known hosts of the ssh Secret decide.
    pub is_learned: bool,
}

/// Returns what a finished run means for a host.
pub fn host_outcome(run: &Run<'_>, host: &str, remediation: Remediation<'_>) -> Outcome {
    let reason = match run.outcome(host) {
        HostOutcome::Ok => return Outcome::Succeeded,
        // A failed run might have reached this host later, so it does not count as excluded.
        HostOutcome::NotReached if run.is_partial() && run.has_succeeded() => {
            return Outcome::LeftOut;
        }
        HostOutcome::Failed => class_of_failure(run, host),
        HostOutcome::Unreachable => FailureReason::HostUnreachable,
        HostOutcome::KeyRefused => FailureReason::KeyRefused,
        HostOutcome::HostKeyMismatch => FailureReason::HostKeyMismatch,
        HostOutcome::NotReached => FailureReason::NoHostMatched,
        HostOutcome::Unknown => class_of(run.object.status.as_ref()),
    };
    Outcome::Failed { reason, message: message(run, host, reason, remediation) }
}

/// Returns reason and message for a run that was deleted before its result was recorded.
pub fn lost(seen: &ServiceRun, host: &str, retries: Retries<'_>) -> (FailureReason, String) {
    let reason = FailureReason::ResultUnknown;
    let next = reason.next_step(retries, seen.attempt);
    let (service, run) = (&seen.name, seen.run.as_deref().unwrap_or_default());
    let text = format!(
        "Host {host} has no result (service {service}, AnsibleEE {run}): the run was deleted \
         before it had reported one. {next}"
    );
    (reason, text)
}

/// Returns the reason for a failed task on a host.
fn class_of_failure(run: &Run<'_>, host: &str) -> FailureReason {
    if failure_of(run, host).is_some_and(host_owner::is_refusal) {
        return FailureReason::HostNotOwned;
    }
    if failure_of(run, host).is_some_and(host_guests::is_refusal) {
        return FailureReason::GuestsOnHost;
    }
    let of_identity = failure_of(run, host).and_then(host_identity::reason);
    of_identity.map_or(FailureReason::TaskFailed, |it| FailureReason::parse(it.word))
}

/// Returns the first task that failed on a host.
pub(super) fn failure_of<'a>(run: &Run<'a>, host: &str) -> Option<&'a HostFailure> {
    let failures = run.object.status.as_ref().map(|it| it.failures.as_slice()).unwrap_or_default();
    failures.iter().find(|it| it.host == host)
}

/// Returns the reason of a run that reported nothing about a host.
fn class_of(status: Option<&AnsibleEeStatus>) -> FailureReason {
    let word = status.and_then(|it| it.reason.as_deref()).unwrap_or_default();
    FailureReason::parse(word)
}

fn message(
    run: &Run<'_>,
    host: &str,
    reason: FailureReason,
    remediation: Remediation<'_>,
) -> String {
    let status = run.object.status.as_ref();
    let failure = failure_of(run, host);
    let cause = failure.map(|it| cause(it, reason));
    let cause = cause.or_else(|| status.and_then(run_cause)).unwrap_or_default();
    let service = &run.service;
    let name = run.name();
    let (what, _) = reason.texts();
    let cause = if cause.is_empty() { String::new() } else { format!(": {cause}") };
    let attempt = run.attempts.get(host).map_or(0, |it| it.attempt);
    let next = match (reason, remediation.namespace) {
        (FailureReason::HostKeyMismatch, Some(namespace)) if remediation.is_learned => {
            host_key_step(run, host, failure, &accept_command(namespace, host))
        }
        (FailureReason::HostNotOwned, namespace) => owner_step(failure, namespace, host),
        (FailureReason::TaskFailed, _) if failure.is_some_and(asks_for_sudo) => {
            format!("{SUDO} {}", reason.next_step(remediation.retries, attempt))
        }
        _ => reason.next_step(remediation.retries, attempt),
    };
    format!("Host {host} {what} (service {service}, AnsibleEE {name}){cause}. {next}")
}

/// Returns what the user does about a host that records another owner.
fn owner_step(failure: Option<&HostFailure>, namespace: Option<&str>, host: &str) -> String {
    let (_, help) = FailureReason::HostNotOwned.texts();
    let answer = failure.and_then(|it| host_owner::answer(&it.message));
    let Some(answer) = answer else { return format!("{help}.") };
    let command = namespace.map(|it| host_owner::take_over_command(it, host)).unwrap_or_default();
    format!("{help}. If it is to be this object's from now on: {command}{answer}")
}

/// Returns what the user does about a host whose key is learned, or is still to be learned.
fn host_key_step(run: &Run<'_>, host: &str, failure: Option<&HostFailure>, accept: &str) -> String {
    let report = run.host_key(host);
    let why = match report.and_then(|it| it.problem) {
        Some(HostKeyProblem::NoEd25519Key) => "It has no key of type ed25519, the only one learned",
        Some(HostKeyProblem::NoScanner) => "The runner image has no ssh-keyscan to learn it with",
        Some(HostKeyProblem::NoAnswer) | None => {
            let offered = report.and_then(|it| HostKey::parse(it.key.as_deref()?));
            let offered = offered.map(|it| it.fingerprint());
            let reported = || failure.and_then(|it| reported_fingerprint(&it.message));
            let fingerprint = offered.or_else(reported).unwrap_or_else(|| "SHA256:…".into());
            return format!(
                "Ask the host itself: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub. If it \
                 says the same and the change is yours: {accept}{fingerprint}"
            );
        }
    };
    format!(
        "{why}: put the host's line, as ssh-keyscan prints it and compared by you, into \
         known_hosts of the ssh Secret; it is retried automatically."
    )
}

/// Advice for a host on which the ssh user cannot use sudo without a password.
const SUDO: &str = "Let ansibleUser become root without a password: on the host, a file below \
                    /etc/sudoers.d with `USER ALL=(ALL) NOPASSWD: ALL`.";

/// Returns whether sudo asked for a password, in the words of Ansible or of sudo.
fn asks_for_sudo(failure: &HostFailure) -> bool {
    let said = ["Missing sudo password", "Incorrect sudo password", "sudo: a password is required"];
    said.iter().any(|it| failure.message.contains(it))
}

/// Returns the fingerprint in ssh's own warning about a changed key.
fn reported_fingerprint(message: &str) -> Option<String> {
    let (_, after) = message.split_once("ED25519 key sent by the remote host")?;
    let (_, after) = after.split_once("SHA256:")?;
    let is_base64 = |it: &char| it.is_ascii_alphanumeric() || "+/".contains(*it);
    let digest: String = after.chars().take_while(is_base64).collect();
    (digest.len() == 43).then(|| format!("SHA256:{digest}"))
}

/// Returns one line with what Ansible reported about a host.
fn cause(failure: &HostFailure, reason: FailureReason) -> String {
    let first = failure.gist();
    if reason != FailureReason::TaskFailed {
        return first;
    }
    format!("task '{}' at {}: {first}", failure.task, failure.path)
}

/// Returns one line with what happened to the run as a whole.
fn run_cause(status: &AnsibleEeStatus) -> Option<String> {
    let ready = api::conditions::find(&status.conditions, api::conditions::READY)?;
    Some(ready.message.trim_end_matches('.').to_owned())
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod tests;
