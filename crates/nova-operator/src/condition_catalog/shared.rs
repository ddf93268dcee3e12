//! Reasons that conditions of several kinds have.

use operator_core::condition_catalog::ReasonSpec;

use crate::conflicting_service;

/// A service of phase 0 stands in the way of the compute.
pub(super) const SERVICE_LISTED: ReasonSpec = ReasonSpec::bad(
    conflicting_service::REASON,
    "A service of type nova is listed for the node, and would write the compute's files: the \
     compute runs nothing.",
    "When the service is off the list.",
    "Take it off `spec.services`, or the node's cell away.",
);

/// A cell's and a compute's files wait for what they are rendered from.
pub(super) const NOT_RENDERED: ReasonSpec = ReasonSpec::bad(
    "InputMissing",
    "The files are rendered once every input is there.",
    "Yes.",
    "See `InputReady`.",
)
.unknown();

/// The name of a cell's or a compute's files is taken.
pub(super) const SECRET_NOT_OURS: ReasonSpec = ReasonSpec::bad(
    "SecretNotOurs",
    "A Secret of the name exists that the operator has not made; it is left alone.",
    "When it is deleted.",
    "Delete it where nobody needs it; the message has the command.",
);
