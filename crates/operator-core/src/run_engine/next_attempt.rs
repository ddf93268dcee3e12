//! The record of a service's next attempt.

use api::dataplane::service_run::{RunState, ServiceRun};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::run_engine::host::{DesiredService, Pass};
use crate::run_engine::run::Run;

impl Pass<'_> {
    /// Returns the next attempt; its number is above all earlier ones, recorded or not.
    pub(super) fn attempt(
        &self,
        desired: &DesiredService,
        seen: Option<&ServiceRun>,
    ) -> ServiceRun {
        let of_service = self.runs.iter().filter(|it| it.service == desired.service);
        let carried = of_service.filter_map(|it| Some(it.attempts.get(self.host.name)?.attempt));
        let last = carried.chain(seen.map(|it| it.attempt)).max().unwrap_or(0);
        let is_retry = seen.filter(|it| desired.run_hash.is(&it.hash));
        ServiceRun {
            name: desired.service.clone(),
            state: RunState::Pending,
            hash: desired.run_hash.text(),
            attempt: last + 1,
            run: None,
            deployed_hash: seen.and_then(|it| self.deployed_hash(it, is_retry.is_some())),
            // The failure count stays until the new inputs succeed or fail.
            failures: seen.map_or(0, |it| it.failures),
            since: Time(self.now),
            // The cause of the last failure stays visible during the retry.
            reason: is_retry.and_then(|it| it.reason.clone()),
            message: is_retry.and_then(|it| it.message.clone()),
        }
    }

    /// Returns the hash that the host is known to be deployed with when another attempt begins.
    ///
    /// A failed attempt, or one whose result stays unknown, may have changed anything. A partial run
    /// after it does not restore the host (D1). Retrying the same attempt starts from where the first
    /// try did.
    fn deployed_hash(&self, seen: &ServiceRun, is_retry: bool) -> Option<String> {
        let may_have_touched = |it: &Run<'_>| it.has_begun() && it.carries(self.host.name, seen);
        let is_known = match seen.state {
            RunState::Succeeded => true,
            // Its run may have begun and be gone.
            RunState::Pending => {
                seen.run.is_none()
                    && !self.has_begun()
                    && !self.runs.iter().copied().any(may_have_touched)
            }
            RunState::Failed => is_retry,
            RunState::Running => false,
        };
        seen.deployed_hash.clone().filter(|_| is_known)
    }
}
