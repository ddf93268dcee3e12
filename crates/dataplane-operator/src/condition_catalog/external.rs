//! The conditions of a node set on external resources: addresses, names and certificates.

use api::dataplane::condition_types::CERTIFICATES_READY;
use operator_core::condition_catalog::{ConditionSpec, condition};

use crate::node_set::dns::DNS_DATA_READY;
use crate::node_set::ipam::IP_RESERVATION_READY;
use crate::reasons::external::catalog as external;

/// Condition on whether every host has its addresses.
pub(super) const IP_RESERVATION: ConditionSpec = condition(
    IP_RESERVATION_READY,
    "Every host has its addresses, or no operator manages any.",
    &[external::ADDRESSES],
);

/// Condition on whether the DNS server has the names of the hosts.
pub(super) const DNS_DATA: ConditionSpec = condition(
    DNS_DATA_READY,
    "The DNS server of the control plane has the names of every host, or there is no DNS server.",
    &[external::NAMES],
);

/// Condition on whether every host has its certificates.
pub(super) const CERTIFICATES: ConditionSpec = condition(
    CERTIFICATES_READY,
    "Every host has the certificates that its services name, or gets none.",
    &[external::CERTIFICATES],
);
