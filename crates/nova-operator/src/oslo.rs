//! oslo.config's file format, read and written by its own rules, with the place of every entry.
//!
//! What the rules are was settled by running `oslo_config.iniparser`; `oslo/testdata/expected.json`
//! holds its answers to a table of tricky files and names the version that gave them.

mod faults;
mod known;
mod parse;
mod write;

#[cfg(test)]
mod tests;

pub use faults::{Fault, Finding, OWNED_BY_OPERATOR, faults, owned_options, surprises};
pub use known::unknown_options;
pub use parse::parse;
pub use write::{Unwritable, Value, render};

/// Everything in a human's options that is accepted and that they should know, in the order of its
/// place.
pub fn findings(custom_service_config: &str) -> Vec<Finding> {
    let (entries, _) = parse(custom_service_config);
    let mut all = owned_options(&entries);
    all.extend(surprises(&entries));
    all.extend(unknown_options(&entries));
    all.sort_by_key(|it| (it.line, it.column));
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
