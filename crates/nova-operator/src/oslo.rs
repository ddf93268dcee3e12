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

/// The longest text that is read, in bytes; one that is longer has a fault. No annotation of
/// kubectl's holds more, and no compute's options come near it.
pub const LONGEST_TEXT: usize = 256 * 1024;

/// How many faults or findings of a compute's options are told one by one.
pub const TOLD: usize = 20;

/// What is told of something that there may be much of: anybody may write a text whose every line is
/// worth a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told<T> {
    /// The first ones, in the order of their place.
    pub first: Vec<T>,
    /// How many more there are.
    pub n_more: usize,
}

impl<T> Told<T> {
    /// At most so many of them; the others are made and dropped one by one.
    fn of(all: impl IntoIterator<Item = T>, most: usize) -> Self {
        let mut told = Self { first: vec![], n_more: 0 };
        for it in all {
            if told.first.len() < most {
                told.first.push(it);
            } else {
                told.n_more += 1;
            }
        }
        told
    }
}

/// What in a compute's texts is accepted and a human should know, at most so much of it, in the
/// order of its place; without a release, what holds for all of them.
pub fn findings(texts: &[Text<'_>], release: Option<Release>, most: usize) -> Told<Finding> {
    let mut read: Vec<(Text<'_>, Vec<Entry>)> =
        texts.iter().map(|it| (*it, parse(it.text).0)).collect();
    read.retain(|(_, entries)| !entries.is_empty());
    let mut judge = release.map(|it| known::Judge::new(&read, it.schema()));
    // A reader gives entries in the order of their place.
    let all = read.iter().enumerate().flat_map(|(text_idx, (text, entries))| {
        entries.iter().map(move |entry| (text_idx, text.source, entry))
    });
    let all = all.flat_map(|(text_idx, source, entry)| {
        let mut of_entry = faults::of_entry(source, entry);
        if let Some(judge) = &mut judge {
            of_entry.extend(judge.findings(text_idx, source, entry));
        }
        of_entry
    });
    Told::of(all, most)
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

/// Why oslo.config refuses a line, or the line is not given to it.
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
    /// A section's name that is longer than any that something reads.
    LongSection,
    /// The whole text is longer than [`LONGEST_TEXT`].
    LongText,
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
            Self::LongSection => "the section's name is longer than 128 bytes; shorten it",
            Self::LongText => {
                "the text is longer than 256 KiB and is not read; write only the options that \
                 differ from the defaults"
            }
        }
    }
}
