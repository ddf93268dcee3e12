//! Body of the fuzz target of this crate; see `fuzz/` and docs/development.md.
//!
//! It is compiled for the fuzzer and for tests, which run it on the committed corpus.

use api::conditions::printable;

use crate::trace::answer::{Answer, LiveAnswer};

/// A fuzz target: its name, and the function that takes an input.
pub type Target = (&'static str, fn(&[u8]));

/// The targets of this crate.
pub const TARGETS: &[Target] = &[("answer", answer)];

/// Parses the answer of a host to a query run; all text for the terminal must be printable.
pub fn answer(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Some(answer) = Answer::of(&text) else { return };
    let _ = answer.on_host("01-nova.conf");
    let path = answer.in_container("01-nova.conf").map(|it| it.1);
    let shown = [&answer.said].into_iter().chain(&answer.asked.by_files).map(LiveAnswer::shown);
    let shown = shown.chain(path.map(str::to_owned)).chain(answer.problem().map(str::to_owned));
    let origin = answer.asked.origin.iter().flat_map(|it| [it.kind.clone(), it.detail.clone()]);
    let listed = answer.host.iter().chain(&answer.asked.files).chain(&answer.asked.newer).cloned();
    for text in shown.chain(origin).chain(listed).chain([answer.folder.clone()]) {
        assert_eq!(printable(&text), text, "a terminal would obey it");
    }
}

#[cfg(test)]
#[path = "../../../fuzz/corpus.rs"]
mod corpus;
