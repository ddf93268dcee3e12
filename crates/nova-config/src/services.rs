//! The services of a compute, in the order in which they run, and the types of services that concern it.

/// Runs libvirt on the host.
pub const LIBVIRT: &str = "libvirt";
/// Runs nova-compute on the host.
pub const NOVA: &str = "nova";
/// Checks whether the compute has registered in the cell since.
pub const NOVA_REGISTERED: &str = "nova-registered";
/// Restores the identity of a host on which a service of type nova runs nova-compute.
pub const NOVA_RESTORE: &str = "nova-restore";
/// Stops nova-compute on a host that is to be no compute any more.
pub const NOVA_CLEANUP: &str = "nova-cleanup";

/// The service type of the compute's files, which names their folder in the pods of runs.
pub const NOVA_TYPE: &str = "nova";
/// The type of the service by which hosts know each other's ssh keys.
pub const SSH_KNOWN_HOSTS_TYPE: &str = "ssh-known-hosts";
