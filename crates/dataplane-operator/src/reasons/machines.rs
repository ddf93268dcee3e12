//! The reasons on machines that are provisioned for hosts.

use api::conditions::Reason;

pub(crate) const NOT_REQUIRED: Reason =
    Reason::good("NotRequired", "The host is provisioned by others.");
pub(crate) const PROVISIONED: Reason = Reason::good(
    "Provisioned",
    "The machine is there, and its ssh server answers or was waited for long enough; the message has \
     its state and since when.",
);
pub(crate) const PROVISIONING: Reason = Reason::waiting(
    "Provisioning",
    "The machine is on its way; the message has its state and since when.",
    "Yes.",
    "Wait.",
);
pub(crate) const WAITING_FOR_SSH: Reason = Reason::waiting(
    "WaitingForSsh",
    "The machine is there, and its ssh server does not answer the operator yet.",
    "When it answers, and after ten minutes anyway.",
    "Wait.",
);
pub(crate) const PROVISIONING_FAILED: Reason = Reason::warning(
    "ProvisioningFailed",
    "The provisioner says that something is wrong; the message has its words.",
    "As the message says.",
    "As the message says; `kubectl describe openstackbaremetalset` lists all machines.",
);
pub(crate) const TEMPLATE_INVALID: Reason = Reason::error(
    "TemplateInvalid",
    "`baremetalSetTemplate` is not what a set can say.",
    "When it is corrected.",
    "Correct the field that the message names.",
);
pub(crate) const MACHINES_NOT_SERVED: Reason = Reason::warning(
    "MachinesNotServed",
    "The cluster does not have the kind `OpenStackBaremetalSet`.",
    "Within a minute of its installation.",
    "Install its definition.",
);
pub(crate) const NAME_TAKEN: Reason = Reason::warning(
    "NameTaken",
    "An `OpenStackBaremetalSet` of the name exists and was made for another object.",
    "Within a minute of its end.",
    "Delete it, rename one of the two, or hand it over; the message has the command.",
);
pub(crate) const MACHINE_ELSEWHERE: Reason = Reason::warning(
    "MachineElsewhere",
    "Another `OpenStackBaremetalSet` has a machine for the host.",
    "Within a minute of when that has given it back.",
    "Take the host out there.",
);
pub(crate) const HOST_NAME_INVALID: Reason = Reason::error(
    "HostNameInvalid",
    "The host's name is one that no machine can have.",
    "No.",
    "Correct `spec.hostName`.",
);
pub(crate) const HOST_TWICE: Reason = Reason::error(
    "HostTwice",
    "Another node of the role calls its host so.",
    "No.",
    "Correct `spec.hostName` of one of them.",
);
pub(crate) const SET_FULL: Reason = Reason::warning(
    "SetFull",
    "The `OpenStackBaremetalSet` has as many hosts as it can have.",
    "When another host gives up its machine.",
    "Put the host into another role or node set.",
);
pub(crate) const HOST_NAME_CHANGED: Reason = Reason::error(
    "HostNameChanged",
    "The host has another name than the one by which its machine was asked for.",
    "No.",
    "Set `spec.hostName` as the message says, or delete the node and make another one.",
);
pub(crate) const GIVING_BACK: Reason = Reason::waiting(
    "GivingBack",
    "The node is to be deleted, and its machine is given back first.",
    "When that is done.",
    "Wait, or see the error in the message.",
);
pub(crate) const LOOKING_FOR_GUESTS: Reason = Reason::waiting(
    "LookingForGuests",
    "A run looks for guests on the host before its machine is given back.",
    "Yes.",
    "Wait.",
);
pub(crate) const MACHINE_HELD: Reason = Reason::warning(
    "MachineHeld",
    "The machine is not given back, because guests are on its host, or no run could look for them; the \
     message has the cause.",
    "Once a run has found none; or, after three attempts that failed, once the machine is off.",
    "As the message says; it has the command to give the machine back without that look.",
);
pub(crate) const DELETION_WAITS: Reason = Reason::warning(
    "DeletionWaits",
    "The role is to be deleted, and its machines are given back first; the message names the \
     nodes that still need them.",
    "When that is done.",
    "Delete the nodes too, or wait.",
);
pub(crate) const HOST_TWICE_IN_SET: Reason = HOST_TWICE.described(
    "A host has the name by which the machine of another one is known.",
    "No.",
    "Correct `hostName` as the message says.",
);
pub(crate) const MACHINE_NOT_READY: Reason = Reason::waiting(
    "MachineNotReady",
    "The host's machine is not there.",
    "When that is resolved.",
    "See `BaremetalReady`.",
);
