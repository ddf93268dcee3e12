//! The reasons of a compute whose host has lost its identity in nova.

api::reasons! {
    pub(crate) mod catalog;

    /// What keeps a deployment from restoring the identity.
    const COMPUTE;

    SERVERS: warning "IdentityHasServers"
        means "The host has lost its identity, or placement has its name under another one, and \
            nova has servers or open migrations there: nothing is restored or deleted."
        heals "When they are gone."
        step "Delete or evacuate the servers that the message names, or restore the identity by \
            hand as it says.";
    IN_USE: warning "IdentityInUse"
        means "Another nova-compute uses the identity of the host, or reports under its name."
        heals "When it does not any more."
        step "Stop that nova-compute; the message has the command.";
    NOT_CHECKED: warning "IdentityNotChecked"
        means "The host has lost its identity, and nova does not say whether it has servers there."
        heals "When nova answers." step "Follow the message.";
}
