//! The reasons on services.

api::reasons! {
    pub(crate) mod catalog;

    /// Whether the service can be deployed.
    const SUMMARY;

    READY: good "Ready"
        means "Everything that the service names is there, or nothing lists the service.";

    /// The spec of the service.
    const SPEC;

    VALID: good "Valid" means "It can be deployed as it is written.";
    INVALID_SPEC: error "InvalidSpec"
        means "A field cannot be as it is; the message has its path and the legal way."
        heals "When it is corrected." step "Correct the field.";

    /// Its data sources.
    const DATA_SOURCES;

    ALL_FOUND: good "AllFound" means "The message names the data sources that are mounted.";
    crate::reasons::inputs::catalog::DATA_SOURCE_NOT_FOUND;
    NOT_USED: unknown "NotUsed"
        means "Data sources do not exist, and no role, node or node set lists the service."
        heals "When the service is listed, or they exist."
        step "Nothing; before you list the service, create what the message names.";

    /// The keys of its data sources.
    const KEYS;

    KEYS_CLASH: notable "KeysClash" means "The message names the keys, and whose is mounted."
        heals "When the keys differ." step "Rename keys, or take a data source off the list.";
    KEYS_DIFFER: absent "KeysDiffer" means "No two data sources have a key in common.";

    /// Its playbook.
    const PLAYBOOK;

    INCLUDED: good "Included" means "The project's runner image can run it.";
    IN_SERVICE: good "InService" means "The service has its playbook in itself.";
    NOT_INCLUDED: lacking "NotIncluded" means "The project's runner image cannot run it."
        heals "No."
        step "Have a runner image that has it, by the chart's value \
            `relatedImages.ansibleEERunner` or the service's `openStackAnsibleEERunnerImage`.";
    NOT_KNOWN: unknown "NotKnown"
        means "Playbook or image are not the project's, so only a run shows whether the image has \
            it."
        heals "" step "";

    /// What is without effect in its spec.
    const WARNINGS;

    WITHOUT_EFFECT: notable "WithoutEffect"
        means "The message has the path of each field, and what to write instead."
        heals "When it is corrected." step "Write it differently, or take it out.";
    NO_WARNINGS: absent "NoWarnings" means "Nothing in the spec is to be corrected.";

    /// A default service that others change.
    const SHIPPED;

    CONTESTED: warning "Contested"
        means "Another client changes a default service each time it was restored; hosts get the \
            shipped spec all the same."
        heals "When that client stops."
        step "Take the service out of what that client applies, and list a copy under another \
            name.";

    /// Its ports.
    const ENDPOINTS;

    EXPOSED: good "Exposed"
        means "The ports are exposed on the addresses of all nodes that were deployed there; those \
            that were not yet are named, and follow.";
    ADDRESS_MISSING: waiting "AddressMissing"
        means "Nodes whose address is no IP address, or not known yet, are left out."
        heals "When the address is known."
        step "Set `ansibleHost` of the named nodes to an IP address.";
    ADDRESS_NOT_ALLOWED: waiting "AddressNotAllowed"
        means "Nodes whose address is in none of the chart's `dataplane.serviceNetworks` are left \
            out."
        heals "When the list or the address changes."
        step "Ask the administrator to add the network of the hosts to the list.";
    NAME_TAKEN: error "NameTaken"
        means "A Kubernetes Service or EndpointSlice of the name exists and belongs to others."
        heals "Within a minute of its end." step "Delete it, or name the port differently.";
}
