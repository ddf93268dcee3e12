//! The limits of all audits of a cluster.

use jiff::SignedDuration;

/// The limits of all audits of a cluster.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AuditLimits {
    /// The shortest interval that an annotation may request.
    pub least_interval: SignedDuration,
    /// How many audits may be open at a time, so that deployments find free slots.
    pub max_open: usize,
}
