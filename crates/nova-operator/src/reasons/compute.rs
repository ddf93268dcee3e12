//! The reasons on computes.

api::reasons! {
    pub(crate) mod catalog;

    /// Whether nova-compute runs.
    const SUMMARY;

    READY: good "Ready" means "nova-compute runs on the host and has registered in its cell.";
    WAITING_FOR_NOVA: waiting "WaitingForNova"
        means "The compute was deployed and has registered, and nova's API has not been read since."
        heals "With the next reading, at the latest after `nova.api.interval` of the chart."
        step "Wait.";

    /// What the configuration and the runs need.
    const INPUTS;

    ROLE_NOT_FOUND: warning "RoleNotFound"
        means "The node's role does not exist, so what it gives to the compute is not known; a \
            deployed compute stays as it is."
        heals "When it appears." step "Create it again, or correct `spec.role` of the node.";
    crate::reasons::catalog::NOVA_SERVICE_LISTED;
    INPUT_COMPLETE: good "InputComplete"
        means "Everything that the configuration and the runs need is there.";
    INPUTS_WAITING: unknown "Waiting" means "The inputs are known once node and cell exist."
        heals "Yes." step "See `NodeReady` and `NovaCellReady`.";
    INVENTORY_NOT_PUBLISHED: waiting "InventoryNotPublished"
        means "The node has not said yet how the host is reached."
        heals "Yes." step "See the node's conditions.";
    INVENTORY_NOT_NAMED: warning "InventoryNotNamed"
        means "The compute was made by a user for a node without a cell, so nothing fills in how \
            the host is reached."
        heals "No."
        step "Set the two fields to the values in the message, or annotate the node with its cell.";
    INVENTORY_NOT_FOUND: warning "InventoryNotFound"
        means "The ConfigMap of `inventoryConfigMapName` does not exist."
        heals "When it appears." step "Create it, or name the one that the node publishes.";
    INVENTORY_INCOMPLETE: warning "InventoryIncomplete"
        means "That ConfigMap has no key `inventory`."
        heals "When the key appears."
        step "Add the key, or name the ConfigMap that the node publishes.";
    SECRET_NOT_FOUND: warning "SecretNotFound"
        means "A Secret that the `NovaCell` names, or the one with the key for migrations that the \
            host was deployed with, does not exist."
        heals "When it appears." step "Create it.";
    SECRET_INCOMPLETE: warning "SecretIncomplete"
        means "That Secret lacks a key, or a value cannot be used."
        heals "When it is corrected." step "Correct it; the message names the key.";
    SSH_SECRET_NOT_FOUND: warning "SshSecretNotFound" means "The ssh Secret does not exist."
        heals "When it appears." step "Create it.";
    crate::reasons::SSH_SECRET_INCOMPLETE; crate::reasons::SSH_SECRET_INVALID;
    crate::reasons::ISSUING; crate::reasons::CERT_MANAGER_NOT_FOUND;
    crate::reasons::ISSUER_NOT_FOUND; crate::reasons::ISSUER_NOT_PERMITTED;
    DEFAULT_CONFIG_NOT_FOUND: warning "DefaultConfigNotFound"
        means "The ConfigMap of the role's annotation `nova.openstack.org/default-config` does not \
            exist."
        heals "When it appears." step "Create it, or remove the annotation.";
    DEFAULT_CONFIG_INVALID: warning "DefaultConfigInvalid"
        means "That ConfigMap has neither a key `02-nova-default.conf` nor a single key."
        heals "When it is corrected." step "Correct it.";
    IMAGES_NOT_FILLED: waiting "ImagesNotFilled"
        means "The operator is filling in its default images."
        heals "Yes, where the compute has its node's name."
        step "Wait, or set the fields to the images in the message.";
    IMAGE_NOT_SET: warning "ImageNotSet" means "An image is unset and the operator has no default."
        heals "No." step "Set it in the spec, or in the chart for new computes.";
    HOST_NAME_CHANGED: warning "HostNameChanged"
        means "The node's host name is not the one under which the compute has registered."
        heals "No." step "Set it back, or delete the compute.";
    DRAIN_BEFORE_INVALID: warning "DrainBeforeInvalid"
        means "The annotation `nova.openstack.org/drain-before` has no legal value; nothing is \
            deployed."
        heals "No." step "Set it to `true` or `false`, or remove it.";
    DRAIN_WITHOUT_API: warning "NovaAPINotUsed"
        means "`nova.openstack.org/drain-before` is true, and the operator does not use nova's \
            API, so no host can be drained and nothing is deployed to computes that were deployed \
            before."
        heals "No."
        step "Set `nova.api.enabled` of the chart to true, or the annotation to `false`.";

    /// The node of the compute.
    const NODE;

    NODE_READY: good "NodeReady" means "The node can be used.";
    NODE_NOT_READY: waiting "NodeNotReady" means "The node is not ready yet."
        heals "Yes." step "See the node's conditions.";
    NODE_NOT_FOUND: warning "NodeNotFound" means "The node does not exist."
        heals "When it appears." step "Create it.";
    NODE_TERMINATING: waiting "NodeTerminating"
        means "The node is being deleted; the compute goes with it."
        heals "" step "";

    /// The cell of the compute.
    const CELL;

    NOVA_CELL_READY: good "NovaCellReady" means "The cell can be used.";
    NOVA_CELL_NOT_READY: warning "NovaCellNotReady"
        means "The cell is not ready; the message repeats why."
        heals "When the cell is." step "See the `NovaCell`.";
    NOVA_CELL_NOT_FOUND: warning "NovaCellNotFound" means "The cell does not exist."
        heals "When it appears." step "Create it, or correct the annotation.";
    NOVA_CELL_UNKNOWN: waiting "NovaCellUnknown" means "The cell has not been reconciled yet."
        heals "Yes." step "Wait; with a foreign control plane, see its operator.";
    CELL_UNKNOWN: warning "CellUnknown"
        means "The service of type nova that deploys the compute mounts the Secret of no cell, or of \
            several. Its host is looked for in all cells of the namespace, and is neither drained nor \
            removed."
        heals "When the service mounts the Secret of one cell."
        step "Name the Secret of one `NovaCell` in `dataSources` of the service.";

    /// The files of nova-compute.
    const SERVICE_CONFIG;

    RENDERED: good "Rendered" means "The files are in the named Secret.";
    crate::reasons::catalog::SECRET_NOT_OURS; crate::reasons::catalog::NOT_RENDERED;
    INVALID_CONFIG: error "InvalidConfig"
        means "`customServiceConfig` cannot be read, or a file of `defaultConfigOverwrite` has a \
            name that is taken; the message has line and column, or the name."
        heals "No." step "Correct it.";
    INVALID_DEFAULT_CONFIG: error "InvalidDefaultConfig"
        means "The role's default configuration cannot be read; the message has line and column."
        heals "No." step "Correct the ConfigMap.";

    /// What is surprising in options that users wrote.
    const WARNINGS;

    SURPRISING: notable "Surprising"
        means "Options, in `customServiceConfig` or in the role's default configuration, that nova \
            does not have, refuses or deprecates, or that the operator sets itself; the message \
            has line and column."
        heals "" step "Check whether it is intended.";
    RELEASE_UNKNOWN: notable "ReleaseUnknown"
        means "The annotation `nova.openstack.org/release` of the `NovaCell` names a release whose \
            options are not known here, so options are not judged."
        heals "" step "Name one that the message lists, or none.";
    GUESTS_CANNOT_MOVE: notable "GuestsCannotMove"
        means "The host has neither a certificate for libvirt nor the key for migrations, or with the \
            key no service `ssh-known-hosts`, so nova can move no guest to or from it, as a drain or \
            a resize does."
        heals "When the role has `tlsEnabled`, or Secret and service are there."
        step "Enable TLS, or make the key and list the service; the message has what is missing.";
    REPAIR_NOT_POSSIBLE: notable "RepairNotPossible"
        means "`nova.openstack.org/audit-repair` is true, and a service of type nova deploys the compute, \
            so the operator repairs nothing there."
        heals "" step "Remove the annotation; `ConfigurationInSync` says what to deploy.";
    NO_WARNINGS: absent "NoWarnings" means "Nothing is surprising.";

    /// The deployment of libvirt and nova-compute.
    const DEPLOYMENT;

    DEPLOYED: good "Deployed"
        means "They run, and the compute has registered; `UpToDate` reports the rest.";
    DEPLOYING: waiting "Deploying" means "They are being deployed."
        heals "Yes." step "Wait.";
    crate::reasons::QUEUED; crate::reasons::RUN_BLOCKED; crate::reasons::NOT_REQUESTED;
    operator_core::reasons::WAITING_FOR_TURN
        means "As many computes of the role that were in service as `maxUnavailable` allows are \
            being deployed, fail or are down (`ServiceUp`)."
        heals "When one of them is in service again."
        step "Wait; where computes that fail or are down are named, correct their cause, raise \
            `maxUnavailable`, or set `deploy: false` on their nodes.";
    operator_core::reasons::PAUSED
        means "`pauseOnFailure` is set, or `nova.openstack.org/drain-before` is true, and the \
            named compute of the role fails."
        heals "When no compute of the role fails." step "Correct its cause, or follow the message.";
    WAITING_FOR_DRAIN: waiting "WaitingForDrain"
        means "`nova.openstack.org/drain-before` is true, and the host is not drained yet."
        heals "When it is drained."
        step "See `Drained`; without a drain, set the annotation of the node to `false`.";
    WAITING: waiting "Waiting" means "It waits; the other conditions report for what."
        heals "Yes." step "See the others.";
    RESTORING: waiting "RestoringIdentity"
        means "The host of a compute that others deploy has lost its identity, which a run is writing \
            there again."
        heals "When the run has ended." step "Wait.";
    IDENTITY_RESTORED: warning "IdentityRestored"
        means "The host of a compute that others deploy had lost its identity, which is there again; \
            nova-compute has not been deployed since."
        heals "When nova-compute is deployed." step "Deploy it; the message says how.";

    /// Whether the present inputs are deployed.
    const CHANGES;

    crate::reasons::UP_TO_DATE; crate::reasons::NEVER_DEPLOYED; crate::reasons::INPUTS_CHANGED;
    OPERATOR_CHANGED: waiting "OperatorChanged"
        means "Another release of the operator, or of nova, has the named files rendered otherwise \
            than they were deployed, or the host was deployed before the Secret with the key for \
            migrations was made; no input of its deployment has changed, and nothing runs for that."
        heals "With the next deployment."
        step "Deploy, if you want it before the next change; the message has the command.";
    INPUTS_UNKNOWN: unknown "InputMissing" means "Inputs are missing, so it is unknown."
        heals "Yes." step "See `InputReady`.";

    /// The cell that the node asks for.
    const REQUESTED_CELL;

    CELL_MATCHES: good "CellMatches" means "The node asks for no other cell.";
    CELL_MISMATCH: error "CellMismatch"
        means "The node asks for another cell, or for none; everything but the cell follows it."
        heals "No."
        step "Set the annotation back, or let the compute go; the message has the command.";
    CELL_UNKNOWN;
    CELL_ROLE_NOT_FOUND: unknown "RoleNotFound"
        means "The role that would name the cell does not exist."
        heals "When it appears." step "Create it again, or correct `spec.role` of the node.";

    /// The identity that nova has of the host.
    const IDENTITY;

    OTHER_IDENTITY: warning "OtherIdentity"
        means "Nova has the host under another UUID of its service or compute node than it has \
            registered with, or the cell names another nova, which does not have it: nothing is \
            drained, enabled, removed or restored."
        heals "When nova has the recorded identity again, or a deployment has registered the \
            compute in the same nova."
        step "Correct the URL of Keystone or the region of the `NovaCell`, or deploy the compute \
            again, or have all computes of the cell take what this nova has; the message has the \
            commands.";

    /// Whether nova-compute reports to nova.
    const HEALTH;

    SERVICE_UP: good "ServiceUp" means "nova-compute reports to nova.";
    SERVICE_DISABLED: good "ServiceDisabled"
        means "nova-compute reports to nova; its service is disabled, so nova schedules nothing to \
            it.";
    SERVICE_DOWN: warning "ServiceDown" means "Nova found the service down twice in a row."
        heals "When nova-compute reports again."
        step "Start nova-compute on the host; the message says since when it has not reported.";
    FORCED_DOWN: warning "ForcedDown" means "An administrator has forced the service down."
        heals "No." step "Set it up again once the host is well; the message has the command.";
    SERVICE_NOT_FOUND: warning "ServiceNotFound"
        means "Nova had no service of the host twice in a row."
        heals "No." step "Deploy the compute again; the message has the command.";
    CELL_NOT_ANSWERING: unknown "CellNotAnswering"
        means "The database of the cell does not answer nova's API."
        heals "When it answers." step "Start the database of the cell.";
    NOVA_NOT_ANSWERING: unknown "NovaNotAnswering"
        means "Nova's API has not answered three times in a row, or an input of the cell is \
            missing or wrong."
        heals "When it answers." step "See the message, or `NovaAPIReady` of the `NovaCell`.";
    OTHER_IDENTITY_UNKNOWN: unknown "OtherIdentity"
        means "What nova has under the name of the host is not known to be the host's."
        heals "When nova has the recorded identity again." step "See `NovaMatches`.";
    NOT_READ: unknown "NotRead" means "Nova's API has not been read often enough to say."
        heals "Yes." step "Wait for the next readings.";
    NOT_REGISTERED: unknown "NotRegistered"
        means "The compute has not registered yet, so nova is not asked."
        heals "Yes." step "See `DeploymentReady`.";

    /// Whether nova has mapped the host.
    const MAPPING;

    MAPPED: good "Mapped" means "The host is mapped to its cell; nova's scheduler knows it.";
    WAITING_FOR_DISCOVERY: waiting "WaitingForDiscovery"
        means "Nova has the service of the host and has not mapped the host to its cell, for less \
            than two minutes, or 20 where others than nova-operator discover hosts."
        heals "When the host is discovered."
        step "Wait; discover hosts with `nova-manage` where neither an operator nor nova does.";
    NOT_MAPPED: warning "NotMapped"
        means "Nova has the service of the host and has not mapped the host to its cell for two \
            minutes, or 20 where others than nova-operator discover hosts."
        heals "When the host is discovered."
        step "As the message says: see `HostDiscovery` of the cell, or discover hosts with \
            `nova-manage`.";
    NOVA_NOT_ANSWERING; NOT_READ; NOT_REGISTERED;
}
