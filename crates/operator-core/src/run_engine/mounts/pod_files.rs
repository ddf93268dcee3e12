//! Where the files of services lie in the pod, and who may read its keys.

/// Folder of the data sources in the pod, by service type.
pub(super) const CONFIGS_DIR: &str = "/var/lib/openstack/configs";

/// Readable to the runner's group, which is root's: ssh accepts that for a file of another owner.
pub(super) const KEY_MODE: i32 = 0o440;
