//! oslo.config's file format, parsed and written by its own rules, with the position of every
//! entry.
//!
//! The rules were determined by running `oslo_config.iniparser`; `oslo/testdata/expected.json`
//! holds its results for a table of difficult files and names the version.

mod bounded_list;
mod faults;
mod known;
mod looks;
mod parse;
mod ranges;
mod rules;
mod schema;
mod substitution;
mod suggestion;
mod text;
mod value;
mod write;

#[cfg(test)]
mod tests;

pub use bounded_list::{BoundedList, LIST_LIMIT};
pub use faults::{Fault, Finding, OWNED_BY_OPERATOR, faults};
pub use parse::{Entry, LONGEST_TEXT, Reason, SyntaxError, parse};
pub use schema::{Release, Schema};
pub use suggestion::nearest;
pub use text::{FIELD, Text};
pub(crate) use value::boolean;
pub use value::{Bounds, Type};
pub use write::{Unwritable, Value, render};

/// Returns the first `most` warnings about accepted options of a compute, in the order of their
/// position. Without a release, only those that hold for all releases.
///
/// Of the texts the first one overrides the others, and all of them override `generated`, the
/// operator's own options.
pub fn warnings(
    texts: &[Text<'_>],
    generated: &[Entry],
    release: Option<Release>,
    most: usize,
) -> BoundedList<Finding> {
    let mut read: Vec<(Text<'_>, Vec<Entry>)> =
        texts.iter().map(|it| (*it, parse(it.text).0)).collect();
    read.retain(|(_, entries)| !entries.is_empty());
    let mut check = release.map(|it| known::OptionCheck::new(&read, generated, it.schema()));
    // The parser returns entries in the order of their position.
    let all = read.iter().enumerate().flat_map(|(text_idx, (text, entries))| {
        entries.iter().map(move |entry| (text_idx, text.source, entry))
    });
    let all = all.flat_map(|(text_idx, source, entry)| {
        let mut of_entry = faults::of_entry(source, entry);
        if let Some(check) = &mut check {
            of_entry.extend(check.warnings(text_idx, source, entry));
        }
        of_entry
    });
    BoundedList::of(all, most)
}
