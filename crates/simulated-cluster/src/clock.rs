//! The clock of the simulated components: a kubelet and an Ironic write timestamps of their own.

use jiff::Timestamp;

/// Returns the current time.
#[expect(clippy::disallowed_methods, reason = "what is played here has a clock of its own")]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}
