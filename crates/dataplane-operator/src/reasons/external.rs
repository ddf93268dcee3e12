//! The reasons on what a node set asks of others: addresses, names and certificates.

api::reasons! {
    pub(crate) mod catalog;

    /// The addresses of hosts.
    const ADDRESSES;

    NOT_REQUIRED: good "NotRequired"
        means "The node set names no networks, or no operator manages addresses.";
    RESERVED: good "Reserved" means "Every host has an address on each of its networks.";
    RESERVING: waiting "Reserving"
        means "Hosts wait for their addresses; the message names the first one's IPSet."
        heals "When they are reserved." step "Wait, or look at the IPSet.";
    NET_CONFIG_NOT_FOUND: warning "NetConfigNotFound"
        means "Networks are named, and no NetConfig says what they are."
        heals "When it appears." step "Create it, or take the networks out.";
    NETWORK_UNKNOWN: error "NetworkUnknown"
        means "A host is part of a network that the NetConfig does not have."
        heals "When it is added." step "Add it, or correct the node's networks.";
    NETWORK_MISSING: error "NetworkMissing"
        means "A host has no networks, or is not part of the one over which hosts are managed."
        heals "No." step "Add the network to the node or to the template.";
    NAME_TAKEN: error "NameTaken" means "The IPSet of a host's name belongs to another object."
        heals "When that goes." step "Take the host out there, or give it another name here.";
    INPUT_MISSING: waiting "InputMissing"
        means "The hosts are not as they should be, so nothing is asked for."
        heals "When they are." step "See `InputReady`.";

    /// The names of hosts.
    const NAMES;

    NOT_REQUIRED;
    NAMED: good "Named" means "The DNS server has the names of the hosts.";
    NAMING: waiting "Naming" means "The DNS server does not have the names of the hosts yet."
        heals "Yes." step "Wait.";
    DNS_SERVER_NOT_READY: waiting "DnsServerNotReady"
        means "There is no DNSMasq, or it is not ready."
        heals "When it is ready." step "Create it, or look at it.";
    SEVERAL_DNS_SERVERS: error "SeveralDnsServers" means "The namespace has several DNSMasq."
        heals "When one is left." step "Delete all but one.";
    INPUT_MISSING;

    /// The certificates of hosts.
    const CERTIFICATES;

    CERTIFICATES_NOT_REQUIRED: good "NotRequired"
        means "No service of the node set, or of its deployments, names certificates.";
    NOT_ENABLED: good "NotEnabled"
        means "`tlsEnabled` is false; or it is absent, and no operator issues certificates or \
            reserves names.";
    ISSUED: good "Issued" means "Every host has its certificates.";
    crate::reasons::ISSUING; crate::reasons::CERT_MANAGER_NOT_FOUND;
    crate::reasons::ISSUER_NOT_FOUND; crate::reasons::ISSUER_NOT_PERMITTED; NETWORK_MISSING;
    INPUT_MISSING;
}
