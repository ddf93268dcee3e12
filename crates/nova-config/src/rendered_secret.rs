//! The Secrets with rendered files of a compute or a cell: their names and annotations.

/// Annotation with the digest of what the files were rendered from.
pub const CONFIG_HASH: &str = "edpm.openstack.org/content-hash";
/// Annotation with the digest of the inputs of nova-compute that the files were rendered for, whichever
/// release rendered them.
pub const CONFIG_INPUTS: &str = "nova.openstack.org/config-inputs";
/// Annotation with the list of files, as JSON.
pub const CONFIG_FILES: &str = "nova.openstack.org/config-files";

/// Returns the name of the Secret with a compute's files.
pub fn compute_secret_name(compute: &str) -> String {
    format!("{compute}-config-data")
}

/// Returns the name of the Secret with a cell's files, which the upstream services mount.
pub fn cell_secret_name(cell: &str) -> String {
    format!("{cell}-compute-config")
}
