//! Condition types that the commands look for, besides `Ready`.

/// Whether the last deployment used the current inputs.
pub const UP_TO_DATE: &str = "UpToDate";
