//! The time limit of a probe.

use std::time::Duration;

/// Time limit for the response of one server; servers are probed concurrently.
pub const DEADLINE: Duration = Duration::from_secs(5);
