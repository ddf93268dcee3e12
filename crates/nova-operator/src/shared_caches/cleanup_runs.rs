//! The label and annotation of cleanup runs, which identify the compute.

use api::ansibleee::AnsibleEe;
use kube::ResourceExt;
use operator_core::object_key::Key;

/// Label with the UID of the compute that a run cleans up after.
pub const CLEANUP_OF: &str = "nova.openstack.org/cleanup-of";
/// Annotation with that compute's name.
pub const COMPUTE_NAME: &str = "nova.openstack.org/compute";

/// Returns the UID of the compute that a run cleans up after; `None` for every other run.
pub fn cleans_up_after(run: &AnsibleEe) -> Option<&String> {
    run.labels().get(CLEANUP_OF)
}

/// Returns the compute that a run cleans up after, by name; `None` for every other run.
pub fn compute_of(run: &AnsibleEe) -> Option<Key> {
    cleans_up_after(run)?;
    let name = run.annotations().get(COMPUTE_NAME)?;
    Some(Key::new(run.namespace().unwrap_or_default(), name))
}
