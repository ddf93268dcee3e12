//! Whether nova has a compute's host under the identity that was recorded when it registered, and what
//! holds where it has not.

use api::conditions::{ConditionDraft, find};
use api::dataplane::ServiceRun;
use api::nova::Cell;
use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::annotations::ACCEPT_NOVA;
use nova_config::conditions::{NOVA_API_READY, NOVA_MATCHES};
use nova_config::services::NOVA_REGISTERED;
use openstack_client::is_id;
use operator_core::finalizers::is_terminating;
use operator_core::plan::{EventDraft, Step, Write};
use operator_core::run_engine::Run;
use serde_json::Value;

use crate::compute::deploy::messages::way_to_deploy;
use crate::compute_status::host_cleaned::concluded;
use crate::compute_status::registration::{has_registered, is_recorded};
use crate::group::inherited_annotation::repeated;
use crate::nova::drain::progress::HostProgress;
use crate::nova::health::{HostHealth, ServiceHealth};
use crate::nova::identity::{Agreement, Identity, IdentitySources, annotation, consent};
use crate::reasons;

/// Returns what nova's API says of the host of a compute that has registered; `services` are its
/// records. Before that, what nova has under the name of its host is another's; and so may be the first
/// thing that is read after a deployment by others.
fn registered_health<'a>(
    of: IdentitySources<'a>,
    services: &[ServiceRun],
) -> Option<&'a HostHealth> {
    let is_registered = is_recorded(of.compute, services) || has_registered(of.compute);
    let is_known = of.is_confirmed() || Identity::recorded(of.compute).has_ids();
    of.health.filter(|_| is_registered && is_known)
}

/// Returns the identity that is to be recorded now; `services` are the records of the compute.
pub fn to_record(of: IdentitySources<'_>, services: &[ServiceRun], now: Timestamp) -> Identity {
    let mut recorded = Identity::recorded(of.compute);
    match registered_health(of, services) {
        Some(health) => {
            // What nova has under the name of the host may be another region's.
            if recorded.compute_id.is_none() && health.compute_id.is_some() {
                recorded.compute_id = reported_id(of);
            }
            recorded.after(health, consent(of, services, health, now))
        }
        None => recorded,
    }
}

/// Returns the UUID of the compute node that the newest check of the registration has found on the host;
/// `None` where no run has reported it, as of a release before.
fn reported_id(of: IdentitySources<'_>) -> Option<String> {
    let runs = of.runs.iter().filter_map(|it| Run::of(it));
    let succeeded = runs.filter(|it| it.service == NOVA_REGISTERED && it.has_succeeded());
    let newest = succeeded.max_by_key(|it| it.ended().map(|it| it.0))?;
    let report = newest.object.status.as_ref()?.report.as_deref()?;
    let report: Value = serde_json::from_str(report).ok()?;
    let id = report["compute_ids"][of.compute.spec.dataplane_node_name.as_str()].as_str()?;
    is_id(id).then(|| id.to_owned())
}

/// Returns what is reported in place of an order about the host: nothing is done in nova, and
/// nothing is stopped on the host, until nova shows the recorded identity, and as long as its cell is not
/// known. `None` where orders are given.
pub fn held(of: IdentitySources<'_>) -> Option<HostProgress> {
    let health = of.health?;
    if of.compute.spec.cell_name.is_empty() {
        return Some(HostProgress::CellUnknown);
    }
    let recorded = Identity::recorded(of.compute);
    let is_stopped =
        concluded(of.compute).is_some() && !recorded.is_elsewhere(health.nova.as_ref());
    match recorded.compare(health) {
        Agreement::Same => None,
        // Another service that appears after the stop is found and named by its removal.
        Agreement::Other if is_stopped => None,
        // It is recorded now.
        Agreement::Moved => Some(HostProgress::Pending),
        Agreement::Unread if health.service == ServiceHealth::Pending => {
            Some(HostProgress::Pending)
        }
        Agreement::Unread | Agreement::Other => {
            Some(HostProgress::OtherIdentity(cause(of, &recorded, health)))
        }
    }
}

/// Returns the condition of a compute whose host nova has under another identity than this one, which
/// is recorded now; `None` where it has not. What was reported stays until nova says more.
pub fn other_identity(of: IdentitySources<'_>, recorded: &Identity) -> Option<ConditionDraft> {
    let health = of.health?;
    match recorded.compare(health) {
        Agreement::Same | Agreement::Moved => return None,
        Agreement::Unread => {
            let before = find(of.compute.conditions(), NOVA_MATCHES);
            return before.map(ConditionDraft::repeated);
        }
        Agreement::Other => {}
    }
    let text = format!(
        "Nothing is changed in nova or taken from the host, because {}",
        cause(of, recorded, health)
    );
    Some(reasons::compute::OTHER_IDENTITY.condition(NOVA_MATCHES, text))
}

/// Returns both identities and the ways on, in sentences that begin with a small letter.
fn cause(of: IdentitySources<'_>, recorded: &Identity, health: &HostHealth) -> String {
    let (compute, cell) = (of.compute, &of.compute.spec.cell_name);
    let host = compute.host_name().unwrap_or_default();
    let found = Identity::read(health);
    let has = match found.words() {
        ids if !ids.is_empty() => format!("has host {host} as {ids}"),
        _ if health.service == ServiceHealth::NotFound => format!("has no service of host {host}"),
        _ => format!("has not said what it has of host {host}; see {NOVA_API_READY} of the cell"),
    };
    let was = match recorded.words() {
        ids if ids.is_empty() => "the compute has registered".to_owned(),
        ids => format!("the compute has registered as {ids}"),
    };
    let here = place(&found).map(|it| format!(" ({it})")).unwrap_or_default();
    let before = place(recorded).filter(|_| recorded.is_elsewhere(health.nova.as_ref()));
    let there = before.map(|it| format!(" in {it}")).unwrap_or_default();
    let ways_on = ways_on(of, recorded, health);
    format!("nova of NovaCell {cell}{here} {has}, and {was}{there}. {ways_on}")
}

/// Returns the URL and the region of a nova; `None` where they are not known.
fn place(identity: &Identity) -> Option<String> {
    let nova = identity.nova.as_ref()?;
    Some(format!("{}, region {}", nova.keystone_auth_url, nova.region))
}

/// Returns what a user does: correct the cell, deploy the compute, or take what nova has.
fn ways_on(of: IdentitySources<'_>, recorded: &Identity, health: &HostHealth) -> String {
    let IdentitySources { compute, node, cell, .. } = of;
    let is_same_nova = recorded.nova.is_some() && !recorded.is_elsewhere(health.nova.as_ref());
    let secret = cell.map(|it| it.spec.secret.as_str()).unwrap_or_default();
    let first = if !is_same_nova {
        format!(
            "If this is not the nova of the compute, correct spec.keystoneAuthURL of the NovaCell, \
             or RegionName in Secret {secret}. "
        )
    } else if is_terminating(compute) {
        String::new()
    } else {
        format!(
            "If the service is the host's own, deploy it again: {}. ",
            way_to_deploy(compute, node)
        )
    };
    let accept = health.nova.as_ref().map(|nova| {
        format!(
            "If all computes of the cell are to take what this nova has of their hosts: kubectl \
             annotate --overwrite -n {} novacell/{} {}{}",
            compute.namespace().unwrap_or_default(),
            compute.spec.cell_name,
            annotation(nova),
            cell.and_then(present_annotation).unwrap_or_default()
        )
    });
    format!("{first}{}", accept.unwrap_or_default())
}

/// Returns that the cell has the annotation with another value, in a clause after the command.
fn present_annotation(cell: &Cell) -> Option<String> {
    let present = cell.annotations().get(ACCEPT_NOVA)?;
    Some(format!(" (it is \"{}\", which counts for another nova)", repeated(present)))
}

/// Adds to the step that writes the status an Event about a compute that has another identity from now
/// on than was recorded.
pub fn noticed(mut step: Step, before: &Identity, now: &Identity) -> Step {
    if let (Write::Status { notices, .. }, Some(note)) = (&mut step.write, change(before, now)) {
        let reason = "IdentityRecorded".to_owned();
        notices.push(EventDraft { warning: false, reason, note });
    }
    step
}

/// Returns what changes of a recorded identity; `None` where it is only completed.
fn change(before: &Identity, now: &Identity) -> Option<String> {
    let has_moved = before.nova.is_some() && before.nova != now.nova;
    let is_other = (before.service_id.is_some() && before.service_id != now.service_id)
        || (before.compute_id.is_some() && before.compute_id != now.compute_id);
    let (old, new) = (place(before).unwrap_or_default(), place(now).unwrap_or_default());
    match (is_other, has_moved) {
        (false, false) => None,
        (false, true) => Some(format!(
            "The nova of the compute is the same at {new} that was at {old}: it has {}.",
            now.words()
        )),
        (true, _) => {
            let ids = |it: &Identity| match it.words() {
                ids if ids.is_empty() => "no service yet".to_owned(),
                ids => ids,
            };
            Some(format!(
                "The compute has {} at {new} from now on; it had {} at {old}.",
                ids(now),
                ids(before)
            ))
        }
    }
}
