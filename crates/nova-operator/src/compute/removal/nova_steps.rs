//! The conditions on the steps of a removal in nova, placement and neutron, before and after
//! nova-compute was stopped on the host.

use api::conditions::{ConditionDraft, Reason, find};
use nova_config::conditions::{
    AGENTS_DELETED, DRAINED, HOST_UNMAPPED, PLACEMENT_CLEAN, SERVICE_DELETED,
};

use crate::compute::removal::known_mappings::Mapping;
use crate::compute::removal::messages;
use crate::compute::removal::resolve::Resolved;
use crate::nova::drain::condition::Drained;
use crate::nova::drain::held;
use crate::nova::drain::progress::{
    AgentsRemoval, HostProgress, PlacementRemoval, Removal, ServiceRemoval,
};
use crate::nova::drain::request::DrainRequest;
use crate::nova::drain::unknown::unknown;
use crate::reasons;

/// What the conditions follow from.
pub struct NovaSteps<'a> {
    resolved: &'a Resolved<'a>,
    /// The host, named as its service is registered.
    host: &'a str,
    /// The command to proceed without the host, in a sentence.
    skip: String,
    /// The name of the cell's Secret.
    secret: &'a str,
}

impl<'a> NovaSteps<'a> {
    /// Returns the steps of the removal of a compute through nova's API.
    pub fn of(resolved: &'a Resolved<'_>) -> Self {
        let cell = resolved.seen.cell.as_ref();
        let secret = cell.map(|it| it.spec.secret.as_str()).unwrap_or_default();
        Self { resolved, host: &resolved.host, skip: messages::skip(resolved.compute), secret }
    }

    /// Returns the conditions of all steps, in their order; what holds the stop of an empty host comes
    /// before what is unknown of its drain.
    pub fn conditions(&self, of_host: ConditionDraft) -> Vec<ConditionDraft> {
        // Once the host is stopped, `Drained` has nothing to say any more.
        let drained = self.resolved.concluded.is_none().then(|| self.drained());
        let mut first: Vec<_> = drained.into_iter().chain([of_host]).collect();
        if self.resolved.may_stop {
            first.reverse();
        }
        first.into_iter().chain(self.after_stop()).collect()
    }

    /// Returns the condition `Drained`, while the host is not stopped yet.
    fn drained(&self) -> ConditionDraft {
        let (host, skip) = (&self.host, &self.skip);
        let progress = self.resolved.progress;
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
            Some(HostProgress::NotFound) if !self.resolved.may_stop => {
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
            request: &DrainRequest::Drain(self.resolved.drain.clone()),
            progress,
            is_marked: true,
            host: Some(host),
            secret: self.secret,
            previous: self.resolved.compute.conditions(),
        };
        let draft = drained.condition().unwrap_or_else(|| self.previous(DRAINED));
        // What was reported before has the command already.
        if draft.message.ends_with(skip) {
            return draft;
        }
        let text = format!("{} {skip}", draft.message);
        draft.with_message(text)
    }

    /// Returns what was reported before, or that the step waits for the one before it.
    fn previous(&self, type_: &str) -> ConditionDraft {
        let before = find(self.resolved.compute.conditions(), type_).map(ConditionDraft::repeated);
        before.unwrap_or_else(|| waiting(type_))
    }

    /// Returns the conditions of the steps after the host was stopped, in their order.
    pub fn after_stop(&self) -> [ConditionDraft; 4] {
        let progress = self.resolved.progress;
        let [service, placement, agents] = match progress.and_then(HostProgress::removal) {
            Some(it) => [self.of_service(it), self.of_placement(it), self.of_agents(it)],
            None => [SERVICE_DELETED, PLACEMENT_CLEAN, AGENTS_DELETED].map(|it| self.previous(it)),
        };
        let is_out_of_nova = service.holds() && placement.holds();
        let mapping = if is_out_of_nova { self.of_mapping() } else { waiting(HOST_UNMAPPED) };
        let mut steps = [service, placement, mapping, agents];
        if let Some(HostProgress::OtherService { id }) = progress {
            steps[0] = self.of_other_service(id);
        }
        let progress = progress.filter(|_| self.resolved.concluded.is_some());
        match progress.and_then(|it| unknown(it, self.secret)) {
            Some((reason, cause)) => self.stopped_at(steps, reason, &cause),
            None => steps,
        }
    }

    /// The first step that is not done reports what holds it. Whether the host is mapped is not read
    /// by nova's API.
    fn stopped_at(
        &self,
        mut steps: [ConditionDraft; 4],
        reason: &'static Reason,
        cause: &str,
    ) -> [ConditionDraft; 4] {
        let first = steps.iter_mut().find(|it| !it.holds());
        if let Some(first) = first.filter(|it| it.type_ != HOST_UNMAPPED) {
            let (host, skip) = (&self.host, &self.skip);
            let text =
                format!("What is left of host {host} cannot be removed, because {cause} {skip}");
            *first = reason.condition(&first.type_, text);
        }
        steps
    }

    fn of_mapping(&self) -> ConditionDraft {
        let (host, cell) = (&self.host, &self.resolved.compute.spec.cell_name);
        let before = find(self.resolved.compute.conditions(), HOST_UNMAPPED);
        let before = before.map(ConditionDraft::repeated);
        if let Some(before) = before.filter(ConditionDraft::holds) {
            return before;
        }
        let (reason, text) = match &self.resolved.mapping {
            Mapping::Unread => (
                &reasons::removal::READING_MAPPINGS,
                format!(
                    "Whether nova still maps host {host} is read by a Job of NovaCell {cell}; see \
                     its status.mappingReading. {}",
                    self.skip
                ),
            ),
            Mapping::Present => (&reasons::removal::STILL_MAPPED, self.still_mapped("")),
            Mapping::PresentThenFailed(cause) => {
                (&reasons::removal::STILL_MAPPED, self.still_mapped(&format!("{cause} ")))
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
    fn still_mapped(&self, failure: &str) -> String {
        let (host, skip) = (&self.host, &self.skip);
        format!(
            "Nova still maps host {host}, although its service is deleted: nova-manage cell_v2 \
             delete_host --cell_uuid UUID --host {host}, with the UUID that nova-manage cell_v2 \
             list_hosts shows. {failure}It is read again automatically. {skip}"
        )
    }

    fn of_service(&self, removal: &Removal) -> ConditionDraft {
        let host = &self.host;
        let Some(held) = held::service(host, &removal.service) else {
            let text = format!("Nova has no service of host {host} any more.");
            return reasons::removal::SERVICE_DELETED.condition(SERVICE_DELETED, text);
        };
        let reason = match removal.service {
            ServiceRemoval::StillUp => &reasons::removal::STILL_UP,
            ServiceRemoval::Kept { .. } | ServiceRemoval::Done => &reasons::removal::SERVICE_KEPT,
        };
        reason.condition(SERVICE_DELETED, format!("{held} {}", self.skip))
    }

    fn of_other_service(&self, id: &str) -> ConditionDraft {
        let (host, skip) = (&self.host, &self.skip);
        let text = format!(
            "Nova has service {id} of host {host}, which is not known to be the one that the host had \
             when its removal began, so it is not deleted. If nova-compute still runs on the host, stop it \
             there with `systemctl disable --now edpm_nova_compute`; then, unless the service is \
             another host's: openstack --os-compute-api-version 2.53 compute service delete {id}. \
             {skip}"
        );
        reasons::removal::OTHER_SERVICE.condition(SERVICE_DELETED, text)
    }

    fn of_placement(&self, removal: &Removal) -> ConditionDraft {
        let host = &self.host;
        let reason = match removal.placement {
            PlacementRemoval::Pending => return self.previous(PLACEMENT_CLEAN),
            PlacementRemoval::Done => &reasons::removal::PLACEMENT_CLEAN,
            PlacementRemoval::Kept { .. } => &reasons::removal::PROVIDER_KEPT,
            PlacementRemoval::InAggregates(_) => &reasons::removal::IN_AGGREGATES,
        };
        let text = match held::provider(host, &removal.placement) {
            Some(held) => format!("{held} {}", self.skip),
            None => format!(
                "Placement has no resource provider of host {host}, and no aggregate lists it."
            ),
        };
        reason.condition(PLACEMENT_CLEAN, text)
    }

    fn of_agents(&self, removal: &Removal) -> ConditionDraft {
        let host = &self.host;
        let Some(found) = &removal.agents else { return self.previous(AGENTS_DELETED) };
        let text = match found {
            AgentsRemoval::Reporting(programs) => {
                let text = format!("{} {}", held::agents(host, programs), self.skip);
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
