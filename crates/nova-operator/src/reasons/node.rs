//! The reasons on nodes.

use api::conditions::Reason;

pub(crate) const READY: Reason = Reason::good(
    "Ready",
    "The compute is ready in its cell; nova schedules to it after `discover_hosts`.",
);
pub(crate) const DEPLOYING: Reason = Reason::waiting(
    "Deploying",
    "The compute is on its way; its own conditions report more.",
    "Yes.",
    "Wait, or describe the `NovaExternalCompute`.",
);
pub(crate) const CELL_MISMATCH: Reason = Reason::error(
    "CellMismatch",
    "The node asks for another cell, or for none, than that of a compute that has run or \
     has a `customServiceConfig`.",
    "No.",
    "Set the annotation back, or let the compute go; the message has the command and names what is \
     lost.",
);
pub(crate) const CELL_ZERO: Reason =
    Reason::error("CellZero", "The annotation names a cell0.", "No.", "Name another cell.");
pub(crate) const CELL_NAME_INVALID: Reason = Reason::error(
    "CellNameInvalid",
    "The annotation cannot be the name of a `NovaCell`.",
    "No.",
    "Correct it.",
);
pub(crate) const COMPUTE_DIFFERS: Reason = Reason::error(
    "ComputeDiffers",
    "A compute that a user made with the node's name differs from what the node requests.",
    "No.",
    "Correct the named fields, or delete it.",
);
pub(crate) const COMPUTE_NOT_OURS: Reason = Reason::error(
    "ComputeNotOurs",
    "The compute of the node's name belongs to something else.",
    "No.",
    "Delete it.",
);
pub(crate) const COMPUTE_TERMINATING: Reason = Reason::waiting(
    "ComputeTerminating",
    "The compute is being deleted; another one follows if the node has a cell.",
    "Yes.",
    "Wait.",
);
pub(crate) const LEFT_IN_NOVA: Reason = Reason::error(
    "LeftInNova",
    "The compute goes or is gone; nova still has its records of the host.",
    "When the compute is gone, or, with a foreign `NovaCell`, with the node or its next \
     compute.",
    "Remove them; the message has the commands.",
);
pub(crate) const ROLE_NOT_FOUND: Reason = Reason::warning(
    "RoleNotFound",
    "The node's role does not exist; its compute stays as it is.",
    "When it appears.",
    "Create it again, or correct `spec.role`.",
);
