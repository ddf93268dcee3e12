//! oslo.config's file format, read and written by its own rules, with the place of every entry.
//!
//! What the rules are was settled by running `oslo_config.iniparser`; `oslo/testdata/expected.json`
//! holds its answers to a table of tricky files and names the version that gave them.

mod faults;
mod known;
mod nearest;
mod parse;
mod schema;
mod value;
mod write;

#[cfg(test)]
mod tests;

pub use faults::{Fault, Finding, OWNED_BY_OPERATOR, faults};
pub use parse::parse;
pub use schema::{Release, Schema};
pub use value::{Bounds, Type};
pub use write::{Unwritable, Value, render};

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

/// Everything in a compute's texts that is accepted and that a human should know, in the order of
/// its place; without a release, what holds for all of them.
pub fn findings(texts: &[Text<'_>], release: Option<Release>) -> Vec<Finding> {
    let mut read: Vec<(Text<'_>, Vec<Entry>)> =
        texts.iter().map(|it| (*it, parse(it.text).0)).collect();
    read.retain(|(_, entries)| !entries.is_empty());
    if read.is_empty() {
        return vec![];
    }
    let of_release = match release {
        Some(release) => known::of_release(&read, release.schema()),
        None => vec![vec![]; read.len()],
    };
    let mut all = Vec::new();
    for ((text, entries), of_release) in read.iter().zip(of_release) {
        let mut of_text = faults::owned_options(text.source, entries);
        of_text.extend(faults::surprises(text.source, entries));
        of_text.extend(of_release);
        of_text.sort_by_key(|it| (it.line, it.column));
        all.extend(of_text);
    }
    all
}

/// One option of a file; a repeated key gives one entry per occurrence, as a `MultiOpt` reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The section's name as written, without its brackets.
    pub section: String,
    /// The option's name.
    pub key: String,
    /// The value, without a pair of quotes around it; continuation lines are joined by `\n`.
    pub value: String,
    /// The line of the key, from 1.
    pub line: usize,
    /// The column of the key in characters, from 1.
    pub column: usize,
}

/// One place where oslo.config would refuse the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub reason: Reason,
}

/// Why oslo.config refuses a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Neither `=` nor `:` in a line that is not a header, a comment or a continuation.
    NoAssignment,
    /// Nothing before the `=` or `:`.
    EmptyKey,
    /// An indented line with no option above it.
    UnexpectedContinuation,
    /// A line that begins with `[` and does not end with `]`.
    UnclosedSection,
    /// `[]`.
    EmptySection,
    /// An option above the first section header.
    NoSection,
}

impl Reason {
    /// What is wrong, and the legal way, in a human's words.
    pub fn message(self) -> &'static str {
        match self {
            Self::NoAssignment => {
                "this line has neither '=' nor ':'; write `option = value`, start the line with \
                 '#' to make it a comment, or indent it to continue the value above"
            }
            Self::EmptyKey => "the option has no name; write `option = value`",
            Self::UnexpectedContinuation => {
                "this line is indented, which continues the value above, but no value is open \
                 there (a blank line, a comment or a section header ends it); remove the spaces \
                 at its beginning"
            }
            Self::UnclosedSection => {
                "a section header must end with ']', and nothing may follow it; move what follows \
                 to a line of its own"
            }
            Self::EmptySection => {
                "the section header is empty; name the section, as in `[libvirt]`"
            }
            Self::NoSection => {
                "this option stands above the first section header; put a header such as \
                 `[DEFAULT]` above it"
            }
        }
    }
}
