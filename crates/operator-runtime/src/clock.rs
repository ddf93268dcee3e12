//! The only place that reads the wall clock; all other code receives the time as an argument.

use jiff::Timestamp;

/// Returns the current time.
#[expect(clippy::disallowed_methods, reason = "this is the place that the rule leaves")]
pub fn now() -> Timestamp {
    Timestamp::now()
}
