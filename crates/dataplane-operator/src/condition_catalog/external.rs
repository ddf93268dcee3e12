//! The conditions of a node set on external resources: addresses, names and certificates.

use operator_core::condition_catalog::{ConditionSpec, condition};

use crate::node_set::dns::DNS_DATA_READY;
use crate::node_set::ipam::IP_RESERVATION_READY;
use crate::node_set::tls::CERTIFICATES_READY;
use crate::reasons;

/// Condition on whether every host has its addresses.
pub(super) const IP_RESERVATION: ConditionSpec = condition(
    IP_RESERVATION_READY,
    "Every host has its addresses, or no operator manages any.",
    &[
        reasons::external::NOT_REQUIRED,
        reasons::external::RESERVED,
        reasons::external::RESERVING,
        reasons::external::NET_CONFIG_NOT_FOUND,
        reasons::external::NETWORK_UNKNOWN,
        reasons::external::NETWORK_MISSING,
        reasons::external::NAME_TAKEN,
        reasons::external::INPUT_MISSING,
    ],
);

/// Condition on whether the DNS server has the names of the hosts.
pub(super) const DNS_DATA: ConditionSpec = condition(
    DNS_DATA_READY,
    "The DNS server of the control plane has the names of every host, or there is no DNS server.",
    &[
        reasons::external::NOT_REQUIRED,
        reasons::external::NAMED,
        reasons::external::NAMING,
        reasons::external::DNS_SERVER_NOT_READY,
        reasons::external::SEVERAL_DNS_SERVERS,
        reasons::external::INPUT_MISSING,
    ],
);

/// Condition on whether every host has its certificates.
pub(super) const CERTIFICATES: ConditionSpec = condition(
    CERTIFICATES_READY,
    "Every host has the certificates that its services name, or gets none.",
    &[
        reasons::external::CERTIFICATES_NOT_REQUIRED,
        reasons::external::NOT_ENABLED,
        reasons::external::ISSUED,
        reasons::ISSUING,
        reasons::CERT_MANAGER_NOT_FOUND,
        reasons::ISSUER_NOT_FOUND,
        reasons::ISSUER_NOT_PERMITTED,
        reasons::external::NETWORK_MISSING,
        reasons::external::INPUT_MISSING,
    ],
);
