//! The writer, and the values that oslo.config reads back unchanged.

use std::fmt;

use super::parse::{Entry, is_space};

/// Writes entries so that [`super::parse()`] returns them in the same order.
///
/// # Assumptions
/// The entries came from `parse`, or name no section or key that the format cannot hold.
pub fn render(entries: &[Entry]) -> String {
    let mut lines = Vec::new();
    let mut section = None;
    for entry in entries {
        if section != Some(&entry.section) {
            if section.is_some() {
                lines.push(String::new());
            }
            lines.push(format!("[{}]", entry.section));
            section = Some(&entry.section);
        }
        let mut value = entry.value.split('\n');
        let first = quoted(value.next().unwrap_or_default());
        lines.push(format!("{} = {first}", entry.key).trim_end().to_owned());
        lines.extend(value.map(|it| format!("    {it}")));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Quotes a value that the parser would strip: spaces at its ends, or a pair of quotes.
fn quoted(value: &str) -> String {
    let starts_with_quote = value.starts_with(['"', '\'']);
    if starts_with_quote || value != value.trim_matches(is_space) {
        format!("\"{value}\"")
    } else {
        value.to_owned()
    }
}

/// A text that an option can hold literally; it may be a secret, so `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Value(String);

/// Why no escape makes oslo.config return a text unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritable {
    /// A line break or another control character.
    ControlCharacter,
    /// A backslash before a dollar sign, which oslo.config reads as an escaped dollar sign.
    BackslashDollar,
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ControlCharacter => "holds a line break or another control character",
            Self::BackslashDollar => {
                "holds a backslash before a dollar sign, which oslo.config cannot keep apart from \
                 an escaped dollar sign"
            }
        })
    }
}

impl Value {
    /// Returns the value, or why no option can hold the text.
    pub fn new(text: &str) -> Result<Self, Unwritable> {
        if text.chars().any(char::is_control) {
            return Err(Unwritable::ControlCharacter);
        }
        if text.contains(r"\$") {
            return Err(Unwritable::BackslashDollar);
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Returns the text with every `$` doubled, so that oslo.config substitutes nothing.
    pub fn escaped(&self) -> String {
        self.0.replace('$', "$$")
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Value(hidden)")
    }
}
