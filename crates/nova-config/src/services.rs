//! The services of a compute, in the order in which they run, and nova's service type.

/// Runs libvirt on the host.
pub const LIBVIRT: &str = "libvirt";
/// Runs nova-compute on the host.
pub const NOVA: &str = "nova";
/// Asks the cell whether the compute has registered since.
pub const NOVA_REGISTERED: &str = "nova-registered";

/// The service type whose files are a compute's: it names their folder in the pods of runs.
pub const NOVA_TYPE: &str = "nova";
