//! The conditions of a node set on external resources: addresses, names and certificates.

use operator_core::condition_catalog::{ConditionSpec, ReasonSpec, condition};

use crate::node_set::dns::DNS_DATA_READY;
use crate::node_set::ipam::IP_RESERVATION_READY;
use crate::node_set::tls::CERTIFICATES_READY;

const NETWORK_MISSING: ReasonSpec = ReasonSpec::bad(
    "NetworkMissing",
    "A host has no networks, or is not part of the one over which hosts are managed.",
    "No.",
    "Add the network to the node or to the template.",
);

const INPUT_MISSING: ReasonSpec = ReasonSpec::bad(
    "InputMissing",
    "The hosts are not as they should be, so nothing is asked for.",
    "When they are.",
    "See `InputReady`.",
);

/// Condition on whether every host has its addresses.
pub(super) const IP_RESERVATION: ConditionSpec = condition(
    IP_RESERVATION_READY,
    "Every host has its addresses, or nobody manages any.",
    &[
        ReasonSpec::good(
            "NotRequired",
            "The node set names no networks, or nobody manages addresses.",
        ),
        ReasonSpec::good("Reserved", "Every host has an address on each of its networks."),
        ReasonSpec::bad(
            "Reserving",
            "Hosts wait for their addresses; the message names the first one's IPSet.",
            "When they are reserved.",
            "Wait, or look at the IPSet.",
        ),
        ReasonSpec::bad(
            "NetConfigNotFound",
            "Networks are named, and no NetConfig says what they are.",
            "When it appears.",
            "Create it, or take the networks out.",
        ),
        ReasonSpec::bad(
            "NetworkUnknown",
            "A host is part of a network that the NetConfig does not have.",
            "When it is added.",
            "Add it, or correct the node's networks.",
        ),
        NETWORK_MISSING,
        ReasonSpec::bad(
            "NameTaken",
            "The IPSet of a host's name belongs to another object.",
            "When that goes.",
            "Take the host out there, or give it another name here.",
        ),
        INPUT_MISSING,
    ],
);

/// Condition on whether the DNS server has the names of the hosts.
pub(super) const DNS_DATA: ConditionSpec = condition(
    DNS_DATA_READY,
    "The DNS server of the control plane knows every host, or there is none to tell.",
    &[
        ReasonSpec::good(
            "NotRequired",
            "The node set names no networks, or nobody manages addresses.",
        ),
        ReasonSpec::good("Named", "The DNS server knows the hosts."),
        ReasonSpec::bad("Naming", "The DNS server does not know the hosts yet.", "Yes.", "Wait."),
        ReasonSpec::bad(
            "DnsServerNotReady",
            "There is no DNSMasq, or it is not ready.",
            "When it is ready.",
            "Create it, or look at it.",
        ),
        ReasonSpec::bad(
            "SeveralDnsServers",
            "The namespace has several DNSMasq.",
            "When one is left.",
            "Delete all but one.",
        ),
        INPUT_MISSING,
    ],
);

/// Condition on whether every host has its certificates.
pub(super) const CERTIFICATES: ConditionSpec = condition(
    CERTIFICATES_READY,
    "Every host has the certificates that its services name, or gets none.",
    &[
        ReasonSpec::good(
            "NotRequired",
            "No service of the node set, or of its deployments, names certificates.",
        ),
        ReasonSpec::good(
            "NotEnabled",
            "`tlsEnabled` is false; or it is absent, and nobody issues certificates or reserves names.",
        ),
        ReasonSpec::good("Issued", "Every host has its certificates."),
        ReasonSpec::bad(
            "Issuing",
            "Certificates are not issued yet; the message names the first one.",
            "When they are issued.",
            "Wait, or look at the Certificate.",
        ),
        ReasonSpec::bad(
            "CertManagerNotFound",
            "`tlsEnabled` is true, and nobody issues certificates.",
            "Within a minute of cert-manager's installation.",
            "Install cert-manager, or set `tlsEnabled: false`.",
        ),
        ReasonSpec::bad(
            "IssuerNotFound",
            "No Issuer, or several, carry the label that a certificate names.",
            "When one does.",
            "Label one, name another in `tlsCerts`, or set `tlsEnabled: false`.",
        ),
        ReasonSpec::bad(
            "IssuerNotPermitted",
            "The Issuer with that label is not meant for hosts.",
            "With the Issuer's next change.",
            "Annotate it with `dataplane.openstack.org/issues-for-hosts: \"true\"`, or name a label that \
             begins with `osp-rootca-issuer-`.",
        ),
        NETWORK_MISSING,
        INPUT_MISSING,
    ],
);
