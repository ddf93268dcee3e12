//! A text with options that a human wrote, and where it stands.

/// The field that humans write a compute's configuration into.
pub const FIELD: &str = "spec.customServiceConfig";

/// A text with options that a human wrote.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// Where it stands, in the words of a message.
    pub source: &'a str,
    /// The text.
    pub text: &'a str,
}
