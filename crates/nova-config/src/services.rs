//! The services of a compute, in the order in which they run, and nova's service type.

/// Runs libvirt on the host.
pub const LIBVIRT: &str = "libvirt";
/// Runs nova-compute on the host.
pub const NOVA: &str = "nova";
/// Checks whether the compute has registered in the cell since.
pub const NOVA_REGISTERED: &str = "nova-registered";

/// The service type of the compute's files, which names their folder in the pods of runs.
pub const NOVA_TYPE: &str = "nova";
