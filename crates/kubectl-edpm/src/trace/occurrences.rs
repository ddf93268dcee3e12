//! The places where an option is set, one line of text each.

use nova_config::oslo::Entry;

use crate::config_files::{File, shown};
use crate::option_names::OptionNames;

/// Lists every line of a text that sets the option.
pub(super) fn places(place: &str, entries: &[Entry], named: &OptionNames) -> Vec<String> {
    let found = named.entries(entries);
    found.into_iter().map(|it| format!("{place}, line {}: {}", it.line, shown(it))).collect()
}

/// Lists the entries of all files that set the option, and marks the one that wins.
pub(super) fn winners(files: &[File], named: &OptionNames) -> Vec<String> {
    let winner = named.winner(files);
    let mut lines = Vec::new();
    for file in files {
        for entry in named.entries(&file.entries) {
            let is_winner = winner.is_some_and(|(it, last)| it.name == file.name && last == entry);
            let why = match (named.is_multi, is_winner) {
                (true, _) => "  <- counts: every value of this option does",
                (false, true) => "  <- wins: the last one, by name of file, that sets it",
                (false, false) => "",
            };
            lines.push(format!("{}, line {}: {}{why}", file.name, entry.line, shown(entry)));
        }
    }
    if winner.is_none() && !files.is_empty() {
        let all: Vec<&str> = files.iter().map(|it| it.name.as_str()).collect();
        lines.push(format!("none of {} sets it", all.join(", ")));
    }
    lines
}
