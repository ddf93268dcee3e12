//! The reasons of missing or invalid inputs that several kinds share.

use api::conditions::Reason;

pub(crate) const INPUT_MISSING: Reason = Reason::waiting(
    "InputMissing",
    "An input is missing.",
    "When it appears.",
    "See `InputReady`.",
);
pub(crate) const HOST_ADDRESS_INVALID: Reason = Reason::error(
    "HostAddressInvalid",
    "A variable `ansible_host` or `ansible_port` is no plain address or port, or secret.",
    "No.",
    "Set `ansibleHost` and `ansiblePort`.",
);
pub(crate) const SSH_SECRET_NOT_FOUND: Reason = Reason::warning(
    "SshSecretNotFound",
    "The ssh Secret does not exist.",
    "When it appears.",
    "Create it; the message has the command.",
);
pub(crate) const SSH_SECRET_INCOMPLETE: Reason = Reason::warning(
    "SshSecretIncomplete",
    "The ssh Secret lacks `ssh-privatekey`.",
    "When the key appears.",
    "Add the key.",
);
pub(crate) const SSH_SECRET_INVALID: Reason = Reason::warning(
    "SshSecretInvalid",
    "ssh cannot use what the ssh Secret has in `ssh-privatekey`.",
    "When the key is corrected.",
    "Put the private key there as the message says: as `ssh-keygen` wrote it, without a passphrase.",
);
pub(crate) const HOST_TAKEN: Reason = Reason::warning(
    "HostTaken",
    "An older object describes the same host: a node, or a node set.",
    "When the other one gives it up.",
    "Take the host out of one of the two.",
);
pub(crate) const HOST_KEY_SHARED: Reason = Reason::warning(
    "HostKeyShared",
    "A host shows an ssh host key that an older one of the namespace shows at another address.",
    "When the host has a key of its own, or the shared one is accepted.",
    "Make new host keys on it, or annotate the object with the command in the message.",
);
pub(crate) const INPUT_COMPLETE: Reason =
    Reason::good("InputComplete", "Everything that a deployment needs is there.");
pub(crate) const SERVICE_INPUTS_COMPLETE: Reason =
    Reason::good("ServiceInputsComplete", "Everything that the listed services need is there.");
pub(crate) const SERVICE_NOT_FOUND: Reason = Reason::warning(
    "ServiceNotFound",
    "A listed service does not exist.",
    "When it appears.",
    "Create it, or take it off the role's list.",
);
pub(crate) const SERVICE_UNREADABLE: Reason = Reason::warning(
    "ServiceUnreadable",
    "A listed service exists, and its operator cannot read it.",
    "When it is corrected.",
    "Correct the field that the message names.",
);
pub(crate) const SERVICE_INVALID: Reason = Reason::error(
    "ServiceInvalid",
    "A listed service cannot be deployed as it is written.",
    "When it is corrected.",
    "Correct the field that the message names.",
);
pub(crate) const SERVICE_TYPE_TWICE: Reason = Reason::error(
    "ServiceTypeTwice",
    "Two services of a list have one `edpmServiceType`, and both would write the same files.",
    "When the list or a service is corrected.",
    "List only one of them, or give one of them another `edpmServiceType`.",
);
pub(crate) const DATA_SOURCE_NOT_FOUND: Reason = Reason::warning(
    "DataSourceNotFound",
    "A ConfigMap or Secret that a service names does not exist.",
    "When it appears.",
    "Create it.",
);
pub(crate) const VARIABLES_NOT_FOUND: Reason = Reason::warning(
    "VariablesNotFound",
    "A ConfigMap or Secret that `ansibleVarsFrom` names does not exist.",
    "When it appears.",
    "Create it, or set `optional: true`.",
);
pub(crate) const VARIABLES_INVALID: Reason = Reason::warning(
    "VariablesInvalid",
    "A ConfigMap or Secret that `ansibleVarsFrom` names has a key that is no text.",
    "When it is corrected.",
    "Take the key out; mount files with a service's `dataSources`.",
);
pub(crate) const NETWORK_ATTACHMENT_NOT_FOUND: Reason = Reason::warning(
    "NetworkAttachmentNotFound",
    "A `NetworkAttachmentDefinition` that `networkAttachments` names does not exist.",
    "When it appears.",
    "Create it, or correct the list.",
);
pub(crate) const NETWORK_ATTACHMENTS_NOT_SERVED: Reason = Reason::warning(
    "NetworkAttachmentsNotServed",
    "`networkAttachments` are set, and the cluster has no kind `NetworkAttachmentDefinition`.",
    "Within half a minute of the kind's installation.",
    "Install Multus, or empty the list.",
);
pub(crate) const DATA_SOURCE_INCOMPLETE: Reason = Reason::warning(
    "DataSourceIncomplete",
    "An object that a service names lacks a key without which the service's plays fail.",
    "When the key appears.",
    "Add the key.",
);
pub(crate) const DATA_SOURCE_INVALID: Reason = Reason::error(
    "DataSourceInvalid",
    "A key of a service's object is no plain file name, or an ssh key in it is none that ssh can use.",
    "When it is corrected.",
    "Rename the key, or correct it as the message says.",
);
