//! The reasons on computes.

use api::conditions::Reason;
use operator_core::reasons;

pub(crate) const READY: Reason =
    Reason::good("Ready", "nova-compute runs on the host and has registered in its cell.");
pub(crate) const SURPRISING: Reason = Reason::notable(
    "Surprising",
    "Options, in `customServiceConfig` or in the role's default configuration, that nova does not \
     have, refuses or deprecates, or that the operator sets itself; the message has line and \
     column.",
    "",
    "Check whether it is intended.",
);
pub(crate) const RELEASE_UNKNOWN: Reason = Reason::notable(
    "ReleaseUnknown",
    "The annotation `nova.openstack.org/release` of the `NovaCell` names a \
     release whose options are not known here, so options are not judged.",
    "",
    "Name one that the message lists, or none.",
);
pub(crate) const GUESTS_CANNOT_MOVE: Reason = Reason::notable(
    "GuestsCannotMove",
    "The host has neither a certificate for libvirt nor the key for migrations, so nova can move no guest \
     to or from it, as a drain or a resize does.",
    "When the role has `tlsEnabled`, or the Secret is there.",
    "Enable TLS or make the key; the message has the commands.",
);
pub(crate) const NO_WARNINGS: Reason = Reason::absent("NoWarnings", "Nothing is surprising.");
pub(crate) const OTHER_IDENTITY: Reason = Reason::warning(
    "OtherIdentity",
    "Nova has the host under another UUID of its service or compute node than it has registered with, \
     or the cell names another nova, which does not have it: nothing is drained, enabled, removed or \
     restored.",
    "When nova has the recorded identity again, or a deployment has registered the compute in the \
     same nova.",
    "Correct the URL of Keystone or the region of the `NovaCell`, or deploy the compute again, or have \
     all computes of the cell take what this nova has; the message has the commands.",
);
pub(crate) const OTHER_IDENTITY_UNKNOWN: Reason = Reason::unknown(
    "OtherIdentity",
    "What nova has under the name of the host is not known to be the host's.",
    "When nova has the recorded identity again.",
    "See `NovaMatches`.",
);
pub(crate) const OPERATOR_CHANGED: Reason = Reason::waiting(
    "OperatorChanged",
    "Another release of the operator, or of nova, has the named files rendered otherwise than they were \
     deployed, or the host was deployed before the Secret with the key for migrations was made; no input \
     of its deployment has changed, and nothing runs for that.",
    "With the next deployment.",
    "Deploy, if you want it before the next change; the message has the command.",
);
pub(crate) const INPUTS_UNKNOWN: Reason = Reason::unknown(
    "InputMissing",
    "Inputs are missing, so it is unknown.",
    "Yes.",
    "See `InputReady`.",
);
pub(crate) const CELL_MATCHES: Reason =
    Reason::good("CellMatches", "The node asks for no other cell.");
pub(crate) const CELL_MISMATCH: Reason = Reason::error(
    "CellMismatch",
    "The node asks for another cell, or for none; everything but the cell follows it.",
    "No.",
    "Set the annotation back, or let the compute go; the message has the command.",
);
pub(crate) const CELL_ROLE_NOT_FOUND: Reason = Reason::unknown(
    "RoleNotFound",
    "The role that would name the cell does not exist.",
    "When it appears.",
    "Create it again, or correct `spec.role` of the node.",
);
pub(crate) const ROLE_NOT_FOUND: Reason = Reason::warning(
    "RoleNotFound",
    "The node's role does not exist, so what it gives to the compute is not known; a deployed \
     compute stays as it is.",
    "When it appears.",
    "Create it again, or correct `spec.role` of the node.",
);
pub(crate) const INPUT_COMPLETE: Reason =
    Reason::good("InputComplete", "Everything that the configuration and the runs need is there.");
pub(crate) const INPUTS_WAITING: Reason = Reason::unknown(
    "Waiting",
    "The inputs are known once node and cell exist.",
    "Yes.",
    "See `NodeReady` and `NovaCellReady`.",
);
pub(crate) const INVENTORY_NOT_PUBLISHED: Reason = Reason::waiting(
    "InventoryNotPublished",
    "The node has not said yet how the host is reached.",
    "Yes.",
    "See the node's conditions.",
);
pub(crate) const INVENTORY_NOT_NAMED: Reason = Reason::warning(
    "InventoryNotNamed",
    "The compute was made by a user for a node without a cell, so nothing fills in how the host is \
     reached.",
    "No.",
    "Set the two fields to the values in the message, or annotate the node with its cell.",
);
pub(crate) const INVENTORY_NOT_FOUND: Reason = Reason::warning(
    "InventoryNotFound",
    "The ConfigMap of `inventoryConfigMapName` does not exist.",
    "When it appears.",
    "Create it, or name the one that the node publishes.",
);
pub(crate) const INVENTORY_INCOMPLETE: Reason = Reason::warning(
    "InventoryIncomplete",
    "That ConfigMap has no key `inventory`.",
    "When the key appears.",
    "Add the key, or name the ConfigMap that the node publishes.",
);
pub(crate) const SECRET_NOT_FOUND: Reason = Reason::warning(
    "SecretNotFound",
    "A Secret that the `NovaCell` names, or the one with the key for migrations that the host was \
     deployed with, does not exist.",
    "When it appears.",
    "Create it.",
);
pub(crate) const SECRET_INCOMPLETE: Reason = Reason::warning(
    "SecretIncomplete",
    "That Secret lacks a key, or a value cannot be used.",
    "When it is corrected.",
    "Correct it; the message names the key.",
);
pub(crate) const SSH_SECRET_NOT_FOUND: Reason = Reason::warning(
    "SshSecretNotFound",
    "The ssh Secret does not exist.",
    "When it appears.",
    "Create it.",
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
pub(crate) const DEFAULT_CONFIG_NOT_FOUND: Reason = Reason::warning(
    "DefaultConfigNotFound",
    "The ConfigMap of the role's annotation `nova.openstack.org/default-config` does not exist.",
    "When it appears.",
    "Create it, or remove the annotation.",
);
pub(crate) const DEFAULT_CONFIG_INVALID: Reason = Reason::warning(
    "DefaultConfigInvalid",
    "That ConfigMap has neither a key `02-nova-default.conf` nor a single key.",
    "When it is corrected.",
    "Correct it.",
);
pub(crate) const IMAGES_NOT_FILLED: Reason = Reason::waiting(
    "ImagesNotFilled",
    "The operator is filling in its default images.",
    "Yes, where the compute has its node's name.",
    "Wait, or set the fields to the images in the message.",
);
pub(crate) const IMAGE_NOT_SET: Reason = Reason::warning(
    "ImageNotSet",
    "An image is unset and the operator has no default.",
    "No.",
    "Set it in the spec, or in the chart for new computes.",
);
pub(crate) const HOST_NAME_CHANGED: Reason = Reason::warning(
    "HostNameChanged",
    "The node's host name is not the one under which the compute has registered.",
    "No.",
    "Set it back, or delete the compute.",
);
pub(crate) const NODE_READY: Reason = Reason::good("NodeReady", "The node can be used.");
pub(crate) const NODE_NOT_READY: Reason = Reason::waiting(
    "NodeNotReady",
    "The node is not ready yet.",
    "Yes.",
    "See the node's conditions.",
);
pub(crate) const NODE_NOT_FOUND: Reason =
    Reason::warning("NodeNotFound", "The node does not exist.", "When it appears.", "Create it.");
pub(crate) const NODE_TERMINATING: Reason = Reason::waiting(
    "NodeTerminating",
    "The node is being deleted; the compute goes with it.",
    "",
    "",
);
pub(crate) const NOVA_CELL_READY: Reason = Reason::good("NovaCellReady", "The cell can be used.");
pub(crate) const NOVA_CELL_NOT_READY: Reason = Reason::warning(
    "NovaCellNotReady",
    "The cell is not ready; the message repeats why.",
    "When the cell is.",
    "See the `NovaCell`.",
);
pub(crate) const NOVA_CELL_NOT_FOUND: Reason = Reason::warning(
    "NovaCellNotFound",
    "The cell does not exist.",
    "When it appears.",
    "Create it, or correct the annotation.",
);
pub(crate) const NOVA_CELL_UNKNOWN: Reason = Reason::waiting(
    "NovaCellUnknown",
    "The cell has not been reconciled yet.",
    "Yes.",
    "Wait; with a foreign control plane, see its operator.",
);
pub(crate) const RENDERED: Reason = Reason::good("Rendered", "The files are in the named Secret.");
pub(crate) const INVALID_CONFIG: Reason = Reason::error(
    "InvalidConfig",
    "`customServiceConfig` cannot be read, or a file of `defaultConfigOverwrite` has a name that is \
     taken; the message has line and column, or the name.",
    "No.",
    "Correct it.",
);
pub(crate) const INVALID_DEFAULT_CONFIG: Reason = Reason::error(
    "InvalidDefaultConfig",
    "The role's default configuration cannot be read; the message has line and column.",
    "No.",
    "Correct the ConfigMap.",
);
pub(crate) const DEPLOYED: Reason = Reason::good(
    "Deployed",
    "They run, and the compute has registered; `UpToDate` reports the rest.",
);
pub(crate) const DEPLOYING: Reason =
    Reason::waiting("Deploying", "They are being deployed.", "Yes.", "Wait.");
pub(crate) const WAITING_FOR_TURN: Reason = reasons::WAITING_FOR_TURN.described(
    "As many computes of the role that were in service as `maxUnavailable` allows are being \
     deployed, fail or are down (`ServiceUp`).",
    "When one of them is in service again.",
    "Wait; where computes that fail or are down are named, correct their cause, raise \
     `maxUnavailable`, or set `deploy: false` on their nodes.",
);
pub(crate) const PAUSED: Reason = reasons::PAUSED.described(
    "`pauseOnFailure` is set, or `nova.openstack.org/drain-before` is true, and the named compute of \
     the role fails.",
    "When no compute of the role fails.",
    "Correct its cause, or follow the message.",
);
pub(crate) const WAITING_FOR_DRAIN: Reason = Reason::waiting(
    "WaitingForDrain",
    "`nova.openstack.org/drain-before` is true, and the host is not drained yet.",
    "When it is drained.",
    "See `Drained`; without a drain, set the annotation of the node to `false`.",
);
pub(crate) const DRAIN_BEFORE_INVALID: Reason = Reason::warning(
    "DrainBeforeInvalid",
    "The annotation `nova.openstack.org/drain-before` has no legal value; nothing is deployed.",
    "No.",
    "Set it to `true` or `false`, or remove it.",
);
pub(crate) const DRAIN_WITHOUT_API: Reason = Reason::warning(
    "NovaAPINotUsed",
    "`nova.openstack.org/drain-before` is true, and the operator does not use nova's API, so no host \
     can be drained and nothing is deployed to computes that were deployed before.",
    "No.",
    "Set `nova.api.enabled` of the chart to true, or the annotation to `false`.",
);
pub(crate) const WAITING: Reason = Reason::waiting(
    "Waiting",
    "It waits; the other conditions report for what.",
    "Yes.",
    "See the others.",
);
pub(crate) const SERVICE_UP: Reason = Reason::good("ServiceUp", "nova-compute reports to nova.");
pub(crate) const SERVICE_DISABLED: Reason = Reason::good(
    "ServiceDisabled",
    "nova-compute reports to nova; its service is disabled, so nova schedules nothing to it.",
);
pub(crate) const SERVICE_DOWN: Reason = Reason::warning(
    "ServiceDown",
    "Nova found the service down twice in a row.",
    "When nova-compute reports again.",
    "Start nova-compute on the host; the message says since when it has not reported.",
);
pub(crate) const FORCED_DOWN: Reason = Reason::warning(
    "ForcedDown",
    "An administrator has forced the service down.",
    "No.",
    "Set it up again once the host is well; the message has the command.",
);
pub(crate) const SERVICE_NOT_FOUND: Reason = Reason::warning(
    "ServiceNotFound",
    "Nova had no service of the host twice in a row.",
    "No.",
    "Deploy the compute again; the message has the command.",
);
pub(crate) const CELL_NOT_ANSWERING: Reason = Reason::unknown(
    "CellNotAnswering",
    "The database of the cell does not answer nova's API.",
    "When it answers.",
    "Start the database of the cell.",
);
pub(crate) const NOVA_NOT_ANSWERING: Reason = Reason::unknown(
    "NovaNotAnswering",
    "Nova's API has not answered three times in a row, or an input of the cell is missing or wrong.",
    "When it answers.",
    "See the message, or `NovaAPIReady` of the `NovaCell`.",
);
pub(crate) const NOT_READ: Reason = Reason::unknown(
    "NotRead",
    "Nova's API has not been read often enough to say.",
    "Yes.",
    "Wait for the next readings.",
);
pub(crate) const WAITING_FOR_NOVA: Reason = Reason::waiting(
    "WaitingForNova",
    "The compute was deployed and has registered, and nova's API has not been read since.",
    "With the next reading, at the latest after `nova.api.interval` of the chart.",
    "Wait.",
);
pub(crate) const NOT_REGISTERED: Reason = Reason::unknown(
    "NotRegistered",
    "The compute has not registered yet, so nova is not asked.",
    "Yes.",
    "See `DeploymentReady`.",
);
pub(crate) const MAPPED: Reason =
    Reason::good("Mapped", "The host is mapped to its cell; nova's scheduler knows it.");
pub(crate) const WAITING_FOR_DISCOVERY: Reason = Reason::waiting(
    "WaitingForDiscovery",
    "Nova has the service of the host and has not mapped the host to its cell, for less than two \
     minutes, or 20 where others than nova-operator discover hosts.",
    "When the host is discovered.",
    "Wait; discover hosts with `nova-manage` where neither an operator nor nova does.",
);
pub(crate) const NOT_MAPPED: Reason = Reason::warning(
    "NotMapped",
    "Nova has the service of the host and has not mapped the host to its cell for two minutes, or 20 \
     where others than nova-operator discover hosts.",
    "When the host is discovered.",
    "As the message says: see `HostDiscovery` of the cell, or discover hosts with `nova-manage`.",
);
