//! Whether nova's services are up and its hosts mapped, read from nova's API at an interval.
//!
//! One reader for each API, user and region reads for all cells that share them. Controllers never
//! wait for it: they use the last readings, and are enqueued when these change.

pub mod monitor;
pub mod readings;

pub use monitor::NovaMonitor;
pub use readings::{ApiHealth, HostHealth, MappingHealth, ServiceHealth};
