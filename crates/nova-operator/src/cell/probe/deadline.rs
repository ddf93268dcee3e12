//! The time limit of a probe.

use std::time::Duration;

/// Time limit for the response of one server; a few are probed at a time.
pub const DEADLINE: Duration = Duration::from_secs(5);
