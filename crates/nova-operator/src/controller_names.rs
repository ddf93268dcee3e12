//! Names of the controllers that read Secrets and ConfigMaps, in logs, metrics and the source
//! cache.

/// The controller of cells.
pub const CELL: &str = "cell";
/// The controller of what is read of nova for cells.
pub const CELL_READINGS: &str = "cell-readings";
/// The controller of computes.
pub const COMPUTE: &str = "compute";
/// The controller of services of type nova.
pub const SERVICE_CONFIG: &str = "service-config";
