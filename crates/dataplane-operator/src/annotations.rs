//! Which annotations objects have that this operator reads or writes.

use api::dataplane::node::REDEPLOY;
use operator_core::applied::APPLIED;
use operator_core::run_engine::host_key::ACCEPT;
use operator_core::run_engine::host_owner::TAKE_OVER;

use crate::data_plane::children::ADOPT;
use crate::default_services::{CONTENT_HASH, RESTORED};
use crate::deployment::finalizer::CONFIRM;
use crate::host::conflicts::host_claim::NETWORK_SCOPE;
use crate::host::conflicts::host_keys::ACCEPT_SHARED;
use crate::host::last_look::SKIP_CLEANUP;

/// Which annotations users set on which kind, for this operator to read; the API server warns of
/// others.
pub const OF_KINDS: [(&str, &[&str]); 6] = [
    ("OpenStackDataPlane", &[]),
    ("OpenStackDataPlaneRole", &[REDEPLOY, ADOPT, NETWORK_SCOPE, SKIP_CLEANUP]),
    (
        "OpenStackDataPlaneNode",
        &[REDEPLOY, ACCEPT, ACCEPT_SHARED, TAKE_OVER, NETWORK_SCOPE, ADOPT, SKIP_CLEANUP],
    ),
    ("OpenStackDataPlaneNodeSet", &[NETWORK_SCOPE, SKIP_CLEANUP]),
    ("OpenStackDataPlaneDeployment", &[CONFIRM]),
    ("OpenStackDataPlaneService", &[]),
];

/// Annotations that the operator writes on these kinds; a backup or an export brings them back.
pub const WRITTEN: [&str; 3] = [APPLIED, CONTENT_HASH, RESTORED];
