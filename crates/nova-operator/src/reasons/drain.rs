//! The reasons of the condition `Drained`.

use api::conditions::Reason;

pub(crate) const DRAINED: Reason = Reason::good(
    "Drained",
    "Nova schedules nothing to the host, and it has neither servers nor open migrations.",
);
pub(crate) const WAITING: Reason = Reason::waiting(
    "ServersOnHost",
    "The host still has servers or open migrations; its service is disabled, unless a compute is \
     deleted that is not known to have registered.",
    "When they are gone.",
    "Migrate or delete the servers; the message has the command that lists them.",
);
pub(crate) const MIGRATING: Reason = Reason::waiting(
    "Migrating",
    "The service is disabled, and the host's servers are being migrated live.",
    "When they are gone.",
    "Wait.",
);
pub(crate) const SERVERS_STUCK: Reason = Reason::warning(
    "ServersStuck",
    "Some servers are not migrated live: they do not run, nova does not move them, or a resize or \
     migration of them is to be confirmed or reverted.",
    "When they are gone; the migration of a running server is tried again.",
    "Start, confirm, migrate or delete them; the message names them and why.",
);
pub(crate) const DISABLED_BY_NOVA: Reason = Reason::warning(
    "DisabledByNova",
    "The host is empty, but nova has disabled its service by itself (a reason that begins with `AUTO:`) \
     and may enable it by itself.",
    "When nova has enabled it, and the operator has disabled it.",
    "Mend what the reason names on the host, or disable the service in your own words.",
);
pub(crate) const ENABLING: Reason = Reason::waiting(
    "EnablingService",
    "No drain is requested any more, and the service that the operator disabled is being enabled.",
    "Yes.",
    "Wait.",
);
pub(crate) const WAITING_FOR_SERVICE: Reason = Reason::waiting(
    "WaitingForService",
    "A deployment with `nova.openstack.org/drain-before` has ended, and the service that the \
     operator disabled is enabled once nova has it as up.",
    "When nova-compute reports.",
    "See `ServiceUp`.",
);
pub(crate) const NOT_READ: Reason = Reason::unknown(
    "NotRead",
    "The servers of the host have not been read yet.",
    "Yes.",
    "Wait for the first pass.",
);
pub(crate) const NOT_REGISTERED: Reason = Reason::unknown(
    "NotRegistered",
    "The compute has not registered yet, so nova has nothing to drain.",
    "Yes.",
    "See `DeploymentReady`.",
);
pub(crate) const SERVICE_NOT_FOUND: Reason = Reason::unknown(
    "ServiceNotFound",
    "Nova has no service of the host.",
    "When it registers again.",
    "See `ServiceUp`.",
);
pub(crate) const CELL_NOT_ANSWERING: Reason = Reason::unknown(
    "CellNotAnswering",
    "The database of the cell does not answer nova's API, which then leaves out the host's servers.",
    "When it answers.",
    "Start the database of the cell.",
);
pub(crate) const NOVA_NOT_ANSWERING: Reason = Reason::unknown(
    "NovaNotAnswering",
    "Nova's API refuses or does not answer what a drain needs; the message has the cause.",
    "When it answers.",
    "Follow the message.",
);
pub(crate) const OTHER_IDENTITY: Reason = Reason::unknown(
    "OtherIdentity",
    "Nova has the host under another identity than the one that it has registered with, or is not known \
     to be the nova that it has registered in: nothing is changed in nova or stopped on the host.",
    "When nova has the recorded identity again.",
    "Follow the message: correct the `NovaCell`, or have its computes take what this nova has.",
);
pub(crate) const NOT_DEPLOYED: Reason = Reason::warning(
    "NovaNotDeployed",
    "Nova has a service of the host's name, and no deployment of a service of type `nova` by the node \
     set is known to have succeeded on the host; the service is left as it is.",
    "When one has succeeded.",
    "Deploy nova on the host; where `nova.openstack.org/drain-before` holds that, take it off \
     meanwhile.",
);
pub(crate) const HOST_CONTESTED: Reason = Reason::warning(
    "HostContested",
    "Another object, which the message names, has deployed nova under the host's name in the same \
     nova too; the service is left as it is.",
    "When one of both has the host no more.",
    "Take the host out of one of both.",
);
pub(crate) const NO_API: Reason = Reason::error(
    "NovaAPINotUsed",
    "A drain is requested, and the operator does not use nova's API.",
    "No.",
    "Set `nova.api.enabled` of the chart to true, or remove the annotation.",
);
pub(crate) const INVALID: Reason = Reason::error(
    "DrainInvalid",
    "An annotation of the drain has no legal value; nothing was changed.",
    "No.",
    "Correct it; the message names the legal values.",
);
