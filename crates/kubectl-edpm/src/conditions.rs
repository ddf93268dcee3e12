//! Types of conditions that the commands look for, besides `Ready`.

/// The condition that tells whether the last deployment had the inputs of now.
pub const UP_TO_DATE: &str = "UpToDate";
