//! When a failed attempt is retried.

use api::dataplane::service_run::ServiceRun;
use jiff::{SignedDuration, Timestamp};

use crate::run_engine::host::Host;
use crate::run_engine::outcome::FailureReason;
use crate::run_engine::retry::{Retries, backoff};
use crate::run_engine::run::Run;

/// Returns when the recorded failed attempt is retried.
///
/// A time in the past means at once; `None` means never.
pub(super) fn retry_at(host: &Host<'_>, seen: &ServiceRun, runs: &[Run<'_>]) -> Option<Timestamp> {
    let reason = FailureReason::parse(seen.reason.as_deref().unwrap_or_default());
    let is_tried_again = match host.retries {
        Retries::Healing(_) => reason.heals_by_itself(),
        Retries::Limited { attempts, .. } => seen.attempt < attempts && !reason.is_final(),
    };
    if !is_tried_again {
        return None;
    }
    let has_new_secret = reason.heals_with_ssh_secret() && is_ssh_secret_new(host, seen, runs);
    let has_new_key = reason == FailureReason::HostKeyMismatch && is_host_key_new(host, seen, runs);
    if has_new_secret || has_new_key {
        return Some(Timestamp::MIN);
    }
    let pause = SignedDuration::try_from(backoff(seen.failures)).unwrap_or_default();
    Some(seen.since.0.saturating_add(pause).unwrap_or(Timestamp::MAX))
}

/// Returns whether the ssh Secret differs from the one that the failed run used.
fn is_ssh_secret_new(host: &Host<'_>, seen: &ServiceRun, runs: &[Run<'_>]) -> bool {
    let (secret, version) = host.ssh_key;
    let run = runs.iter().find(|it| Some(it.name()) == seen.run);
    // A run without a version of this Secret used another Secret.
    run.is_some_and(|it| it.ssh_key_version(secret).is_none_or(|used| used != version))
}

/// Returns whether the trusted or accepted key differs from that of the failed run.
fn is_host_key_new(host: &Host<'_>, seen: &ServiceRun, runs: &[Run<'_>]) -> bool {
    let run = runs.iter().find(|it| Some(it.name()) == seen.run);
    run.is_some_and(|it| it.trusted(host.name) != host.trust.token())
}
