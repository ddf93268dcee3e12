//! The reasons of the conditions that nova-operator writes: here those of several kinds.

use api::conditions::Reason;
pub(crate) use operator_core::reasons::{
    ALREADY_EXISTS, CERT_MANAGER_NOT_FOUND, FORBIDDEN, INPUTS_CHANGED, INVALID, ISSUER_NOT_FOUND,
    ISSUER_NOT_PERMITTED, ISSUING, NEVER_DEPLOYED, NOT_REQUESTED, QUEUED, RUN_BLOCKED, UP_TO_DATE,
};

pub(crate) mod audit;
pub(crate) mod cell;
pub(crate) mod cleanup;
pub(crate) mod compute;
pub(crate) mod drain;
pub(crate) mod identity;
pub(crate) mod node;
pub(crate) mod removal;
pub(crate) mod service;

pub(crate) const COMPUTES_UP: Reason = Reason::good("ComputesUp", "No compute is down or unknown.");
pub(crate) const COMPUTES_DOWN: Reason = Reason::warning(
    "ComputesDown",
    "The named computes are down; the message has the first five and the counts.",
    "When they are up.",
    "See `ServiceUp` of those computes.",
);
pub(crate) const COMPUTES_NOT_REGISTERED: Reason = Reason::waiting(
    "ComputesNotRegistered",
    "No cell of the namespace has a service of the named hosts; the message has the first five.",
    "When they are deployed.",
    "Deploy the node set; where that was done, look on the host at the log of nova-compute.",
);
pub(crate) const COMPUTES_NOT_READ: Reason = Reason::unknown(
    "ComputesUnknown",
    "It is unknown whether some computes are up; the message has their number.",
    "Yes.",
    "See `NovaAPIReady` of their cells, and `ServiceUp` of the computes.",
);
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
