//! The identity of a compute's host in nova: as it is recorded, and as a reading has it.

use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::service_run::RunState;
use api::dataplane::{Node, ServiceRun};
use api::nova::{Cell, ExternalCompute, RegisteredNova};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use nova_config::annotations::ACCEPT_NOVA;
use openstack_client::keystone::root_url;
use operator_core::run_engine::outcome::FailureReason;

use crate::compute_status::registration::proof;
use crate::nova::health::{HostHealth, ServiceHealth};

/// How long after a registration the same nova may show the host under UUIDs that it has made for it.
const REGISTRATION: SignedDuration = SignedDuration::from_mins(5);

/// Which nova has a host, and under which UUIDs; what is not known is not compared.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Identity {
    /// The nova.
    pub nova: Option<RegisteredNova>,
    /// The UUID of the service.
    pub service_id: Option<String>,
    /// The UUID of the compute node.
    pub compute_id: Option<String>,
}

/// What the identity of a compute's host follows from, whether the compute stays or is being deleted.
#[derive(Clone, Copy, Debug)]
pub struct IdentitySources<'a> {
    /// The compute.
    pub compute: &'a ExternalCompute,
    /// The node, or `None` when it does not exist.
    pub node: Option<&'a Node>,
    /// The cell, or `None` when it does not exist.
    pub cell: Option<&'a Cell>,
    /// The runs of the compute.
    pub runs: &'a [Arc<AnsibleEe>],
    /// What nova's API says of the host, or `None` where that API is not read.
    pub health: Option<&'a HostHealth>,
    /// Whether nova was read twice since a deployment by others has ended well; see
    /// [`Self::is_confirmed`].
    pub read_since_deployment: Option<bool>,
}

impl IdentitySources<'_> {
    /// Whether what nova has of the host by now is what its last deployment has registered. Of one by the
    /// operator itself, its own check says so.
    pub fn is_confirmed(&self) -> bool {
        !self.compute.is_observed() || self.read_since_deployment == Some(true)
    }
}

/// How a reading stands to a recorded identity.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Agreement {
    /// Nothing differs.
    Same,
    /// The host has the same UUIDs at another URL or in another region: the nova is the same.
    Moved,
    /// The nova has another URL or region, and what it has of the host is not known.
    Unread,
    /// The host has another UUID, or a nova of another URL or region does not have it.
    Other,
}

/// What lets a compute take another identity than the recorded one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Consent {
    /// Nothing does.
    None,
    /// A deployment has just registered it: it may have other UUIDs in the same nova.
    Registration,
    /// The user's annotation on the cell, for the nova that was read.
    User,
}

impl Identity {
    /// Returns the recorded identity of a compute.
    pub fn recorded(compute: &ExternalCompute) -> Self {
        let status = compute.status.clone().unwrap_or_default();
        let (service_id, compute_id) = (status.service_id, status.compute_id);
        Self { nova: status.nova, service_id, compute_id }
    }

    /// Returns the identity that a reading has.
    pub fn read(health: &HostHealth) -> Self {
        let HostHealth { nova, service_id, compute_id, .. } = health.clone();
        Self { nova, service_id, compute_id }
    }

    /// Whether a nova has another URL or region than the recorded one.
    pub fn is_elsewhere(&self, nova: Option<&RegisteredNova>) -> bool {
        differ(self.nova.as_ref(), nova)
    }

    /// Returns how a reading stands to it.
    pub fn compare(&self, health: &HostHealth) -> Agreement {
        let found = Self::read(health);
        let is_other = differ(self.service_id.as_ref(), found.service_id.as_ref())
            || differ(self.compute_id.as_ref(), found.compute_id.as_ref());
        match health.service {
            _ if is_other => Agreement::Other,
            _ if !self.is_elsewhere(health.nova.as_ref()) => Agreement::Same,
            _ if self.is_shown_by(&found) => Agreement::Moved,
            _ if found.has_ids() && !self.has_ids() => Agreement::Other,
            ServiceHealth::NotFound => Agreement::Other,
            ServiceHealth::Pending
            | ServiceHealth::ApiFails
            | ServiceHealth::CellNotAnswering
            | ServiceHealth::Up { .. }
            | ServiceHealth::Down { .. } => Agreement::Unread,
        }
    }

    /// Whether it has a UUID.
    pub const fn has_ids(&self) -> bool {
        self.service_id.is_some() || self.compute_id.is_some()
    }

    /// Whether a reading, in which no UUID differs, has one of the recorded UUIDs.
    const fn is_shown_by(&self, found: &Self) -> bool {
        (self.service_id.is_some() && found.service_id.is_some())
            || (self.compute_id.is_some() && found.compute_id.is_some())
    }

    /// Returns what is to be recorded after a reading: what it adds, where it agrees, and another
    /// identity only with a consent.
    #[must_use]
    pub fn after(&self, health: &HostHealth, consent: Consent) -> Self {
        let found = Self::read(health);
        let is_elsewhere = self.is_elsewhere(health.nova.as_ref());
        let takes = match consent {
            Consent::None => false,
            Consent::Registration => self.nova.is_some() && !is_elsewhere,
            Consent::User => true,
        };
        let is_shown = self.is_shown_by(&found) || (found.has_ids() && !self.has_ids());
        match self.compare(health) {
            Agreement::Same | Agreement::Moved if is_shown => Self {
                nova: found.nova.or_else(|| self.nova.clone()),
                service_id: self.service_id.clone().or(found.service_id),
                compute_id: self.compute_id.clone().or(found.compute_id),
            },
            // A host that is not mapped yet has its compute node all the same.
            Agreement::Other if takes && !is_elsewhere => {
                Self { compute_id: found.compute_id.or_else(|| self.compute_id.clone()), ..found }
            }
            Agreement::Other if takes => found,
            Agreement::Same | Agreement::Moved | Agreement::Unread | Agreement::Other => {
                self.clone()
            }
        }
    }

    /// Returns its UUIDs in the words of a message; empty where none is known.
    pub fn words(&self) -> String {
        let id = |what: &str, id: &Option<String>| Some(format!("{what} {}", id.as_ref()?));
        let ids = [id("service", &self.service_id), id("compute node", &self.compute_id)];
        ids.into_iter().flatten().collect::<Vec<_>>().join(" and ")
    }
}

/// Whether both are known and not the same.
fn differ<T: PartialEq>(recorded: Option<&T>, found: Option<&T>) -> bool {
    recorded.is_some() && found.is_some() && recorded != found
}

/// Returns what lets a compute with these services take another identity from a reading.
pub fn consent(
    of: IdentitySources<'_>,
    services: &[ServiceRun],
    health: &HostHealth,
    now: Timestamp,
) -> Consent {
    let accepted = of.cell.and_then(|it| it.annotations().get(ACCEPT_NOVA));
    let is_accepted = |it: &String| health.nova.as_ref().is_some_and(|nova| names(it, nova));
    if accepted.is_some_and(is_accepted) {
        return Consent::User;
    }
    let attempt = proof(of.compute, services).filter(|it| registers(it));
    let is_new = attempt.is_some_and(|it| now.duration_since(it.since.0) < REGISTRATION);
    if is_new && of.is_confirmed() { Consent::Registration } else { Consent::None }
}

/// Whether the newest attempt to register has found that nova-compute reports: also where placement
/// then has its name under another UUID, which is freed for the one that it has now.
fn registers(run: &ServiceRun) -> bool {
    let has_own = run.reason.as_deref() == Some(FailureReason::ProviderNameTaken.as_str());
    run.state == RunState::Succeeded || has_own
}

/// Whether the annotation names a nova: the URL of its Keystone, in any spelling, and its region.
fn names(annotation: &str, nova: &RegisteredNova) -> bool {
    let parts = annotation.trim().split_once(' ');
    parts.is_some_and(|(url, region)| {
        root_url(url) == nova.keystone_auth_url && region.trim() == nova.region
    })
}

/// Returns the annotation that names a nova, as one word of a shell.
pub fn annotation(nova: &RegisteredNova) -> String {
    let text = format!("{ACCEPT_NOVA}={} {}", nova.keystone_auth_url, nova.region);
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
