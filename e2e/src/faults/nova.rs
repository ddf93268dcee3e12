//! Faults of nova's API, and what nova reports of hosts, of their drain and of their removal.

use super::{Fault, Kstatus};

const NODE: &str = "OpenStackDataPlaneNode";
const CELL: &str = "NovaCell";

/// What nova's API answers to the operator that reads it for a cell.
const fn of_api(name: &'static str, done: &'static str, cause: &'static str) -> Fault {
    of_cell(name, done, cause, "Look at nova's API and its log")
}

const fn of_cell(
    name: &'static str,
    done: &'static str,
    cause: &'static str,
    next: &'static str,
) -> Fault {
    Fault {
        name,
        done,
        kind: CELL,
        object: "nova-cell1",
        also: None,
        words: ["the computes of NovaCell nova-cell1", cause, next],
        kstatus: Kstatus::Current,
    }
}

/// What nova reports of a host that is in service.
const fn of_node(name: &'static str, done: &'static str, words: [&'static str; 3]) -> Fault {
    Fault {
        name,
        done,
        kind: NODE,
        object: "compute-0",
        also: None,
        words,
        kstatus: Kstatus::Current,
    }
}

/// The faults of nova's API.
pub const API: &[Fault] = &[
    of_cell(
        "nova-refuses-token",
        "Nova answers 401 to each request.",
        "Nova's API refuses the token that Keystone has just issued",
        "Look at [keystone_authtoken], the clock and the log of nova's API",
    ),
    of_cell(
        "nova-role-missing",
        "Nova answers 403, because the user of the cell is no administrator.",
        "Nova's API denies access",
        "Give the user of the cell the role admin in its project",
    ),
    of_api("nova-conflict", "Nova answers 409.", "Nova's API reports a conflict"),
    of_api("nova-throttles", "Nova answers 429.", "Nova's API asks to try later"),
    of_api("nova-fails", "Nova answers 500.", "Nova's API fails with HTTP status 500"),
    of_api("nova-unavailable", "Nova answers 503.", "Nova's API asks to try later"),
    of_api("nova-garbage", "Nova's port answers what is not nova's.", "is not nova's API"),
    of_api("nova-stopped", "Nova's API is stopped.", "Nova's API cannot be reached"),
    of_cell(
        "nova-region-unknown",
        "The cell's Secret names a region that Keystone's catalog does not have.",
        "type compute in region nowhere",
        "Correct RegionName in Secret nova-cell1",
    ),
];

/// What nova reports of hosts.
pub const HOSTS: &[Fault] = &[
    of_node(
        "service-down",
        "nova-compute on a host does not report to nova any more.",
        [
            "nova-compute on host compute-0 has",
            "not reported to nova since",
            "podman logs nova_compute",
        ],
    ),
    of_node(
        "service-forced-down",
        "An administrator forces the service of a host down.",
        [
            "the service of host compute-0",
            "An administrator has forced down",
            "openstack --os-compute-api-version 2.11 compute service set --up compute-0 nova-compute",
        ],
    ),
    of_node(
        "service-deleted",
        "The service of a host is deleted in nova.",
        [
            "no compute service of host compute-0",
            "it was deleted",
            "kubectl annotate --overwrite -n NAMESPACE",
        ],
    ),
    of_node(
        "drain-invalid",
        "A node is annotated with a drain that does not exist.",
        [
            "Annotation nova.openstack.org/drain of OpenStackDataPlaneNode compute-0",
            "is \"evacuate\", and nothing was changed",
            "set it to wait or migrate",
        ],
    ),
    of_node(
        "max-migrations-invalid",
        "A node that is drained asks for no migrations at a time.",
        [
            "Annotation nova.openstack.org/max-migrations of OpenStackDataPlaneNode compute-0",
            "is \"0\", and nothing was changed",
            "set it to a number from 1 to 100",
        ],
    ),
    of_node(
        "drain-with-stopped-server",
        "A host is drained by live migration, and one of its servers is stopped.",
        [
            "Host compute-0 has 1 server",
            "its status is SHUTOFF",
            "openstack server list --all-projects --host compute-0",
        ],
    ),
    of_node(
        "drain-refused",
        "A host is drained by live migration, and nova refuses to migrate a server.",
        [
            "Host compute-0 has 1 server",
            "nova refuses: ",
            "openstack server list --all-projects --host compute-0",
        ],
    ),
    Fault {
        kstatus: Kstatus::Terminating,
        ..of_node(
            "removal-service-kept",
            "A node is deleted, and nova refuses to delete the service of its host.",
            [
                "the service of host compute-0",
                "Nova keeps the service",
                "nova.openstack.org/skip-cleanup=true",
            ],
        )
    },
    Fault {
        kstatus: Kstatus::Terminating,
        ..of_node(
            "removal-provider-kept",
            "A node is deleted, and placement refuses to delete the provider of its host.",
            [
                "of host compute-0: ",
                "Placement keeps resource provider",
                "openstack resource provider show --allocations",
            ],
        )
    },
];
