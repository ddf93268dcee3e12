//! The present time, which enters here and is an argument to everything else.

use jiff::Timestamp;

/// The present time.
#[expect(clippy::disallowed_methods, reason = "the clock enters here, as an argument to the rest")]
pub fn now() -> Timestamp {
    Timestamp::now()
}
