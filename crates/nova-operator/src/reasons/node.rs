//! The reasons on nodes.

api::reasons! {
    pub(crate) mod catalog;

    /// What a node says of its compute.
    const COMPUTE;

    READY: good "Ready"
        means "The compute is ready in its cell; nova schedules to it after `discover_hosts`.";
    DEPLOYING: waiting "Deploying"
        means "The compute is on its way; its own conditions report more."
        heals "Yes." step "Wait, or describe the `NovaExternalCompute`.";
    CELL_MISMATCH: error "CellMismatch"
        means "The node asks for another cell, or for none, than that of a compute that has run or \
            has a `customServiceConfig`."
        heals "No."
        step "Set the annotation back, or let the compute go; the message has the command and \
            names what is lost.";
    CELL_ZERO: error "CellZero" means "The annotation names a cell0."
        heals "No." step "Name another cell.";
    CELL_NAME_INVALID: error "CellNameInvalid"
        means "The annotation cannot be the name of a `NovaCell`."
        heals "No." step "Correct it.";
    COMPUTE_DIFFERS: error "ComputeDiffers"
        means "A compute that a user made with the node's name differs from what the node requests."
        heals "No." step "Correct the named fields, or delete it.";
    COMPUTE_NOT_OURS: error "ComputeNotOurs"
        means "The compute of the node's name belongs to something else."
        heals "No." step "Delete it.";
    COMPUTE_TERMINATING: waiting "ComputeTerminating"
        means "The compute is being deleted; another one follows if the node has a cell."
        heals "Yes." step "Wait.";
    LEFT_IN_NOVA: error "LeftInNova"
        means "The compute goes or is gone; nova still has its records of the host."
        heals "When the compute is gone, or, with a foreign `NovaCell`, with the node or its next \
            compute."
        step "Remove them; the message has the commands.";
    ROLE_NOT_FOUND: warning "RoleNotFound"
        means "The node's role does not exist; its compute stays as it is."
        heals "When it appears." step "Create it again, or correct `spec.role`.";
    NODE_SET_NOT_FOUND: warning "NodeSetNotFound"
        means "The node's node set does not exist; its compute stays as it is."
        heals "When it appears." step "Create it again.";
    CELL_UNKNOWN: warning "CellUnknown"
        means "A service of type nova deploys the compute, and does not name its cell."
        heals "When the services of the node mount the Secret of one cell."
        step "Name that Secret in `dataSources` of the service.";

    /// Annotations that do not count.
    const ANNOTATIONS;

    ANNOTATIONS_IGNORED: warning "AnnotationsIgnored"
        means "Annotations of this operator are set on an object where they do not count; the \
            message names them."
        heals "When they are removed."
        step "Set them where they count, as the message says.";
}
