//! The reasons on deployments.

api::reasons! {
    pub(crate) mod catalog;

    /// Whether the deployment has succeeded.
    const SUMMARY;

    READY: good "Ready" means "Every service succeeded on every host.";

    /// The node sets of the deployment.
    const SETUP;

    SET_UP: good "Ready" means "Every node set is set up, or was when the deployment began.";
    NODE_SET_NOT_FOUND: warning "NodeSetNotFound" means "A node set does not exist."
        heals "When it appears."
        step "Create it, or delete the deployment and create it with the right name.";
    NODE_SET_UNREADABLE: warning "NodeSetUnreadable"
        means "A node set exists, and its operator cannot read it."
        heals "When it is corrected." step "Correct the field that the message names.";
    NODE_SET_NOT_READY: warning "NodeSetNotReady"
        means "Something is missing for a node set; the message says what."
        heals "When the node set is set up."
        step "See the node set's `InputReady` and `SetupReady`.";
    DEPLOYMENT_UNDER_WAY: waiting "DeploymentUnderWay"
        means "Another deployment, which has begun or is older, goes first on some of the hosts."
        heals "When it has run, or is gone."
        step "Wait, or delete the deployment that the message names.";
    NODES_NOT_READY: warning "NodesNotReady"
        means "Hosts have no node, or it is being deleted."
        heals "When they have." step "See the node set's `NodesAccepted`.";
    MACHINES_NOT_READY: warning "MachinesNotReady"
        means "Machines of hosts are not there; nothing is deployed to these hosts."
        heals "When they are."
        step "See the node set's `NodeSetBaremetalProvisionReady`; an `ansibleLimit` leaves hosts \
            out.";

    /// What the deployment needs of its node sets.
    const INPUTS;

    INPUT_COMPLETE: good "Ready" means "Every input is there.";
    NODE_SET_NOT_FOUND; NODE_SET_UNREADABLE;
    NODE_SET_REPLACED: error "NodeSetReplaced"
        means "A node set with which the deployment began was deleted, and another one has its \
            name."
        heals "No." step "Delete the deployment, and create one for the new node set.";
    MACHINES_NOT_READY;

    /// Certificates and inventories.
    const FILES;

    CERTIFICATES_NOT_READY: warning "CertificatesNotReady"
        means "A service has certificates, or brings those of others, and not every host has its \
            own."
        heals "When they are issued." step "See the node set's `NodeSetCertificatesReady`.";
    INVENTORY_NOT_FOUND: warning "InventoryNotFound"
        means "The Secret with the inventory of a node set does not exist."
        heals "Yes, as soon as nothing else is wrong with the node set."
        step "Look at the node set.";

    /// The hosts that it deploys.
    const HOSTS;

    LIMIT_MATCHES_NO_HOST: error "LimitMatchesNoHost"
        means "`ansibleLimit` leaves out every host, or names one that no node set has."
        heals "When a host appears that it names."
        step "Delete the deployment, and create one with another limit.";
    NO_HOSTS: warning "NoHosts"
        means "None of its node sets has hosts, so there is nothing to run on."
        heals "When a node set gets hosts."
        step "Add nodes to a node set, or delete the deployment.";
    TOO_MANY_HOSTS: error "TooManyHosts"
        means "A service that has one run for all node sets would have more than 500 hosts, or the \
            status cannot list so many."
        heals "No." step "Create several deployments, each with fewer node sets.";

    /// Its progress.
    const DEPLOYMENT;

    READY;
    INIT: unknown "Init" means "The deployment has not begun."
        heals "See the others." step "See the others.";
    REQUESTED: waiting "Requested" means "Services are being deployed."
        heals "Yes." step "Wait.";
    crate::reasons::QUEUED; crate::reasons::RUN_BLOCKED; crate::reasons::AWAITING_DISRUPTION;
    BACKOFF_LIMIT_EXCEEDED: error "BackoffLimitExceeded"
        means "All attempts of a service on some hosts failed, or another one would be refused as \
            well; the other hosts are done. Nothing happens any more."
        heals "No." step "Correct the causes in the message, and create another deployment.";
    DELETION_NOT_CONFIRMED: warning "DeletionNotConfirmed"
        means "It is to be deleted while it runs on hosts: nothing new begins."
        heals "It goes when what runs has ended." step "Wait, or annotate it as the message says.";
}
