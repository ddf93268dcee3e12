//! The reasons of the conditions that nova-operator writes: here those of several kinds.

use api::conditions::Reason;
pub(crate) use operator_core::reasons::{
    ALREADY_EXISTS, FORBIDDEN, INPUTS_CHANGED, INVALID, NEVER_DEPLOYED, NOT_REQUESTED, QUEUED,
    UP_TO_DATE,
};

pub(crate) mod cell;
pub(crate) mod cleanup;
pub(crate) mod compute;
pub(crate) mod drain;
pub(crate) mod node;
pub(crate) mod removal;
pub(crate) mod service;

pub(crate) const NOVA_SERVICE_LISTED: Reason = Reason::warning(
    "NovaServiceListed",
    "A service of type nova is listed for the node, and would write the compute's files: the \
     compute runs nothing.",
    "When the service is off the list.",
    "Take it off `spec.services`, or the node's cell away.",
);
pub(crate) const NOT_RENDERED: Reason = Reason::unknown(
    "InputMissing",
    "The files are rendered once every input is there.",
    "Yes.",
    "See `InputReady`.",
);
pub(crate) const SECRET_NOT_OURS: Reason = Reason::warning(
    "SecretNotOurs",
    "A Secret of the name exists that the operator has not made; it is left alone.",
    "When it is deleted.",
    "Delete it if it is not needed; the message has the command.",
);
