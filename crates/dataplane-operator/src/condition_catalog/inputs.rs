//! The reasons of missing or invalid inputs that several kinds share.

use operator_core::condition_catalog::{ConditionSpec, ReasonSpec, condition};

use crate::host_conflicts::shared_keys::{HOST_KEY_SHARED, HOST_KEY_UNIQUE};

pub(super) const HOST_ADDRESS_INVALID: ReasonSpec = ReasonSpec::bad(
    "HostAddressInvalid",
    "A variable `ansible_host` or `ansible_port` is no plain address or port, or secret.",
    "No.",
    "Set `ansibleHost` and `ansiblePort`.",
);

pub(super) const SSH_SECRET_NOT_FOUND: ReasonSpec = ReasonSpec::bad(
    "SshSecretNotFound",
    "The ssh Secret does not exist.",
    "When it appears.",
    "Create it; the message has the command.",
);

pub(super) const SSH_SECRET_INCOMPLETE: ReasonSpec = ReasonSpec::bad(
    "SshSecretIncomplete",
    "The ssh Secret lacks `ssh-privatekey`.",
    "When the key appears.",
    "Add the key.",
);

pub(super) const HOST_TAKEN: ReasonSpec = ReasonSpec::bad(
    "HostTaken",
    "An older object describes the same host: a node, or a node set.",
    "When the other one gives it up.",
    "Take the host out of one of the two.",
);

pub(super) const KEY_SHARED: ReasonSpec = ReasonSpec::bad(
    HOST_KEY_SHARED,
    "A host shows an ssh host key that an older one of the namespace shows at another address.",
    "When the host has a key of its own, or the shared one is accepted.",
    "Make new host keys on it, or annotate the object with the command in the message.",
);

/// Condition on shared ssh host keys. Hosts in service continue.
pub(super) const KEY_UNIQUE: ConditionSpec = condition(
    HOST_KEY_UNIQUE,
    "No other host shows the key of one of its hosts; absent where that is so. `Ready` does not \
     depend on it.",
    &[KEY_SHARED],
);

pub(super) const INPUT_COMPLETE: ReasonSpec =
    ReasonSpec::good("InputComplete", "Everything that a deployment needs is there.");

pub(super) const SERVICE_NOT_FOUND: ReasonSpec = ReasonSpec::bad(
    "ServiceNotFound",
    "A listed service does not exist.",
    "When it appears.",
    "Create it, or take it off the role's list.",
);

pub(super) const SERVICE_UNREADABLE: ReasonSpec = ReasonSpec::bad(
    "ServiceUnreadable",
    "A listed service exists, and its operator cannot read it.",
    "When it is corrected.",
    "Correct the field that the message names.",
);

pub(super) const SERVICE_INVALID: ReasonSpec = ReasonSpec::bad(
    "ServiceInvalid",
    "A listed service cannot be deployed as it is written.",
    "When it is corrected.",
    "Correct the field that the message names.",
);

pub(super) const DATA_SOURCE_NOT_FOUND: ReasonSpec = ReasonSpec::bad(
    "DataSourceNotFound",
    "A ConfigMap or Secret that a service names does not exist.",
    "When it appears.",
    "Create it.",
);

pub(super) const VARIABLES_NOT_FOUND: ReasonSpec = ReasonSpec::bad(
    "VariablesNotFound",
    "A ConfigMap or Secret that `ansibleVarsFrom` names does not exist.",
    "When it appears.",
    "Create it, or set `optional: true`.",
);

pub(super) const VARIABLES_INVALID: ReasonSpec = ReasonSpec::bad(
    "VariablesInvalid",
    "A ConfigMap or Secret that `ansibleVarsFrom` names has a key that is no text.",
    "When it is corrected.",
    "Take the key out; mount files with a service's `dataSources`.",
);

pub(super) const NETWORK_NOT_FOUND: ReasonSpec = ReasonSpec::bad(
    "NetworkAttachmentNotFound",
    "A `NetworkAttachmentDefinition` that `networkAttachments` names does not exist.",
    "When it appears.",
    "Create it, or correct the list.",
);

pub(super) const NETWORKS_NOT_SERVED: ReasonSpec = ReasonSpec::bad(
    "NetworkAttachmentsNotServed",
    "`networkAttachments` are set, and the cluster has no kind `NetworkAttachmentDefinition`.",
    "Within half a minute of the kind's installation.",
    "Install Multus, or empty the list.",
);
