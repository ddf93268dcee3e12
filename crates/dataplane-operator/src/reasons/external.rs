//! The reasons on what a node set asks of others: addresses, names and certificates.

use api::conditions::Reason;

pub(crate) const NETWORK_MISSING: Reason = Reason::error(
    "NetworkMissing",
    "A host has no networks, or is not part of the one over which hosts are managed.",
    "No.",
    "Add the network to the node or to the template.",
);
pub(crate) const INPUT_MISSING: Reason = Reason::waiting(
    "InputMissing",
    "The hosts are not as they should be, so nothing is asked for.",
    "When they are.",
    "See `InputReady`.",
);
pub(crate) const NOT_REQUIRED: Reason = Reason::good(
    "NotRequired",
    "The node set names no networks, or no operator manages addresses.",
);
pub(crate) const RESERVED: Reason =
    Reason::good("Reserved", "Every host has an address on each of its networks.");
pub(crate) const RESERVING: Reason = Reason::waiting(
    "Reserving",
    "Hosts wait for their addresses; the message names the first one's IPSet.",
    "When they are reserved.",
    "Wait, or look at the IPSet.",
);
pub(crate) const NET_CONFIG_NOT_FOUND: Reason = Reason::warning(
    "NetConfigNotFound",
    "Networks are named, and no NetConfig says what they are.",
    "When it appears.",
    "Create it, or take the networks out.",
);
pub(crate) const NETWORK_UNKNOWN: Reason = Reason::error(
    "NetworkUnknown",
    "A host is part of a network that the NetConfig does not have.",
    "When it is added.",
    "Add it, or correct the node's networks.",
);
pub(crate) const NAME_TAKEN: Reason = Reason::error(
    "NameTaken",
    "The IPSet of a host's name belongs to another object.",
    "When that goes.",
    "Take the host out there, or give it another name here.",
);
pub(crate) const NAMED: Reason =
    Reason::good("Named", "The DNS server has the names of the hosts.");
pub(crate) const NAMING: Reason = Reason::waiting(
    "Naming",
    "The DNS server does not have the names of the hosts yet.",
    "Yes.",
    "Wait.",
);
pub(crate) const DNS_SERVER_NOT_READY: Reason = Reason::waiting(
    "DnsServerNotReady",
    "There is no DNSMasq, or it is not ready.",
    "When it is ready.",
    "Create it, or look at it.",
);
pub(crate) const SEVERAL_DNS_SERVERS: Reason = Reason::error(
    "SeveralDnsServers",
    "The namespace has several DNSMasq.",
    "When one is left.",
    "Delete all but one.",
);
pub(crate) const CERTIFICATES_NOT_REQUIRED: Reason = Reason::good(
    "NotRequired",
    "No service of the node set, or of its deployments, names certificates.",
);
pub(crate) const NOT_ENABLED: Reason = Reason::good(
    "NotEnabled",
    "`tlsEnabled` is false; or it is absent, and no operator issues certificates or reserves \
     names.",
);
pub(crate) const ISSUED: Reason = Reason::good("Issued", "Every host has its certificates.");
