//! How long a probe waits for a server.

use std::time::Duration;

/// How long one server may take to answer; servers are asked at the same time.
pub const DEADLINE: Duration = Duration::from_secs(5);
