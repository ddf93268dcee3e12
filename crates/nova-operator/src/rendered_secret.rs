//! The Secrets with rendered files of a compute or a cell: their names, their annotations, and whose
//! they are.

use common::conditions::Finding;
use kube::Resource;
use shell::owned::Owned;

use crate::conditions::SERVICE_CONFIG_READY;

/// Annotation with the digest of what the files were rendered from.
pub const CONFIG_HASH: &str = "edpm.openstack.org/content-hash";
/// Annotation with the list of files, as JSON.
pub const CONFIG_FILES: &str = "nova.openstack.org/config-files";

/// The Secret with a compute's files.
pub fn compute_secret_name(compute: &str) -> String {
    format!("{compute}-config-data")
}

/// The Secret with a cell's files, under the name that upstream's services mount.
pub fn cell_secret_name(cell: &str) -> String {
    format!("{cell}-compute-config")
}

/// Whether this operator has not made a Secret for that object: it is a human's own, perhaps.
pub fn is_of_others(parent: &impl Resource, controller: Option<&str>, owned: &Owned) -> bool {
    let is_parents = controller.is_some() && controller == parent.meta().uid.as_deref();
    !is_parents && !owned.has([CONFIG_HASH], [])
}

/// What is said of it on that object.
pub fn not_ours(parent: &impl Resource, name: &str) -> Finding {
    let namespace = parent.meta().namespace.as_deref().unwrap_or_default();
    let text = format!(
        "Secret {name} was not made by the operator and is left alone: where nobody needs it, \
         delete it with kubectl delete -n {namespace} secret {name}, and it is made anew."
    );
    Finding::warning(SERVICE_CONFIG_READY, "SecretNotOurs", text)
}
