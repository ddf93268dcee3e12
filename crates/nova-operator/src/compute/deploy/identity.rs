//! The identity of a compute's host in nova: what runs are given of it, and what holds them back.

use api::ansibleee::AnsibleEe;
use api::conditions::{ConditionDraft, Reason, find};
use api::dataplane::{RunState, ServiceRun};
use api::nova::ExternalCompute;
use nova_config::conditions::DEPLOYMENT_READY;
use nova_config::services::{NOVA, NOVA_REGISTERED, NOVA_RESTORE};
use openstack_client::is_id;
use operator_core::hash;
use operator_core::run_engine::DesiredService;
use operator_core::run_engine::outcome::FailureReason;
use serde_json::Value;

use crate::compute::deploy::messages::way_to_deploy;
use crate::compute_status::registration::recorded_proof;
use crate::nova::drain::order::{IdentityGoal, IdentityOrder};
use crate::nova::drain::progress::{HostProgress, IdentityUse, Occupied};
use crate::nova::drain::request::DrainRequest;
use crate::nova::drain::unknown::unknown;
use crate::nova::identity::IdentitySources;
use crate::reasons;

/// The variable with the recorded identity.
pub const COMPUTE_ID: &str = "edpm_nova_compute_id";
/// The variable that lets a run write the recorded identity on a host that has none.
pub const RESTORES: &str = "edpm_nova_restore_compute_id";
/// How many servers are named.
const NAMED: usize = 5;

/// Returns the digest of the identity that a host has lost, as the last deployment of its service of
/// type nova found: another one for each attempt. `None` where it missed none.
fn lost(compute: &ExternalCompute) -> Option<String> {
    let missing = [FailureReason::IdentityMissing, FailureReason::IdentityNotFound];
    let is_lost = |it: &&ServiceRun| {
        let reason = it.reason.as_deref();
        missing.iter().any(|missing| reason == Some(missing.as_str()))
    };
    let missed = recorded_proof(compute).filter(|_| compute.is_observed()).filter(is_lost)?;
    let id = compute.status.as_ref()?.compute_id.as_deref();
    Some(hash::digest(&("v1", id, &missed.hash, missed.attempt)))
}

/// Whether a run of the operator has restored the identity that a host had lost, which is to be deployed
/// since then.
fn is_restored(compute: &ExternalCompute, lost: &str) -> bool {
    let is_restored = |it: &ServiceRun| it.name == NOVA_RESTORE && it.state == RunState::Succeeded;
    compute.services().iter().any(|it| is_restored(it) && it.hash == lost)
}

/// Returns what has to be free before the compute can be deployed, as its last run found.
fn goal(compute: &ExternalCompute, lost: Option<&str>) -> Option<IdentityGoal> {
    if compute.is_observed() {
        return lost.filter(|it| !is_restored(compute, it)).map(|_| IdentityGoal::Restore);
    }
    let has_failed = |service: &str, reason: FailureReason| {
        let mut found = compute.services().iter().filter(|it| it.name == service);
        found.any(|it| it.reason.as_deref() == Some(reason.as_str()))
    };
    if has_failed(NOVA, FailureReason::IdentityMissing) {
        Some(IdentityGoal::Restore)
    } else if has_failed(NOVA_REGISTERED, FailureReason::ProviderNameTaken) {
        Some(IdentityGoal::Name)
    } else {
        None
    }
}

/// What the last run missed of the identity of a host.
#[derive(Debug)]
pub struct MissedIdentity<'a> {
    sources: IdentitySources<'a>,
    /// The UUID of the compute node of a compute that has registered; `None` where nova's API is not
    /// used, because it is not known then whether the host has servers.
    pub recorded: Option<&'a str>,
    /// The digest of the identity that a host of others has lost; `None` where it missed none.
    pub lost: Option<String>,
    /// What has to be free before the compute can be deployed; `None` where nothing was missed.
    goal: Option<IdentityGoal>,
}

impl<'a> MissedIdentity<'a> {
    /// Resolves what the last run of a compute has found.
    pub fn resolve(sources: IdentitySources<'a>, uses_nova: bool) -> Self {
        let recorded = sources.compute.status.as_ref().and_then(|it| it.compute_id.as_deref());
        let lost = lost(sources.compute);
        let goal = goal(sources.compute, lost.as_deref());
        Self { sources, recorded: recorded.filter(|it| uses_nova && is_id(it)), lost, goal }
    }

    /// Returns what is to be found out and freed, or `None` where the last run missed no identity.
    pub fn order(&self, request: &DrainRequest) -> Option<IdentityOrder> {
        let goal = self.goal?;
        let compute_id = match goal {
            IdentityGoal::Restore => self.recorded?,
            // What is recorded may be the UUID from before: nova lists the new one once it is mapped.
            IdentityGoal::Name => self.sources.health?.compute_id.as_deref()?,
        };
        let drain = match request {
            DrainRequest::Drain(drain) => Some(drain.clone()),
            DrainRequest::Absent | DrainRequest::Invalid(_) => None,
        };
        Some(IdentityOrder { compute_id: compute_id.to_owned(), goal, drain })
    }

    /// Whether a run may write the recorded identity on a host that has none: the last one missed it,
    /// and nova has neither servers nor a nova-compute that reports under the host's name.
    pub fn restores(&self, progress: Option<&HostProgress>) -> bool {
        self.goal == Some(IdentityGoal::Restore) && is_free(progress)
    }

    /// Whether the attempt that missed the identity must not be tried again yet. An attempt with other
    /// inputs may: it finds out whether the host has its identity by now.
    pub fn is_held(&self, progress: Option<&HostProgress>, desired: &[DesiredService]) -> bool {
        let is_same = |it: &DesiredService| {
            let mut records =
                self.sources.compute.services().iter().filter(|seen| seen.name == NOVA);
            it.service == NOVA && records.any(|record| it.run_hash.is(&record.hash))
        };
        self.goal == Some(IdentityGoal::Restore)
            && self.recorded.is_some()
            && !is_free(progress)
            && desired.iter().any(is_same)
    }

    /// Returns what keeps the identity of the host from being free; `None` where it is free, or the last
    /// run missed none.
    pub fn condition(&self, progress: Option<&HostProgress>) -> Option<ConditionDraft> {
        let (goal, progress) = (self.goal?, progress?);
        let host = self.sources.compute.host_name().unwrap_or_default();
        let secret = self.sources.cell.map(|it| it.spec.secret.as_str()).unwrap_or_default();
        let (reason, text) = if let HostProgress::Occupied(found) = progress
            && !found.is_empty()
        {
            (&reasons::identity::SERVERS, self.occupied(host, goal, found))
        } else if let HostProgress::Identity(found) = progress {
            used(host, found)?
        } else if let Some((_, cause)) = unknown(progress, secret) {
            let text = format!("It is unknown whether host {host} has servers, because {cause}");
            (&reasons::identity::NOT_CHECKED, text)
        } else {
            let before = find(self.sources.compute.conditions(), DEPLOYMENT_READY);
            return before.map(ConditionDraft::repeated).filter(is_of_identity);
        };
        Some(reason.condition(DEPLOYMENT_READY, text))
    }

    fn occupied(&self, host: &str, goal: IdentityGoal, found: &Occupied) -> String {
        let names = [found.all_servers().names(NAMED), found.unconfirmed.names(NAMED)];
        let what = match names {
            [servers, unconfirmed] if servers.is_empty() && unconfirmed.is_empty() => {
                "open migrations".to_owned()
            }
            [servers, unconfirmed] if servers.is_empty() => {
                format!("unconfirmed resizes or migrations of servers {unconfirmed}")
            }
            [servers, _] => format!("servers {servers}"),
        };
        match goal {
            IdentityGoal::Restore => format!(
                "Host {host} has lost its identity, and nova has {what} there, so nova-compute is not \
                 started: delete or evacuate them, or put {} into /var/lib/nova/compute_id on the host \
                 that has them and have it deployed: {}",
                self.recorded.unwrap_or_default(),
                way_to_deploy(self.sources.compute, self.sources.node)
            ),
            IdentityGoal::Name => format!(
                "Placement has a resource provider of the name of host {host} with another UUID, and \
                 nova has {what} there, so that provider is not deleted: migrate or delete them."
            ),
        }
    }
}

fn is_free(progress: Option<&HostProgress>) -> bool {
    progress == Some(&HostProgress::Identity(IdentityUse::Free))
}

/// Whether a run may restore the identity, and nova has something under the host's name by now: that
/// the name was free was found before the run waited.
pub fn is_forbidden(progress: Option<&HostProgress>, run: &AnsibleEe) -> bool {
    let restores = run.spec.extra_vars.get(RESTORES) == Some(&Value::Bool(true));
    let is_found = match progress {
        Some(HostProgress::Identity(found)) => *found != IdentityUse::Free,
        Some(HostProgress::Occupied(_) | HostProgress::OtherIdentity(_)) => true,
        _ => false,
    };
    restores && is_found
}

fn is_of_identity(draft: &ConditionDraft) -> bool {
    let all = [
        &reasons::identity::SERVERS,
        &reasons::identity::IN_USE,
        &reasons::identity::NOT_CHECKED,
        &reasons::removal::PROVIDER_KEPT,
    ];
    all.iter().any(|it| it.word == draft.reason)
}

fn used(this: &str, found: &IdentityUse) -> Option<(&'static Reason, String)> {
    let reason = &reasons::identity::IN_USE;
    match found {
        IdentityUse::Free => None,
        IdentityUse::Reporting => Some((
            reason,
            format!(
                "Host {this} has lost its identity, and a nova-compute still reports to nova under \
                 its name: stop it where it runs with `systemctl stop edpm_nova_compute`, or wait \
                 until nova finds that it is down."
            ),
        )),
        IdentityUse::OtherHost { compute_id, host } => Some((
            reason,
            format!(
                "Nova has compute node {compute_id} on host {host}, so it is not given to host \
                 {this}: correct /var/lib/nova/compute_id on host {host}."
            ),
        )),
        IdentityUse::ProviderKept { provider, message } => Some((
            &reasons::removal::PROVIDER_KEPT,
            format!(
                "Placement keeps resource provider {provider}, which has the name of host {this}: \
                 {message}. Look at it with `openstack resource provider show --allocations \
                 {provider}`."
            ),
        )),
    }
}
