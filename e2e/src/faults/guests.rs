//! Faults of the networks of guests, reported on the node whose services bring them.

use super::{Fault, Kstatus};

/// What the faults have in common.
const OF_NODE: Fault =
    Fault { kstatus: Kstatus::Failed, ..Fault::of("OpenStackDataPlaneNode", "n0") };
const OVN: &str = "failed (service ovn";
const METADATA: &str = "failed (service neutron-metadata";

/// The faults: all need a real host, and all but the first OVN and nova's metadata API.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "ovn-tunnel-address",
        done: "`tenant_ip` is an address that no interface of the host has.",
        words: [
            OVN,
            "No interface of this host has 198.51.100.9, the address of its tunnels",
            "correct the variable, or give an interface the address",
        ],
        ..OF_NODE
    },
    Fault {
        name: "ovn-southbound-away",
        done: "Nothing answers at the address of OVN's southbound database.",
        words: [
            OVN,
            "nothing answers there",
            "See that the database runs and that its port is open to this host",
        ],
        ..OF_NODE
    },
    Fault {
        name: "ovn-wrong-authority",
        done: "The host's certificates are of another authority than that of the southbound database.",
        words: [
            OVN,
            "the database's certificate is not of the authority in",
            "correct the service's issuer",
        ],
        ..OF_NODE
    },
    Fault {
        name: "ovn-certificate-expired",
        done: "The host's certificate for the southbound database has expired.",
        words: [OVN, "has expired", "renew it and deploy install-certs, then this service"],
        ..OF_NODE
    },
    Fault {
        name: "metadata-agent-dead",
        done: "neutron's metadata agent ends at its start, because of an option that it cannot read.",
        words: [
            METADATA,
            "neutron's metadata agent does not serve guests",
            "podman logs ovn_metadata_agent",
        ],
        ..OF_NODE
    },
    Fault {
        name: "metadata-secret-wrong",
        done: "The secret of the metadata agent is not the one of nova's metadata API.",
        words: [
            METADATA,
            "nova's metadata API refuses what the agent signs",
            "Make metadata_proxy_shared_secret in Secret nova-metadata-neutron-config",
        ],
        ..OF_NODE
    },
];
