//! What a compute must know of its host.

use crate::oslo::Value;

/// The host that a compute runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostView {
    /// The name under which the service registers; it may not change while the compute exists.
    pub host_name: Value,
    /// The address under which other hosts reach this one; nova finds one itself without it.
    pub my_ip: Option<Value>,
}
