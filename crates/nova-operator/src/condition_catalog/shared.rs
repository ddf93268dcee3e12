//! Reasons that the conditions of several kinds share.

use operator_core::condition_catalog::ReasonSpec;

use crate::conflicting_service;

/// A service of phase 0 conflicts with the compute.
pub(super) const SERVICE_LISTED: ReasonSpec = ReasonSpec::bad(
    conflicting_service::REASON,
    "A service of type nova is listed for the node, and would write the compute's files: the \
     compute runs nothing.",
    "When the service is off the list.",
    "Take it off `spec.services`, or the node's cell away.",
);

/// The files of a cell or a compute cannot be rendered before their inputs are complete.
pub(super) const NOT_RENDERED: ReasonSpec = ReasonSpec::bad(
    "InputMissing",
    "The files are rendered once every input is there.",
    "Yes.",
    "See `InputReady`.",
)
.unknown();

/// The name of the Secret for the files of a cell or a compute is taken.
pub(super) const SECRET_NOT_OURS: ReasonSpec = ReasonSpec::bad(
    "SecretNotOurs",
    "A Secret of the name exists that the operator has not made; it is left alone.",
    "When it is deleted.",
    "Delete it where nobody needs it; the message has the command.",
);
