//! Where the files of services are in the pod, and the mode of its key files.

/// Directory of the data sources in the pod, by service type.
pub(super) const CONFIGS_DIR: &str = "/var/lib/openstack/configs";

/// Mode of key files: readable by the runner's group, which is root's.
///
/// ssh accepts that for a file of another owner.
pub(super) const KEY_MODE: i32 = 0o440;
