//! The annotations that users set for this operator to read, and which objects have them; those that it
//! writes itself.

use api::dataplane::node::REDEPLOY;
use operator_core::applied::APPLIED;
use operator_core::run_engine::host_key::ACCEPT;
use operator_core::run_engine::host_owner::TAKE_OVER;
use operator_core::run_engine::run::{ATTEMPTS, HOST_KEYS, SSH_KEYS};

use crate::default_services::{CONTENT_HASH, RESTORED};

/// Annotation by which a user hands a role or node over to the data plane of that name.
pub const ADOPT: &str = "dataplane.openstack.org/adopt";

/// Annotation on a node, or on a role or node set for all its hosts: their machines are given back
/// without a last look for guests.
pub const SKIP_CLEANUP: &str = "dataplane.openstack.org/skip-cleanup";

/// Annotation on a node, or on a role or node set for all its hosts: a name for the network in which
/// their addresses are valid. The same address with another name is another machine.
pub const NETWORK_SCOPE: &str = "dataplane.openstack.org/network-scope";

/// Annotation on a node: fingerprints, separated by commas or spaces, of keys that its host may present
/// although other hosts do too.
pub const ACCEPT_SHARED: &str = "dataplane.openstack.org/accept-shared-host-key";

/// Annotation with which a user confirms the deletion of a running deployment.
pub const CONFIRM: &str = "dataplane.openstack.org/confirm-delete";

/// Which annotations users set on which kind, for this operator to read; the API server warns of
/// others.
pub const OF_KINDS: [(&str, &[&str]); 8] = [
    ("OpenStackDataPlane", &[]),
    ("OpenStackDataPlaneRole", &[REDEPLOY, ADOPT, NETWORK_SCOPE, SKIP_CLEANUP]),
    (
        "OpenStackDataPlaneNode",
        &[REDEPLOY, ACCEPT, ACCEPT_SHARED, TAKE_OVER, NETWORK_SCOPE, ADOPT, SKIP_CLEANUP],
    ),
    ("OpenStackDataPlaneNodeSet", &[NETWORK_SCOPE, SKIP_CLEANUP]),
    ("OpenStackDataPlaneDeployment", &[CONFIRM]),
    ("OpenStackDataPlaneService", &[]),
    ("OpenStackBaremetalSet", &[]),
    ("OpenStackAnsibleEE", &[]),
];

/// Annotations that the operator writes on these kinds; a backup or an export brings them back.
pub const WRITTEN: [&str; 6] = [APPLIED, CONTENT_HASH, RESTORED, ATTEMPTS, SSH_KEYS, HOST_KEYS];
