//! The reasons of the conditions that dataplane-operator writes, by kind.

pub(crate) use operator_core::reasons::{
    ALREADY_EXISTS, AWAITING_DISRUPTION, CERT_MANAGER_NOT_FOUND, FORBIDDEN, INPUTS_CHANGED,
    INVALID, ISSUER_NOT_FOUND, ISSUER_NOT_PERMITTED, ISSUING, NEVER_DEPLOYED, NOT_REQUESTED,
    PAUSED, QUEUED, RUN_BLOCKED, SSH_SECRET_INCOMPLETE, SSH_SECRET_INVALID, UP_TO_DATE,
    WAITING_FOR_TURN,
};

pub(crate) mod data_plane;
pub(crate) mod deployment;
pub(crate) mod external;
pub(crate) mod inputs;
pub(crate) mod machines;
pub(crate) mod node_set;
pub(crate) mod readiness_gates;
pub(crate) mod role;
pub(crate) mod service;

api::reasons! {
    pub(crate) mod catalog;

    /// Why no certificates can be issued.
    const ISSUERS;

    super::CERT_MANAGER_NOT_FOUND; super::ISSUER_NOT_FOUND; super::ISSUER_NOT_PERMITTED;

    /// Why certificates are not issued.
    const CERTIFICATES;

    super::ISSUING; super::CERT_MANAGER_NOT_FOUND; super::ISSUER_NOT_FOUND;
    super::ISSUER_NOT_PERMITTED;

    /// Annotations that do not count.
    const ANNOTATIONS;

    ANNOTATIONS_IGNORED: warning "AnnotationsIgnored"
        means "Annotations of this operator are set on an object where they do not count; the \
            message names them."
        heals "When they are removed."
        step "Set them where they count; the message has the commands.";
}
