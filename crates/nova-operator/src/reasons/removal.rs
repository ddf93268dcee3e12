//! The reasons of the steps in nova of a compute that is being deleted.

api::reasons! {
    pub(crate) mod catalog;

    /// Why a host is not known to be drained.
    const DRAIN;

    NEVER_LISTED: unknown "ServiceNeverListed"
        means "nova-compute was deployed on the host, and nova has never listed a service of its \
            name, so it may run under another one and have servers; nothing is stopped."
        heals "When nova lists the host."
        step "Follow the message: look at the names that nova lists, and let the host go once it \
            has no servers.";
    OTHER_HOST: unknown "OtherHostName"
        means "Nova has nothing under the name of the host, and its compute node on another host: \
            it runs under that name, and may have servers; nothing is stopped."
        heals "When nova has the compute node no more."
        step "Migrate or delete the servers of the host that the message names, and let this one \
            go.";
    STILL_UP: warning "StillUp"
        means "nova-compute on the host could not be stopped, and still reports to nova."
        heals "When it no longer reports." step "Stop it on the host; the message has the command.";

    /// What the stop on the host waits for.
    const HOST;

    WAITING_FOR_DRAIN: waiting "WaitingForDrain"
        means "nova-compute is stopped once the host is empty."
        heals "When the host is drained." step "See `Drained`.";
    INVENTORY_NOT_WRITTEN: waiting "InventoryNotWritten"
        means "The inventory of the node, which the stop of nova-compute needs, is not written yet."
        heals "When dataplane-operator has written it."
        step "See the conditions of the node and of its role, or use the command in the message.";

    /// The service in nova.
    const SERVICE;

    SERVICE_DELETED: good "ServiceDeleted" means "Nova has no service of the host any more.";
    WAITING: waiting "Waiting" means "The step waits for the one before it."
        heals "Yes."
        step "See the conditions before it: `Drained`, `HostCleaned`, `ServiceDeleted`, \
            `PlacementClean`, `HostUnmapped`.";
    STILL_UP;
    SERVICE_KEPT: warning "ServiceKept"
        means "Nova refuses to delete the service; the message has its words and the servers on \
            the host."
        heals "When nova no longer refuses it."
        step "Evacuate or delete the servers: nova-compute does not run on the host.";
    OTHER_SERVICE: warning "OtherService"
        means "Nova has another service of the host's name than when the removal began; it is not \
            deleted."
        heals "When nova has it no more."
        step "Stop nova-compute on the host, and delete the service by hand if it is the host's; \
            the message has the commands.";

    /// The resource provider in placement.
    const PLACEMENT;

    PLACEMENT_CLEAN: good "PlacementClean"
        means "Placement has nothing of the host, and no aggregate lists it.";
    WAITING;
    PROVIDER_KEPT: warning "ProviderKept"
        means "Placement refuses to delete the resource provider of the host, or nova has it as \
            the compute node of another host."
        heals "When neither is so any more."
        step "Look at the provider; the message has the command.";
    IN_AGGREGATES: warning "InAggregates" means "Aggregates of nova still list the host."
        heals "When they do not." step "Remove the host from them; the message has the command.";

    /// Nova's mapping of the host.
    const MAPPING;

    HOST_UNMAPPED: good "HostUnmapped"
        means "`nova-manage cell_v2 list_hosts` has the host no more.";
    NOT_VERIFIED: notable "NotVerified"
        means "Nova has deleted the mapping of the host with its service; whether it is gone was \
            not read, for the cause in the message."
        heals "" step "Correct the cause, so that later removals are verified, or leave it.";
    WAITING;
    READING_MAPPINGS: waiting "ReadingMappings"
        means "A Job of the cell reads with `nova-manage cell_v2 list_hosts` whether nova still \
            maps the host."
        heals "When the Job has ended; if it fails, the removal goes on without it."
        step "See `status.mappingReading` of the `NovaCell`.";
    STILL_MAPPED: warning "StillMapped"
        means "`nova-manage cell_v2 list_hosts` still has the host, although its service is \
            deleted."
        heals "When it does not any more; it is read again after 1, 2, 4 … 30 minutes."
        step "Delete the mapping; the message has the command.";

    /// Neutron's agents of the host.
    const AGENTS;

    AGENTS_DELETED: good "AgentsDeleted"
        means "Neutron has no agents of the host; where the run did not stop them, none that are \
            down.";
    WAITING;
    AGENTS_REPORT: waiting "AgentsReport"
        means "Agents that the run was to stop still report to neutron, which counts them as down \
            a while after they were stopped."
        heals "When they are down."
        step "If they run, stop them on the host; the message names them.";
}
