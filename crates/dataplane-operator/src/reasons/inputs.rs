//! The reasons of missing or invalid inputs that several kinds share.

api::reasons! {
    pub(crate) mod catalog;

    /// All is there.
    const COMPLETE;

    INPUT_COMPLETE: good "InputComplete" means "Everything that a deployment needs is there.";

    /// All that services need is there.
    const SERVICES_COMPLETE;

    SERVICE_INPUTS_COMPLETE: good "ServiceInputsComplete"
        means "Everything that the listed services need is there.";

    /// What services of a host lack.
    const SERVICES;

    SERVICE_NOT_FOUND: warning "ServiceNotFound" means "A listed service does not exist."
        heals "When it appears." step "Create it, or take it off the role's list.";
    SERVICE_UNREADABLE: warning "ServiceUnreadable"
        means "A listed service exists, and its operator cannot read it."
        heals "When it is corrected." step "Correct the field that the message names.";
    SERVICE_INVALID: error "ServiceInvalid"
        means "A listed service cannot be deployed as it is written."
        heals "When it is corrected." step "Correct the field that the message names.";
    DATA_SOURCE_NOT_FOUND: warning "DataSourceNotFound"
        means "A ConfigMap or Secret that a service names does not exist."
        heals "When it appears." step "Create it.";
    DATA_SOURCE_INCOMPLETE: warning "DataSourceIncomplete"
        means "An object that a service names lacks a key without which the service's plays fail."
        heals "When the key appears." step "Add the key.";

    /// What services of a deployment lack.
    const DEPLOYED_SERVICES;

    SERVICE_NOT_FOUND; SERVICE_UNREADABLE; SERVICE_INVALID;
    SERVICE_TYPE_TWICE: error "ServiceTypeTwice"
        means "Two services of a list have one `edpmServiceType`, and both would write the same \
            files."
        heals "When the list or a service is corrected."
        step "List only one of them, or give one of them another `edpmServiceType`.";
    DATA_SOURCE_NOT_FOUND; DATA_SOURCE_INCOMPLETE;
    DATA_SOURCE_INVALID: error "DataSourceInvalid"
        means "A key of a service's object is no plain file name, or an ssh key in it is none that \
            ssh can use."
        heals "When it is corrected." step "Rename the key, or correct it as the message says.";

    /// The variables of hosts.
    const VARIABLES;

    VARIABLES_NOT_FOUND: warning "VariablesNotFound"
        means "A ConfigMap or Secret that `ansibleVarsFrom` names does not exist."
        heals "When it appears." step "Create it, or set `optional: true`.";
    VARIABLES_INVALID: warning "VariablesInvalid"
        means "A ConfigMap or Secret that `ansibleVarsFrom` names has a key that is no text."
        heals "When it is corrected."
        step "Take the key out; mount files with a service's `dataSources`.";

    /// The networks of runs.
    const NETWORKS;

    NETWORK_ATTACHMENT_NOT_FOUND: warning "NetworkAttachmentNotFound"
        means "A `NetworkAttachmentDefinition` that `networkAttachments` names does not exist."
        heals "When it appears." step "Create it, or correct the list.";
    NETWORK_ATTACHMENTS_NOT_SERVED: warning "NetworkAttachmentsNotServed"
        means "`networkAttachments` are set, and the cluster has no kind \
            `NetworkAttachmentDefinition`."
        heals "Within half a minute of the kind's installation."
        step "Install Multus, or empty the list.";

    /// The ssh Secret.
    const SSH;

    SSH_SECRET_NOT_FOUND: warning "SshSecretNotFound" means "The ssh Secret does not exist."
        heals "When it appears." step "Create it; the message has the command.";
    crate::reasons::SSH_SECRET_INCOMPLETE; crate::reasons::SSH_SECRET_INVALID;

    /// Hosts that cannot be used.
    const HOSTS;

    HOST_ADDRESS_INVALID: error "HostAddressInvalid"
        means "A variable `ansible_host` or `ansible_port` is no plain address or port, or secret."
        heals "No." step "Set `ansibleHost` and `ansiblePort`.";
    HOST_TAKEN: warning "HostTaken"
        means "An older object describes the same host: a node, or a node set."
        heals "When the other one gives it up." step "Take the host out of one of the two.";
    HOST_KEY_SHARED: warning "HostKeyShared"
        means "A host shows an ssh host key that an older one of the namespace shows at another \
            address."
        heals "When the host has a key of its own, or the shared one is accepted."
        step "Make new host keys on it, or annotate the object with the command in the message.";

    /// Hosts that show one key.
    const SHARED_KEYS;

    HOST_KEY_SHARED;

    /// What waits for inputs.
    const MISSING;

    INPUT_MISSING: waiting "InputMissing" means "An input is missing."
        heals "When it appears." step "See `InputReady`.";
}
