//! The only place that reads the wall clock; everything else is given the time.

use jiff::Timestamp;

/// The present time.
#[expect(clippy::disallowed_methods, reason = "this is the place that the rule leaves")]
pub fn now() -> Timestamp {
    Timestamp::now()
}
