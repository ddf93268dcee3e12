//! The reasons on node sets.

api::reasons! {
    pub(crate) mod catalog;

    /// Whether the node set is ready.
    const SUMMARY;

    READY: good "Ready" means "The last deployment succeeded on every host.";

    /// What the node set itself lacks.
    const INPUTS;

    TOO_MANY_HOSTS: error "TooManyHosts" means "The node set has more than 500 nodes."
        heals "No." step "Divide them among several node sets.";
    INVENTORY_TOO_LARGE: error "InventoryTooLarge"
        means "The inventory does not fit into one object."
        heals "No."
        step "Divide the nodes, or put large variables into files of a service's `dataSources`.";
    HOST_NAME_INVALID: error "HostNameInvalid"
        means "A node's host name is one that no host can have."
        heals "No." step "Correct `hostName`, or the node's key.";
    HOST_ADDRESS_MISSING: error "HostAddressMissing"
        means "A pre-provisioned node has no IP address in `ansible.ansibleHost`."
        heals "No." step "Set it.";
    HOST_TWICE: error "HostTwice" means "Two nodes of the set are one host."
        heals "No." step "Take one of them out, or correct it.";
    VOLUME_NAME_INVALID: error "VolumeNameInvalid"
        means "A volume of `extraMounts` has a name that no volume can have."
        heals "No." step "Correct it.";

    /// Hosts that have another name than their machines.
    const RENAMED;

    crate::reasons::machines::catalog::HOST_NAME_CHANGED
        means "A host has another name than the one by which its machine was asked for."
        heals "No." step "Set `hostName` as the message says, or take the node out.";

    /// The inventory.
    const SETUP;

    SET_UP: good "Ready" means "The inventory is written.";
    crate::reasons::inputs::catalog::INPUT_MISSING;
    NOT_SERVED_YET: waiting "NotServedYet"
        means "Addresses or names are missing; the message names the condition."
        heals "When they are there." step "See that condition.";
    NODES_AWAITED: waiting "NodesAwaited"
        means "The nodes of its hosts are being made."
        heals "When they are there; at most a few seconds." step "Wait.";
    DEPLOYMENT_UNDER_WAY: waiting "DeploymentUnderWay"
        means "The node set was changed while a deployment runs, whose inventory stays until its \
            end."
        heals "When that deployment has ended." step "Wait, or look at the deployment.";
    DELETION_WAITS: warning "DeletionWaits"
        means "The node set is to be deleted; the message names the deployment that needs it, or \
            the finalizers of others."
        heals "When that deployment has ended." step "Wait, or delete the deployment.";

    /// The account of runs.
    const ACCOUNT;

    NO_SERVICE_ACCOUNT: good "NotRequired"
        means "Runs have no account of their own, and need none.";

    /// The last deployment.
    const DEPLOYMENT;

    DEPLOYED: good "Deployed" means "The last deployment succeeded on every host.";
    DEPLOYING: waiting "Deploying"
        means "A deployment is under way; the message names it."
        heals "Yes." step "Wait, or look at the deployment.";
    DEPLOYMENT_UNREADABLE: error "DeploymentUnreadable"
        means "A deployment that the node set has counted, or that may be at its hosts, cannot be \
            read."
        heals "When it is corrected, or gone."
        step "Correct the field that the message names, or delete the deployment and create \
            another one.";
    NOT_DEPLOYED: waiting "NotDeployed"
        means "Hosts of the set have nothing deployed."
        heals "No." step "Create an `OpenStackDataPlaneDeployment` that names the node set.";
    DEPLOYMENT_GONE: error "DeploymentGone"
        means "The deployment that was at the named hosts was deleted, or nothing is known of its \
            failure."
        heals "No." step "Create another one.";

    /// What a node set lacks, on the nodes of its hosts.
    const OF_HOST;

    TOO_MANY_HOSTS; INVENTORY_TOO_LARGE; HOST_NAME_INVALID; HOST_TWICE; VOLUME_NAME_INVALID;

    /// The deployment of a host, on its node.
    const HOST_DEPLOYMENT;

    NOT_DEPLOYED; DEPLOYMENT_GONE;
    HOST_TERMINATING: waiting "Terminating"
        means "The host was taken out of the node set, or that is being deleted, and is cleaned up \
            first."
        heals "Yes." step "Wait; the conditions of other operators on the node have the progress.";

    /// The nodes of the hosts.
    const NODES;

    NODE_NOT_OURS: warning "NodeNotOurs"
        means "A node of a host's name exists that is not one of the node set; nothing is deployed \
            to that host."
        heals "When that node is gone, or comes to the node set."
        step "Delete it, take the host out where it belongs now, or give it another name.";
    NODES_NOT_SERVED: warning "NodesNotServed"
        means "The cluster's definition of nodes is of an earlier release, or belongs to another \
            operator; nothing is deployed to any host."
        heals "No."
        step "Install the definitions of this release, then restart dataplane-operator.";
    crate::reasons::FORBIDDEN; crate::reasons::INVALID; crate::reasons::ALREADY_EXISTS;

    /// Whether the present inputs are deployed.
    const CHANGES;

    crate::reasons::UP_TO_DATE; crate::reasons::NEVER_DEPLOYED; crate::reasons::INPUTS_CHANGED;
    DEPLOYING;
}
