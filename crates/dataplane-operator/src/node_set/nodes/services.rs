//! How far each service is on a host of a node set, as the host's node records it.

use api::dataplane::{Deployment, HostProgress, NodeSetProgress, RunState, ServiceRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use operator_core::run_engine::host_progress::{is_failing, is_untouched, to_service_runs};

use crate::deployment::service_schedule::ServiceSchedule;
use crate::node_set::deployment_history::is_partial;
use crate::node_set::observed::Observed;

/// How many services a node records.
const RECORDED: usize = 64;

/// A deployment that has begun on a host, with its records; one of some tasks alone only where it has
/// broken the host.
pub struct BegunDeployment<'a> {
    /// The deployment.
    pub deployment: &'a Deployment,
    progress: &'a NodeSetProgress,
    at: &'a HostProgress,
    /// The records of its services, without what is known from before.
    records: Vec<ServiceRun>,
}

impl<'a> BegunDeployment<'a> {
    /// Returns the deployments that have begun on a host and count for it, in the order of their
    /// creation: those that were not merged into the node set's status before, and the newest one.
    /// `since` is when its machine was installed, if that replaced another one.
    ///
    /// A partial deployment counts only where it has broken the host, as for the host's state.
    pub fn begun(seen: &'a Observed, host: &str, since: Option<Timestamp>) -> Vec<Self> {
        let created = |it: &Deployment| it.creation_timestamp().map(|it| it.0);
        let begun = seen.deployments.iter().filter_map(|it| {
            let progress = it.progress_of(&seen.set)?;
            let at = progress.hosts.get(host).filter(|it| !is_untouched(it))?;
            let is_broken = it.has_ended() && !progress.is_done_on(at);
            (!is_partial(&it.spec) || is_broken).then_some((&**it, progress, at))
        });
        let mut begun: Vec<(&Deployment, &NodeSetProgress, &HostProgress)> =
            begun.filter(|(it, ..)| since.is_none() || created(it) >= since).collect();
        begun.sort_by_key(|(it, ..)| (created(it), it.name_any()));
        let newest = begun.pop();
        begun.retain(|(it, ..)| !is_settled(it, seen));
        let all = begun.into_iter().chain(newest);
        all.map(|(it, progress, at)| Self::of(seen, host, it, progress, at)).collect()
    }

    fn of(
        seen: &Observed,
        host: &str,
        deployment: &'a Deployment,
        progress: &'a NodeSetProgress,
        at: &'a HostProgress,
    ) -> Self {
        let set = seen.set.name_any();
        let desired = ServiceSchedule::of(deployment, &[], &set, progress).desired;
        let text = is_failing(at).then(|| failure_text(deployment, &set, host));
        let records = to_service_runs(host, &desired, Some(at), &[], text.as_deref());
        Self { deployment, progress, at, records }
    }

    /// Returns the record of the service that fails or has failed in this deployment.
    pub fn failed<'b>(&self, services: &'b [ServiceRun]) -> Option<&'b ServiceRun> {
        services.iter().find(|it| it.reason.is_some() && self.has(it))
    }

    fn has(&self, record: &ServiceRun) -> bool {
        self.records.iter().any(|it| it.name == record.name && it.hash == record.hash)
    }

    fn is_over(&self) -> bool {
        self.deployment.has_ended() || self.progress.is_done_on(self.at)
    }

    /// Returns whether what is recorded says enough: while the deployment goes on, only its begin and
    /// each failure are recorded, and not each service.
    fn is_recorded(&self, recorded: &[ServiceRun]) -> bool {
        let failure = |services| {
            let it: Option<&ServiceRun> = self.failed(services);
            it.map(|it| (it.name.clone(), it.failures, it.reason.clone(), it.message.clone()))
        };
        let has_begun = recorded.iter().any(|it| self.has(it));
        has_begun && !self.is_over() && failure(recorded) == failure(&self.records)
    }

    /// Returns the records of the host with how this deployment has ended, which is not the newest one:
    /// what a newer one has recorded stays.
    pub fn ended_in(&self, recorded: Vec<ServiceRun>, now: Timestamp) -> Vec<ServiceRun> {
        if !self.is_over() {
            return recorded;
        }
        let present = |known: &ServiceRun| {
            self.records.iter().find(|it| it.name == known.name && it.hash == known.hash)
        };
        let ended = |known: ServiceRun| match present(&known) {
            Some(present) => self.following(present, Some(&known), now),
            None => known,
        };
        recorded.into_iter().map(ended).collect()
    }

    /// Returns the records of the host: those of this deployment, and what is recorded of other
    /// services, in the order of the node set. Beside a deployment that was merged before, a newer one
    /// that is gone may have left its own.
    pub fn services(
        &self,
        seen: &Observed,
        recorded: &[ServiceRun],
        now: Timestamp,
    ) -> Vec<ServiceRun> {
        if self.is_recorded(recorded) {
            return recorded.to_vec();
        }
        let is_settled = is_settled(self.deployment, seen);
        let merged = |present: &ServiceRun| {
            let known = recorded.iter().find(|it| it.name == present.name);
            match known.filter(|it| is_settled && it.hash != present.hash) {
                Some(newer) => newer.clone(),
                None => self.following(present, known, now),
            }
        };
        let mut services: Vec<ServiceRun> = self.records.iter().map(merged).collect();
        let is_other = |it: &&ServiceRun| self.records.iter().all(|own| own.name != it.name);
        services.extend(recorded.iter().filter(is_other).cloned());
        let listed = &seen.set.spec.services;
        services
            .sort_by_key(|it| listed.iter().position(|name| *name == it.name).unwrap_or(RECORDED));
        services.truncate(RECORDED);
        services
    }

    /// Returns a record with what the progress of a deployment does not keep.
    fn following(
        &self,
        present: &ServiceRun,
        known: Option<&ServiceRun>,
        now: Timestamp,
    ) -> ServiceRun {
        let mut record = present.clone();
        let same = known.filter(|it| it.hash == record.hash);
        if record.state == RunState::Succeeded {
            record.attempt = same.map_or(1, |it| it.attempt);
        }
        if record.deployed_hash.is_none() || is_partial(&self.deployment.spec) {
            record.deployed_hash = known.and_then(|it| it.deployed_hash.clone());
        }
        if record.since.0 == Timestamp::UNIX_EPOCH {
            let same = same.filter(|it| it.state == record.state);
            record.since = same.map_or(Time(now), |it| it.since.clone());
        }
        record
    }
}

/// Returns whether the result of a deployment was merged into the node set's status before.
pub fn is_settled(deployment: &Deployment, seen: &Observed) -> bool {
    let uid = deployment.uid().unwrap_or_default();
    seen.set.status.as_ref().is_some_and(|it| it.settled_deployments.contains(&uid))
}

/// Returns what the deployment says of a failure; it has the messages of the first hosts alone.
fn failure_text(deployment: &Deployment, set: &str, host: &str) -> String {
    let mut reported = deployment.status.iter().flat_map(|it| &it.failures);
    let own = reported.find(|it| it.node_set == set && it.host == host);
    own.map_or_else(
        || {
            format!(
                "OpenStackDataPlaneDeployment {} failed on this host; the output of its run has the \
                 cause.",
                deployment.name_any()
            )
        },
        |it| it.message.clone(),
    )
}
