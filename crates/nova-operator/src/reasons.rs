//! The reasons of the conditions that nova-operator writes: here those of several kinds.

pub(crate) use operator_core::reasons::{
    ALREADY_EXISTS, CERT_MANAGER_NOT_FOUND, FORBIDDEN, INPUTS_CHANGED, INVALID, ISSUER_NOT_FOUND,
    ISSUER_NOT_PERMITTED, ISSUING, NEVER_DEPLOYED, NOT_REQUESTED, QUEUED, RUN_BLOCKED,
    SSH_SECRET_INCOMPLETE, SSH_SECRET_INVALID, UP_TO_DATE,
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

api::reasons! {
    pub(crate) mod catalog;

    /// Whether all computes of a role, node set or cell are up.
    const COMPUTES;

    COMPUTES_UP: good "ComputesUp" means "No compute is down or unknown.";
    COMPUTES_DOWN: warning "ComputesDown"
        means "The named computes are down; the message has the first five and the counts."
        heals "When they are up." step "See `ServiceUp` of those computes.";
    COMPUTES_NOT_READ: unknown "ComputesUnknown"
        means "It is unknown whether some computes are up; the message has their number."
        heals "Yes." step "See `NovaAPIReady` of their cells, and `ServiceUp` of the computes.";

    /// A service that would write the files of a compute.
    const NOVA_SERVICE;

    NOVA_SERVICE_LISTED: warning "NovaServiceListed"
        means "A service of type nova is listed for the node, and would write the compute's files: \
            a compute of the operator runs nothing, and the annotation of the cell counts for \
            nothing."
        heals "When the service is off the list."
        step "Take it off `spec.services`, or the node's cell away.";

    /// Writes that the API server rejects.
    const REJECTED_WRITES;

    super::FORBIDDEN; super::INVALID; super::ALREADY_EXISTS;

    /// Files that are not rendered.
    const RENDERING;

    SECRET_NOT_OURS: warning "SecretNotOurs"
        means "A Secret of the name exists that the operator has not made; it is left alone."
        heals "When it is deleted."
        step "Delete it if it is not needed; the message has the command.";
    NOT_RENDERED: unknown "InputMissing"
        means "The files are rendered once every input is there and can be used."
        heals "Yes." step "See `InputReady`.";
}
