//! What a compute needs to know about its host.

use crate::oslo::Value;

/// The host that a compute runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostView {
    /// The name under which the service registers; it must not change while the compute exists.
    pub host_name: Value,
    /// The address at which other hosts reach this one; with `None`, nova detects one itself.
    pub my_ip: Option<Value>,
}
