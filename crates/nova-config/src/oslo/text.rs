//! A text with options that a user wrote, and where it comes from.

/// The field for a compute's configuration by the user.
pub const FIELD: &str = "spec.customServiceConfig";

/// A text with options that a user wrote.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// Where it comes from, as text for messages.
    pub source: &'a str,
    /// The text.
    pub text: &'a str,
}
