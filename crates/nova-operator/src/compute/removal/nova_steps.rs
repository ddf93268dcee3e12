//! The conditions on the steps of a removal in nova, placement and neutron, before and after
//! nova-compute was stopped on the host.

use api::conditions::{ConditionDraft, Reason, find};
use nova_config::conditions::{
    AGENTS_DELETED, DRAINED, HOST_UNMAPPED, PLACEMENT_CLEAN, SERVICE_DELETED,
};

use crate::compute::removal::known_mappings::Mapping;
use crate::compute::removal::resolve::Resolved;
use crate::nova::drain::condition::Drained;
use crate::nova::drain::held;
use crate::nova::drain::progress::{
    AgentsRemoval, HostProgress, PlacementRemoval, Removal, ServiceRemoval,
};
use crate::nova::drain::request::DrainRequest;
use crate::nova::drain::unknown::unknown;
use crate::reasons;

/// Returns the conditions of all steps, in their order; what holds the stop of an empty host comes
/// before what is unknown of its drain.
pub fn conditions(resolved: &Resolved<'_>, of_host: ConditionDraft) -> Vec<ConditionDraft> {
    // Once the host is stopped, `Drained` has nothing to say any more.
    let drained = resolved.concluded.is_none().then(|| drained(resolved));
    let mut first: Vec<_> = drained.into_iter().chain([of_host]).collect();
    if resolved.may_stop {
        first.reverse();
    }
    first.into_iter().chain(after_stop(resolved)).collect()
}

/// Returns the condition `Drained`, while the host is not stopped yet.
fn drained(resolved: &Resolved<'_>) -> ConditionDraft {
    let (host, skip) = (&resolved.host, &resolved.skip);
    let progress = resolved.progress;
    match progress {
        Some(HostProgress::Drained) => {
            let text = format!("Host {host} has no servers and no open migrations.");
            return reasons::drain::DRAINED.condition(DRAINED, text);
        }
        Some(HostProgress::OtherHost { compute_id, host: other }) => {
            let text = format!(
                "Nova has no compute service of host {host}, and the compute node {compute_id} of \
                 this host on host {other}: it runs under that name and may have servers, so \
                 nothing is stopped. Once no server is left there, let it go. {skip}"
            );
            return reasons::removal::OTHER_HOST.condition(DRAINED, text);
        }
        Some(HostProgress::NotFound) if !resolved.may_stop => {
            let text = format!(
                "Nova is not known to have ever listed a compute service of host {host}, although \
                 nova-compute was deployed there, so it may run under another name (option host of \
                 [DEFAULT], or variable canonical_hostname) and have servers: nothing is stopped. \
                 `openstack compute service list --service nova-compute` shows the names. It is read \
                 again automatically; once no server is left there, let it go. {skip}"
            );
            return reasons::removal::NEVER_LISTED.condition(DRAINED, text);
        }
        // Its cell has not answered for this host, but nova has nothing to keep on it either.
        Some(HostProgress::NotFound) => {
            let text = format!(
                "Nova has no compute service of host {host}, and lists no servers and no open \
                 migrations on it, so nova-compute is stopped there."
            );
            return reasons::drain::SERVICE_NOT_FOUND.condition(DRAINED, text);
        }
        _ => {}
    }
    let drained = Drained {
        request: &DrainRequest::Drain(resolved.drain.clone()),
        progress,
        is_marked: true,
        host: Some(host),
        secret: resolved.secret,
        previous: resolved.compute.conditions(),
    };
    let draft = drained.condition().unwrap_or_else(|| previous(resolved, DRAINED));
    // What was reported before has the command already.
    if draft.message.ends_with(skip) {
        return draft;
    }
    let text = format!("{} {skip}", draft.message);
    draft.with_message(text)
}

/// Returns what was reported before, or that the step waits for the one before it.
fn previous(resolved: &Resolved<'_>, type_: &str) -> ConditionDraft {
    let before = find(resolved.compute.conditions(), type_).map(ConditionDraft::repeated);
    before.unwrap_or_else(|| waiting(type_))
}

/// Returns the conditions of the steps after the host was stopped, in their order.
pub fn after_stop(resolved: &Resolved<'_>) -> [ConditionDraft; 4] {
    let progress = resolved.progress;
    let [service, placement, agents] = match progress.and_then(HostProgress::removal) {
        Some(it) => [of_service(resolved, it), of_placement(resolved, it), of_agents(resolved, it)],
        None => [SERVICE_DELETED, PLACEMENT_CLEAN, AGENTS_DELETED].map(|it| previous(resolved, it)),
    };
    let is_out_of_nova = service.holds() && placement.holds();
    let mapping = if is_out_of_nova { of_mapping(resolved) } else { waiting(HOST_UNMAPPED) };
    let mut steps = [service, placement, mapping, agents];
    if let Some(HostProgress::OtherService { id }) = progress {
        steps[0] = of_other_service(resolved, id);
    }
    let progress = progress.filter(|_| resolved.concluded.is_some());
    match progress.and_then(|it| unknown(it, resolved.secret)) {
        Some((reason, cause)) => stopped_at(resolved, steps, reason, &cause),
        None => steps,
    }
}

/// The first step that is not done reports what holds it. Whether the host is mapped is not read
/// by nova's API.
fn stopped_at(
    resolved: &Resolved<'_>,
    mut steps: [ConditionDraft; 4],
    reason: &'static Reason,
    cause: &str,
) -> [ConditionDraft; 4] {
    let first = steps.iter_mut().find(|it| !it.holds());
    if let Some(first) = first.filter(|it| it.type_ != HOST_UNMAPPED) {
        let (host, skip) = (&resolved.host, &resolved.skip);
        let text = format!("What is left of host {host} cannot be removed, because {cause} {skip}");
        *first = reason.condition(&first.type_, text);
    }
    steps
}

fn of_mapping(resolved: &Resolved<'_>) -> ConditionDraft {
    let (host, cell) = (&resolved.host, &resolved.compute.spec.cell_name);
    let before = find(resolved.compute.conditions(), HOST_UNMAPPED);
    let before = before.map(ConditionDraft::repeated);
    if let Some(before) = before.filter(ConditionDraft::holds) {
        return before;
    }
    let (reason, text) = match &resolved.mapping {
        Mapping::Unread => (
            &reasons::removal::READING_MAPPINGS,
            format!(
                "Whether nova still maps host {host} is read by a Job of NovaCell {cell}; see \
                 its status.mappingReading. {}",
                resolved.skip
            ),
        ),
        Mapping::Present => (&reasons::removal::STILL_MAPPED, still_mapped(resolved, "")),
        Mapping::PresentThenFailed(cause) => {
            (&reasons::removal::STILL_MAPPED, still_mapped(resolved, &format!("{cause} ")))
        }
        Mapping::Absent => (
            &reasons::removal::HOST_UNMAPPED,
            format!("nova-manage cell_v2 list_hosts has host {host} no more."),
        ),
        Mapping::NotRead(cause) => (
            &reasons::removal::NOT_VERIFIED,
            format!(
                "Nova has deleted the mapping of host {host} with its service; nova-manage \
                 cell_v2 list_hosts has not verified it. {cause}"
            ),
        ),
    };
    reason.condition(HOST_UNMAPPED, text)
}

/// `failure` is why it could not be read again, in sentences with a space after them; empty
/// where it could.
fn still_mapped(resolved: &Resolved<'_>, failure: &str) -> String {
    let (host, skip) = (&resolved.host, &resolved.skip);
    format!(
        "Nova still maps host {host}, although its service is deleted: nova-manage cell_v2 \
         delete_host --cell_uuid UUID --host {host}, with the UUID that nova-manage cell_v2 \
         list_hosts shows. {failure}It is read again automatically. {skip}"
    )
}

fn of_service(resolved: &Resolved<'_>, removal: &Removal) -> ConditionDraft {
    let host = &resolved.host;
    let Some(held) = held::service(host, &removal.service) else {
        let text = format!("Nova has no service of host {host} any more.");
        return reasons::removal::SERVICE_DELETED.condition(SERVICE_DELETED, text);
    };
    let reason = match removal.service {
        ServiceRemoval::StillUp => &reasons::removal::STILL_UP,
        ServiceRemoval::Kept { .. } | ServiceRemoval::Done => &reasons::removal::SERVICE_KEPT,
    };
    reason.condition(SERVICE_DELETED, format!("{held} {}", resolved.skip))
}

fn of_other_service(resolved: &Resolved<'_>, id: &str) -> ConditionDraft {
    let (host, skip) = (&resolved.host, &resolved.skip);
    let text = format!(
        "Nova has service {id} of host {host}, which is not known to be the one that the host had \
         when its removal began, so it is not deleted. If nova-compute still runs on the host, stop it \
         there with `systemctl disable --now edpm_nova_compute`; then, unless the service is \
         another host's: openstack --os-compute-api-version 2.53 compute service delete {id}. \
         {skip}"
    );
    reasons::removal::OTHER_SERVICE.condition(SERVICE_DELETED, text)
}

fn of_placement(resolved: &Resolved<'_>, removal: &Removal) -> ConditionDraft {
    let host = &resolved.host;
    let reason = match removal.placement {
        PlacementRemoval::Pending => return previous(resolved, PLACEMENT_CLEAN),
        PlacementRemoval::Done => &reasons::removal::PLACEMENT_CLEAN,
        PlacementRemoval::Kept { .. } => &reasons::removal::PROVIDER_KEPT,
        PlacementRemoval::InAggregates(_) => &reasons::removal::IN_AGGREGATES,
    };
    let text = match held::provider(host, &removal.placement) {
        Some(held) => format!("{held} {}", resolved.skip),
        None => {
            format!("Placement has no resource provider of host {host}, and no aggregate lists it.")
        }
    };
    reason.condition(PLACEMENT_CLEAN, text)
}

fn of_agents(resolved: &Resolved<'_>, removal: &Removal) -> ConditionDraft {
    let host = &resolved.host;
    let Some(found) = &removal.agents else { return previous(resolved, AGENTS_DELETED) };
    let text = match found {
        AgentsRemoval::Reporting(programs) => {
            let text = format!("{} {}", held::agents(host, programs), resolved.skip);
            return reasons::removal::AGENTS_REPORT.condition(AGENTS_DELETED, text);
        }
        AgentsRemoval::NoNeutron => "Keystone's catalog has no neutron.".to_owned(),
        AgentsRemoval::Done { n_alive: 0 } => format!("Neutron has no agents of host {host}."),
        AgentsRemoval::Done { n_alive } => format!(
            "Neutron has no agents of host {host} that are down; {n_alive} of processes that \
             still run there stay."
        ),
    };
    reasons::removal::AGENTS_DELETED.condition(AGENTS_DELETED, text)
}

fn waiting(type_: &str) -> ConditionDraft {
    let text = match type_ {
        SERVICE_DELETED => "The service is deleted once nova-compute is stopped on the host.",
        PLACEMENT_CLEAN => "Placement is looked at once the service is deleted.",
        HOST_UNMAPPED => "The mapping of the host is looked at once placement has nothing of it.",
        AGENTS_DELETED => "Agents are looked for once nova has no mapping of the host.",
        _ => "Nova has not been asked yet.",
    };
    reasons::removal::WAITING.condition(type_, text)
}
