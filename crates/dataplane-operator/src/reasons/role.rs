//! The reasons on roles and their nodes.

use api::conditions::Reason;

pub(crate) const PARTIAL_RUN: Reason = Reason::waiting(
    "PartialRun",
    "Only a part has run, for tags or a limit are set.",
    "No.",
    "Remove `ansibleTags`, `ansibleSkipTags` and `ansibleLimit`.",
);
pub(crate) const NODES_READY: Reason =
    Reason::good("NodesReady", "All nodes are ready; a role without nodes is ready too.");
pub(crate) const NODES_SET_UP: Reason = Reason::good("Ready", "Every node is in an inventory.");
pub(crate) const FOUND: Reason =
    Reason::good("Found", "What node and role leave open is taken from the data plane.");
pub(crate) const DATA_PLANE_NOT_FOUND: Reason = Reason::warning(
    "DataPlaneNotFound",
    "The data plane does not exist, so nothing is taken from it.",
    "When it appears.",
    "Create it, or correct `spec.dataPlane`.",
);
pub(crate) const READY: Reason = Reason::good("Ready", "Every service succeeded on this host.");
pub(crate) const SET_UP: Reason = Reason::good("Ready", "The inventory is written.");
pub(crate) const INPUT_UNKNOWN: Reason = Reason::unknown(
    "InputMissing",
    "Variables or a service are missing, so it is unknown.",
    "When they appear.",
    "See `InputReady`.",
);
pub(crate) const ROLE_UNKNOWN: Reason = Reason::unknown(
    "RoleUnknown",
    "The host has no role any more, and what it is to have is not known.",
    "When its role appears.",
    "Create it again, or correct `spec.role`.",
);
pub(crate) const ROLE_NOT_NAMED: Reason = Reason::error(
    "RoleNotNamed",
    "Neither `spec.role` nor `spec.services` is set.",
    "No.",
    "Name the role, or list services.",
);
pub(crate) const ROLE_NOT_FOUND: Reason = Reason::warning(
    "RoleNotFound",
    "The role does not exist.",
    "When it appears.",
    "Create it, or correct `spec.role`.",
);
pub(crate) const HOST_ADDRESS_MISSING: Reason = Reason::error(
    "HostAddressMissing",
    "Neither `ansibleHost` nor `hostName` is set.",
    "No.",
    "Set one.",
);
pub(crate) const SSH_SECRET_NOT_NAMED: Reason = Reason::error(
    "SshSecretNotNamed",
    "Neither node nor role names an ssh Secret.",
    "No.",
    "Name it in `ansibleSSHPrivateKeySecret`.",
);
pub(crate) const NETWORK_ATTACHMENTS_DIFFER: Reason = Reason::error(
    "NetworkAttachmentsDiffer",
    "The node's `networkAttachments` are not its role's, or another node's where the role has \
     none.",
    "No.",
    "Make the lists equal, or empty the node's.",
);
pub(crate) const DEPLOYED: Reason = Reason::good(
    "Deployed",
    "Every service succeeded on this host; `UpToDate` reports with which inputs.",
);
pub(crate) const DEPLOYING: Reason = Reason::waiting(
    "Deploying",
    "Services are being deployed; the role names the run.",
    "Yes.",
    "Wait.",
);
pub(crate) const LEFT_OUT: Reason = Reason::waiting(
    "LeftOut",
    "`ansibleLimit` leaves the host out, and nothing was deployed to it.",
    "No.",
    "Widen or remove the limit.",
);
pub(crate) const CERTIFICATES_NOT_BROUGHT: Reason = Reason::error(
    "CertificatesNotBrought",
    "`tlsEnabled` is true, and a service with `tlsCerts` is listed without one before it that brings \
     certificates to hosts.",
    "No.",
    "List `install-certs` before it, or set `tlsEnabled: false`.",
);
pub(crate) const HOST_NAME_DIFFERS: Reason = Reason::error(
    "HostNameDiffers",
    "`tlsEnabled` is true, and the variable `canonical_hostname` is another name than the host's, \
     which its certificates carry.",
    "No.",
    "Set `spec.hostName`, and take the variable out.",
);
