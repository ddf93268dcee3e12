//! The part of a compute's removal that happens through nova's API: its host is drained before it
//! is stopped, and what nova, placement and neutron have of it is removed afterwards.

use api::conditions::{ConditionDraft, Reason, find};
use api::nova::ExternalCompute;
use kube::ResourceExt;
use nova_config::conditions::{
    AGENTS_DELETED, DRAINED, HOST_CLEANED, PLACEMENT_CLEAN, SERVICE_DELETED,
};

use crate::cleanup::messages::{host, skip};
use crate::cleanup::status::concluded;
use crate::compute::observed::Observed;
use crate::drain::condition::Drained;
use crate::drain::held;
use crate::drain::order::{Drain, DrainMode, HostOrder, Remove};
use crate::drain::progress::{
    AgentsRemoval, HostProgress, PlacementRemoval, Removal, ServiceRemoval,
};
use crate::drain::request::{DrainRequest, requested};
use crate::drain::unknown::unknown;
use crate::reasons;
use crate::registration::has_registered;

/// Whether the removal goes through nova's API; `is_skipped` is whether the user asked to let the
/// compute go without its cleanup.
///
/// A removal that began without that API ends without it, and of a compute that is not known to have
/// registered, nova may have nothing, or the records of another one.
pub fn is_by_api(seen: &Observed, is_skipped: bool) -> bool {
    let compute = &*seen.compute;
    let is_registered = has_begun(compute) || has_registered(compute);
    seen.drain.is_some() && is_registered && !is_skipped && !began_by_hand(compute)
}

fn began_by_hand(compute: &ExternalCompute) -> bool {
    let conditions = compute.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default();
    find(conditions, HOST_CLEANED).is_some() && !has_begun(compute)
}

/// Whether the removal of a compute goes through nova's API, as far as its status says.
pub fn has_begun(compute: &ExternalCompute) -> bool {
    let status = compute.status.as_ref();
    status.is_some_and(|it| find(&it.conditions, SERVICE_DELETED).is_some())
}

/// Returns what is to be done in nova about the host of a compute that is being deleted.
pub fn order(seen: &Observed) -> HostOrder {
    let compute = &*seen.compute;
    if let Some(concluded) = concluded(compute) {
        return HostOrder::Remove(Remove {
            compute_id: compute.status.as_ref().and_then(|it| it.compute_id.clone()),
            is_stopped: concluded.reason == reasons::cleanup::HOST_CLEANED.word,
        });
    }
    HostOrder::DrainForRemoval(drain(seen))
}

/// The servers are migrated only where the node asks for it.
fn drain(seen: &Observed) -> Drain {
    let asked = seen.node.as_deref().map(|it| requested(seen.role.as_deref(), it));
    let mode = match asked {
        Some(DrainRequest::Drain(drain)) => drain.mode,
        Some(DrainRequest::Absent | DrainRequest::Invalid(_)) | None => DrainMode::Wait,
    };
    let compute = &*seen.compute;
    let (namespace, name) = (compute.namespace().unwrap_or_default(), compute.name_any());
    let reason = format!("NovaExternalCompute {namespace}/{name} is being deleted");
    Drain { mode, reason }
}

/// Whether nova has nothing on the host any more that stopping it would end.
pub fn is_empty(seen: &Observed) -> bool {
    matches!(seen.drain, Some(HostProgress::Drained | HostProgress::NotFound))
}

/// Whether nothing is left in nova, placement and neutron.
pub fn is_done(seen: &Observed) -> bool {
    matches!(&seen.drain, Some(HostProgress::Removing(removal)) if removal.is_done())
}

/// Returns the condition `Drained`, while the host is not stopped yet.
pub fn drained(seen: &Observed) -> ConditionDraft {
    if is_empty(seen) {
        let text = format!("Host {} has no servers and no open migrations.", host(&seen.compute));
        return reasons::drain::DRAINED.condition(DRAINED, text);
    }
    let status = seen.compute.status.as_ref();
    let request = DrainRequest::Drain(drain(seen));
    let drained = Drained {
        request: &request,
        progress: seen.drain.as_ref(),
        is_marked: true,
        host: status.and_then(|it| it.host_name.as_deref()),
        secret: secret(seen),
        previous: status.map(|it| it.conditions.as_slice()).unwrap_or_default(),
    };
    let draft = drained.condition().unwrap_or_else(|| previous(seen, DRAINED));
    let skip = skip(&seen.compute);
    // What was reported before has the command already.
    if draft.message.ends_with(&skip) {
        return draft;
    }
    let text = format!("{} {skip}", draft.message);
    draft.with_message(text)
}

fn secret(seen: &Observed) -> &str {
    seen.cell.as_ref().map(|it| it.spec.secret.as_str()).unwrap_or_default()
}

/// Returns what was reported before, or that the step waits for the one before it.
fn previous(seen: &Observed, type_: &str) -> ConditionDraft {
    let conditions = seen.compute.status.as_ref().map(|it| it.conditions.as_slice());
    let before = find(conditions.unwrap_or_default(), type_).map(ConditionDraft::repeated);
    before.unwrap_or_else(|| waiting(type_))
}

fn waiting(type_: &str) -> ConditionDraft {
    let text = match type_ {
        SERVICE_DELETED => "The service is deleted once nova-compute is stopped on the host.",
        PLACEMENT_CLEAN => "Placement is looked at once the service is deleted.",
        AGENTS_DELETED => "Agents are looked for once placement has nothing of the host.",
        _ => "Nova has not been asked yet.",
    };
    reasons::removal::WAITING.condition(type_, text)
}

/// Returns the conditions of the steps after the host was stopped, in their order.
pub fn steps(seen: &Observed) -> [ConditionDraft; 3] {
    let types = [SERVICE_DELETED, PLACEMENT_CLEAN, AGENTS_DELETED];
    if let Some(HostProgress::Removing(removal)) = &seen.drain {
        return [of_service(seen, removal), of_placement(seen, removal), of_agents(seen, removal)];
    }
    let progress = seen.drain.as_ref().filter(|_| concluded(&seen.compute).is_some());
    match progress.and_then(|it| unknown(it, secret(seen))) {
        Some((reason, cause)) => stopped_at(seen, types, reason, &cause),
        None => types.map(|it| previous(seen, it)),
    }
}

/// The first step that is not done reports what holds it.
fn stopped_at(
    seen: &Observed,
    types: [&str; 3],
    reason: &'static Reason,
    cause: &str,
) -> [ConditionDraft; 3] {
    let mut steps = types.map(|it| previous(seen, it));
    if let Some(first) = steps.iter_mut().find(|it| !it.holds()) {
        let (host, skip) = (host(&seen.compute), skip(&seen.compute));
        let text = format!("What is left of host {host} cannot be removed, because {cause} {skip}");
        *first = reason.condition(&first.type_, text);
    }
    steps
}

fn of_service(seen: &Observed, removal: &Removal) -> ConditionDraft {
    let host = host(&seen.compute);
    let Some(held) = held::service(&host, &removal.service) else {
        let text = format!("Nova has no service of host {host} any more.");
        return reasons::removal::SERVICE_DELETED.condition(SERVICE_DELETED, text);
    };
    let reason = match removal.service {
        ServiceRemoval::StillUp => &reasons::removal::STILL_UP,
        ServiceRemoval::Kept { .. } | ServiceRemoval::Done => &reasons::removal::SERVICE_KEPT,
    };
    reason.condition(SERVICE_DELETED, format!("{held} {}", skip(&seen.compute)))
}

fn of_placement(seen: &Observed, removal: &Removal) -> ConditionDraft {
    let host = host(&seen.compute);
    let reason = match removal.placement {
        PlacementRemoval::Pending => return previous(seen, PLACEMENT_CLEAN),
        PlacementRemoval::Done => &reasons::removal::PLACEMENT_CLEAN,
        PlacementRemoval::Kept { .. } => &reasons::removal::PROVIDER_KEPT,
        PlacementRemoval::InAggregates(_) => &reasons::removal::IN_AGGREGATES,
    };
    let text = match held::provider(&host, &removal.placement) {
        Some(held) => format!("{held} {}", skip(&seen.compute)),
        None => {
            format!("Placement has no resource provider of host {host}, and no aggregate lists it.")
        }
    };
    reason.condition(PLACEMENT_CLEAN, text)
}

fn of_agents(seen: &Observed, removal: &Removal) -> ConditionDraft {
    let host = host(&seen.compute);
    let Some(found) = removal.agents else { return previous(seen, AGENTS_DELETED) };
    let text = match found {
        AgentsRemoval::NoNeutron => "Keystone's catalog has no neutron.".to_owned(),
        AgentsRemoval::Done { n_alive: 0 } => format!("Neutron has no agents of host {host}."),
        AgentsRemoval::Done { n_alive } => format!(
            "Neutron has no agents of host {host} that are down; {n_alive} of processes that still \
             run there stay."
        ),
    };
    reasons::removal::AGENTS_DELETED.condition(AGENTS_DELETED, text)
}
