//! The reasons on roles and their nodes.

api::reasons! {
    pub(crate) mod catalog;

    /// All nodes of a role.
    const NODES;

    NODES_READY: good "NodesReady" means "All nodes are ready; a role without nodes is ready too.";

    /// Certificates that nothing brings to hosts.
    const CERTIFICATES;

    CERTIFICATES_NOT_BROUGHT: error "CertificatesNotBrought"
        means "`tlsEnabled` is true, and a service with `tlsCerts` is listed without one before it \
            that brings certificates to hosts."
        heals "No." step "List `install-certs` before it, or set `tlsEnabled: false`.";

    /// The inventories of a role.
    const NODES_SETUP;

    NODES_SET_UP: good "Ready" means "Every node is in an inventory.";

    /// The data plane of a role.
    const DATA_PLANE;

    FOUND: good "Found" means "What node and role leave open is taken from the data plane.";
    DATA_PLANE_NOT_FOUND: warning "DataPlaneNotFound"
        means "The data plane does not exist, so nothing is taken from it."
        heals "When it appears." step "Create it, or correct `spec.dataPlane`.";

    /// Whether a node is ready.
    const SUMMARY;

    READY: good "Ready" means "Every service succeeded on this host.";

    /// What a node itself lacks.
    const INPUTS;

    ROLE_NOT_NAMED: error "RoleNotNamed" means "Neither `spec.role` nor `spec.services` is set."
        heals "No." step "Name the role, or list services.";
    ROLE_NOT_FOUND: warning "RoleNotFound" means "The role does not exist."
        heals "When it appears." step "Create it, or correct `spec.role`.";
    HOST_ADDRESS_MISSING: error "HostAddressMissing"
        means "Neither `ansibleHost` nor `hostName` is set."
        heals "No." step "Set one.";
    HOST_NAME_DIFFERS: error "HostNameDiffers"
        means "`tlsEnabled` is true, and the variable `canonical_hostname` is another name than \
            the host's, which its certificates carry."
        heals "No." step "Set `spec.hostName`, and take the variable out.";
    SSH_SECRET_NOT_NAMED: error "SshSecretNotNamed"
        means "Neither node nor role names an ssh Secret."
        heals "No." step "Name it in `ansibleSSHPrivateKeySecret`.";
    NETWORK_ATTACHMENTS_DIFFER: error "NetworkAttachmentsDiffer"
        means "The node's `networkAttachments` are not its role's, or another node's where the \
            role has none."
        heals "No." step "Make the lists equal, or empty the node's.";

    /// The inventory of a node.
    const SETUP;

    SET_UP: good "Ready" means "The inventory is written.";

    /// The deployment of a node.
    const DEPLOYMENT;

    DEPLOYED: good "Deployed"
        means "Every service succeeded on this host; `UpToDate` reports with which inputs.";
    DEPLOYING: waiting "Deploying" means "Services are being deployed; the role names the run."
        heals "Yes." step "Wait.";
    crate::reasons::QUEUED; crate::reasons::RUN_BLOCKED; crate::reasons::NOT_REQUESTED;
    crate::reasons::WAITING_FOR_TURN; crate::reasons::PAUSED;
    LEFT_OUT: waiting "LeftOut"
        means "`ansibleLimit` leaves the host out, and nothing was deployed to it."
        heals "No." step "Widen or remove the limit.";
    crate::reasons::inputs::catalog::INPUT_MISSING;
    PARTIAL_RUN: waiting "PartialRun" means "Only a part has run, for tags or a limit are set."
        heals "No." step "Remove `ansibleTags`, `ansibleSkipTags` and `ansibleLimit`.";
    crate::reasons::FORBIDDEN; crate::reasons::INVALID; crate::reasons::ALREADY_EXISTS;

    /// Whether the present inputs are deployed.
    const CHANGES;

    crate::reasons::UP_TO_DATE; crate::reasons::NEVER_DEPLOYED; crate::reasons::INPUTS_CHANGED;
    PARTIAL_RUN;
    INPUT_UNKNOWN: unknown "InputMissing"
        means "Variables or a service are missing, so it is unknown."
        heals "When they appear." step "See `InputReady`.";
    ROLE_UNKNOWN: unknown "RoleUnknown"
        means "The host has no role any more, and what it is to have is not known."
        heals "When its role appears." step "Create it again, or correct `spec.role`.";
}
