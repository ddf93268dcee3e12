//! The label and annotation of the runs that clean up hosts of node sets.

use api::ansibleee::AnsibleEe;
use kube::ResourceExt;
use operator_core::object_key::Key;

/// Label with the UID of the node set whose host a run cleans up.
pub const CLEANUP_OF_NODE_SET: &str = "nova.openstack.org/cleanup-of-node-set";
/// Annotation with that node set's name.
pub const NODE_SET_NAME: &str = "nova.openstack.org/node-set";

/// Returns the node set whose host a run cleans up, by name; `None` for every other run.
pub fn node_set_of(run: &AnsibleEe) -> Option<Key> {
    run.labels().get(CLEANUP_OF_NODE_SET)?;
    let name = run.annotations().get(NODE_SET_NAME)?;
    Some(Key::new(run.namespace().unwrap_or_default(), name))
}
