//! The system clock, read here only; all other functions take the time as an argument.

use jiff::Timestamp;

/// Returns the current time.
#[expect(clippy::disallowed_methods, reason = "the clock enters here, as an argument to the rest")]
pub fn now() -> Timestamp {
    Timestamp::now()
}
