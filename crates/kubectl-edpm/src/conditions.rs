//! Condition types that the commands look for, besides `Ready`.

/// Whether the last deployment used the current inputs.
pub const UP_TO_DATE: &str = "UpToDate";
/// The reason of that condition where its inputs are current, and another release renders other files.
pub const OPERATOR_CHANGED: &str = "OperatorChanged";
