//! The clock of those who are played here: a kubelet and an Ironic write times of their own.

use jiff::Timestamp;

/// The present time.
#[expect(clippy::disallowed_methods, reason = "what is played here has a clock of its own")]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}
