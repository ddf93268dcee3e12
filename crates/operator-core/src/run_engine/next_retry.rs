//! When a failed attempt is retried.

use api::dataplane::service_run::ServiceRun;
use jiff::{SignedDuration, Timestamp};

use crate::run_engine::host::Pass;
use crate::run_engine::outcome::FailureReason;
use crate::run_engine::retry::{Retries, backoff};
use crate::run_engine::run::Run;

impl Pass<'_> {
    /// Returns when the recorded failed attempt is retried.
    ///
    /// A time in the past means at once; `None` means never.
    pub(super) fn retry_at(&self, seen: &ServiceRun) -> Option<Timestamp> {
        let reason = FailureReason::parse(seen.reason.as_deref().unwrap_or_default());
        let is_tried_again = match self.host.retries {
            Retries::Healing(_) => reason.heals_by_itself(),
            Retries::Limited { attempts, .. } => seen.attempt < attempts && !reason.is_final(),
        };
        if !is_tried_again {
            return None;
        }
        let run = self.runs.iter().copied().find(|it| Some(it.name()) == seen.run);
        let has_new_secret = |it: &Run<'_>| {
            let (secret, version) = self.host.ssh_key;
            // A run without a version of this Secret used another Secret.
            it.ssh_key_version(secret).is_none_or(|used| used != version)
        };
        // Which key is trusted or accepted.
        let has_new_key = |it: &Run<'_>| it.trusted(self.host.name) != self.host.trust.token();
        let is_healed = |it: &Run<'_>| {
            reason.heals_with_ssh_secret() && has_new_secret(it)
                || reason == FailureReason::HostKeyMismatch && has_new_key(it)
        };
        if run.is_some_and(is_healed) {
            return Some(Timestamp::MIN);
        }
        let pause = SignedDuration::try_from(backoff(seen.failures)).unwrap_or_default();
        Some(seen.since.0.saturating_add(pause).unwrap_or(Timestamp::MAX))
    }
}
