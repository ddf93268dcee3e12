//! The reasons of the steps in nova of a compute that is being deleted.

use api::conditions::Reason;

pub(crate) const WAITING: Reason = Reason::waiting(
    "Waiting",
    "The step waits for the one before it.",
    "Yes.",
    "See the conditions before it: `Drained`, `HostCleaned`, `ServiceDeleted`, `PlacementClean`, \
     `HostUnmapped`.",
);
pub(crate) const WAITING_FOR_DEPLOYMENT: Reason = Reason::waiting(
    "WaitingForDeployment",
    "A deployment may still be at the host.",
    "When the deployment ends, and the status of the node set has the host as `Terminating`.",
    "Wait, or delete the deployment.",
);
pub(crate) const WAITING_FOR_DRAIN: Reason = Reason::waiting(
    "WaitingForDrain",
    "nova-compute is stopped once the host is empty.",
    "When the host is drained.",
    "See `Drained`.",
);
pub(crate) const NEVER_LISTED: Reason = Reason::unknown(
    "ServiceNeverListed",
    "nova-compute was deployed on the host, and nova has never listed a service of its name, so it may \
     run under another one and have servers; nothing is stopped.",
    "When nova lists the host.",
    "Follow the message: look at the names that nova lists, and let the host go once it has no servers.",
);
pub(crate) const OTHER_HOST: Reason = Reason::unknown(
    "OtherHostName",
    "Nova has nothing under the name of the host, and its compute node on another host: it runs under \
     that name, and may have servers; nothing is stopped.",
    "When nova has the compute node no more.",
    "Migrate or delete the servers of the host that the message names, and let this one go.",
);
pub(crate) const SERVICE_DELETED: Reason =
    Reason::good("ServiceDeleted", "Nova has no service of the host any more.");
pub(crate) const STILL_UP: Reason = Reason::warning(
    "StillUp",
    "nova-compute on the host could not be stopped, and still reports to nova.",
    "When it no longer reports.",
    "Stop it on the host; the message has the command.",
);
pub(crate) const SERVICE_KEPT: Reason = Reason::warning(
    "ServiceKept",
    "Nova refuses to delete the service; the message has its words and the servers on the host.",
    "When nova no longer refuses it.",
    "Evacuate or delete the servers: nova-compute does not run on the host.",
);
pub(crate) const OTHER_SERVICE: Reason = Reason::warning(
    "OtherService",
    "Nova has another service of the host's name than when the removal began; it is not deleted.",
    "When nova has it no more.",
    "Stop nova-compute on the host, and delete the service by hand if it is the host's; the message \
     has the commands.",
);
pub(crate) const PLACEMENT_CLEAN: Reason =
    Reason::good("PlacementClean", "Placement has nothing of the host, and no aggregate lists it.");
pub(crate) const PROVIDER_KEPT: Reason = Reason::warning(
    "ProviderKept",
    "Placement refuses to delete the resource provider of the host, or nova has it as the compute node \
     of another host.",
    "When neither is so any more.",
    "Look at the provider; the message has the command.",
);
pub(crate) const IN_AGGREGATES: Reason = Reason::warning(
    "InAggregates",
    "Aggregates of nova still list the host.",
    "When they do not.",
    "Remove the host from them; the message has the command.",
);
pub(crate) const READING_MAPPINGS: Reason = Reason::waiting(
    "ReadingMappings",
    "A Job of the cell reads with `nova-manage cell_v2 list_hosts` whether nova still maps the \
     host.",
    "When the Job has ended; if it fails, the removal goes on without it.",
    "See `status.mappingReading` of the `NovaCell`.",
);
pub(crate) const HOST_UNMAPPED: Reason =
    Reason::good("HostUnmapped", "`nova-manage cell_v2 list_hosts` has the host no more.");
pub(crate) const NOT_VERIFIED: Reason = Reason::notable(
    "NotVerified",
    "Nova has deleted the mapping of the host with its service; whether it is gone was not read, \
     for the cause in the message.",
    "",
    "Correct the cause, so that later removals are verified, or leave it.",
);
pub(crate) const STILL_MAPPED: Reason = Reason::warning(
    "StillMapped",
    "`nova-manage cell_v2 list_hosts` still has the host, although its service is deleted.",
    "When it does not any more; it is read again after 1, 2, 4 … 30 minutes.",
    "Delete the mapping; the message has the command.",
);
pub(crate) const AGENTS_DELETED: Reason = Reason::good(
    "AgentsDeleted",
    "Neutron has no agents of the host; where the run did not stop them, none that are down.",
);
pub(crate) const AGENTS_REPORT: Reason = Reason::waiting(
    "AgentsReport",
    "Agents that the run was to stop still report to neutron, which counts them as down a while \
     after they were stopped.",
    "When they are down.",
    "If they run, stop them on the host; the message names them.",
);
