//! The reasons on machines that are provisioned for hosts.

api::reasons! {
    pub(crate) mod catalog;

    /// The machine of a node.
    const NODE;

    NOT_REQUIRED: good "NotRequired" means "The host is provisioned by others.";
    PROVISIONED: good "Provisioned"
        means "The machine is there, and its ssh server answers or was waited for long enough; the \
            message has its state and since when.";
    PROVISIONING: waiting "Provisioning"
        means "The machine is on its way; the message has its state and since when."
        heals "Yes." step "Wait.";
    WAITING_FOR_SSH: waiting "WaitingForSsh"
        means "The machine is there, and its ssh server does not answer the operator yet."
        heals "When it answers, and after ten minutes anyway." step "Wait.";
    PROVISIONING_FAILED: warning "ProvisioningFailed"
        means "The provisioner says that something is wrong; the message has its words."
        heals "As the message says."
        step "As the message says; `kubectl describe openstackbaremetalset` lists all machines.";
    TEMPLATE_INVALID: error "TemplateInvalid"
        means "`baremetalSetTemplate` is not what a set can say."
        heals "When it is corrected." step "Correct the field that the message names.";
    MACHINES_NOT_SERVED: warning "MachinesNotServed"
        means "The cluster does not have the kind `OpenStackBaremetalSet`."
        heals "Within a minute of its installation." step "Install its definition.";
    NAME_TAKEN: warning "NameTaken"
        means "An `OpenStackBaremetalSet` of the name exists and was made for another object."
        heals "Within a minute of its end."
        step "Delete it, rename one of the two, or hand it over; the message has the command.";
    MACHINE_ELSEWHERE: warning "MachineElsewhere"
        means "Another `OpenStackBaremetalSet` has a machine for the host."
        heals "Within a minute of when that has given it back." step "Take the host out there.";
    SET_FULL: warning "SetFull"
        means "The `OpenStackBaremetalSet` has as many hosts as it can have."
        heals "When another host gives up its machine."
        step "Put the host into another role or node set.";
    HOST_IN_SERVICE: warning "HostInService"
        means "Services were deployed to the host before a machine was requested for it: a new one would \
            answer at its address."
        heals "Within a minute of the correction."
        step "Set `preProvisioned: true`, or adopt the machine; the message says how.";
    HOST_NAME_INVALID: error "HostNameInvalid"
        means "The host's name is one that no machine can have."
        heals "No." step "Correct `spec.hostName`.";
    HOST_TWICE: error "HostTwice" means "Another node of the role calls its host so."
        heals "No." step "Correct `spec.hostName` of one of them.";
    HOST_NAME_CHANGED: error "HostNameChanged"
        means "The host has another name than the one by which its machine was asked for."
        heals "No."
        step "Set `spec.hostName` as the message says, or delete the node and make another one.";
    crate::reasons::FORBIDDEN; crate::reasons::INVALID; crate::reasons::ALREADY_EXISTS;
    GIVING_BACK: waiting "GivingBack"
        means "The node is to be deleted, and its machine is given back first."
        heals "When that is done." step "Wait, or see the error in the message.";
    LOOKING_FOR_GUESTS: waiting "LookingForGuests"
        means "A run looks for guests on the host before its machine is given back."
        heals "Yes." step "Wait.";
    MACHINE_HELD: warning "MachineHeld"
        means "The machine is not given back, because guests are on its host, or no run could look \
            for them; the message has the cause."
        heals "Once a run has found none; or, after three attempts that failed, once the machine \
            is off."
        step "As the message says; it has the command to give the machine back without that look.";

    /// The machines of a role.
    const ROLE;

    PROVISIONED; PROVISIONING; WAITING_FOR_SSH; PROVISIONING_FAILED; TEMPLATE_INVALID;
    MACHINES_NOT_SERVED; NAME_TAKEN; MACHINE_ELSEWHERE; SET_FULL; HOST_IN_SERVICE; HOST_NAME_INVALID;
    HOST_TWICE;
    HOST_NAME_CHANGED; crate::reasons::FORBIDDEN; crate::reasons::INVALID;
    crate::reasons::ALREADY_EXISTS;
    DELETION_WAITS: warning "DeletionWaits"
        means "The role is to be deleted, and its machines are given back first; the message names \
            the nodes that still need them."
        heals "When that is done." step "Delete the nodes too, or wait.";

    /// The machines of a node set.
    const NODE_SET;

    NOT_REQUIRED; PROVISIONED; PROVISIONING; WAITING_FOR_SSH; PROVISIONING_FAILED;
    MACHINES_NOT_SERVED; NAME_TAKEN; MACHINE_ELSEWHERE; SET_FULL; HOST_IN_SERVICE;
    HOST_TWICE_IN_SET: error "HostTwice"
        means "A host has the name by which the machine of another one is known."
        heals "No." step "Correct `hostName` as the message says.";

    /// The machines of hosts that leave a node set.
    const LEAVING;

    LOOKING_FOR_GUESTS; MACHINE_HELD;

    /// A deployment that waits for a machine.
    const DEPLOYMENT;

    MACHINE_NOT_READY: waiting "MachineNotReady" means "The host's machine is not there."
        heals "When that is resolved." step "See `BaremetalReady`.";
}
