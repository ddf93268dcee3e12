//! The annotations through which a user instructs nova-operator.

/// On a node, its role or its node set: name of the `NovaCell` of the computes that the operator
/// deploys; empty on a node means none.
pub const CELL: &str = "nova.openstack.org/cell";
/// On a node: `true` allows that its compute is deleted when the node has no cell any more.
pub const ALLOW_REMOVAL: &str = "nova.openstack.org/allow-removal";
/// On a compute, its node, or the role or node set of that: `true` lets the compute be deleted without
/// a cleanup of its host; on a `NovaCell`: lets the cell be deleted although its hosts have servers, or
/// may have.
pub const SKIP_CLEANUP: &str = "nova.openstack.org/skip-cleanup";
/// On a node, its role or its node set: name of the ConfigMap that becomes `02-nova-default.conf` of the
/// computes that the operator deploys.
pub const DEFAULT_CONFIG: &str = "nova.openstack.org/default-config";
/// On a `NovaCell`: the release of OpenStack whose options its computes know.
pub const RELEASE: &str = "nova.openstack.org/release";
/// On a `NovaCell`: who maps its hosts, `external` (the default) or `operator`.
pub const HOST_DISCOVERY: &str = "nova.openstack.org/host-discovery";
/// On a `NovaCell` with discovery by the operator: name of the Secret in its namespace whose keys
/// are files of nova's configuration, with the access to the API database.
pub const HOST_DISCOVERY_SECRET: &str = "nova.openstack.org/host-discovery-secret";
/// On a `NovaCell` with discovery by the operator: an image with `nova-manage`.
pub const HOST_DISCOVERY_IMAGE: &str = "nova.openstack.org/host-discovery-image";
/// On a `NovaCell`: names of `RabbitMQUsers` and Secrets, separated by commas, that are held no more
/// for its computes although some still log in with them.
pub const RELEASE_CREDENTIALS: &str = "nova.openstack.org/release-credentials";
/// On a `NovaCell`: the URL of Keystone and the region, with a space between them, of the nova whose
/// identities all of its computes take; it counts only for the nova that the cell names.
pub const ACCEPT_NOVA: &str = "nova.openstack.org/accept-nova";
/// On a compute: any new value requests another attempt of every service.
pub const REDEPLOY: &str = "nova.openstack.org/redeploy";
/// On a node: `wait` or `migrate` drains its host.
pub const DRAIN: &str = "nova.openstack.org/drain";
/// On a node, its role or its node set: why hosts are drained, which becomes the reason of the disabled
/// service.
pub const DRAIN_REASON: &str = "nova.openstack.org/drain-reason";
/// On a node, its role or its node set: the interval at which hosts are compared with what was deployed.
pub const AUDIT: &str = "nova.openstack.org/audit";
/// On a node, its role or its node set: `true` deploys a host again that an audit found out of sync,
/// where the operator deploys it.
pub const AUDIT_REPAIR: &str = "nova.openstack.org/audit-repair";
/// On a node, its role or its node set: `true` drains a host that is in service before a deployment of
/// its compute, reboots it afterwards where that is needed, and gives it back; `false` on a node takes
/// that back for it.
pub const DRAIN_BEFORE: &str = "nova.openstack.org/drain-before";
/// On a node, its role or its node set: how many servers of a drained host migrate at a time.
pub const MAX_MIGRATIONS: &str = "nova.openstack.org/max-migrations";

/// The annotations that a node inherits from its role or node set.
const INHERITED: [&str; 8] = [
    CELL,
    DEFAULT_CONFIG,
    DRAIN_REASON,
    DRAIN_BEFORE,
    MAX_MIGRATIONS,
    AUDIT,
    AUDIT_REPAIR,
    SKIP_CLEANUP,
];

/// Which annotations users set on which kind, for nova-operator to read; the API server warns of
/// others.
pub const OF_KINDS: [(&str, &[&str]); 6] = [
    ("OpenStackDataPlaneRole", &INHERITED),
    ("OpenStackDataPlaneNodeSet", &INHERITED),
    ("OpenStackDataPlaneNode", &INHERITED),
    ("OpenStackDataPlaneNode", &[ALLOW_REMOVAL, DRAIN]),
    (
        "NovaCell",
        &[
            RELEASE,
            HOST_DISCOVERY,
            HOST_DISCOVERY_SECRET,
            HOST_DISCOVERY_IMAGE,
            RELEASE_CREDENTIALS,
            ACCEPT_NOVA,
            SKIP_CLEANUP,
        ],
    ),
    ("NovaExternalCompute", &[REDEPLOY, SKIP_CLEANUP]),
];
