//! Tests: CHANGELOG.md has short lines by task and a section for this version, and each row of
//! docs/limits.md says what to do.

use std::fs;

use crate::paths;

/// The most characters of a line.
const LONGEST: usize = 200;

/// The groups of a section, in their order; a section need not have all of them.
const TASKS: [&str; 11] = [
    "What a user of upstream must do",
    "Before you upgrade",
    "Install and upgrade",
    "Hosts",
    "Node sets and services",
    "Bare metal",
    "Options of nova and cells",
    "Maintenance and removal",
    "Diagnosis",
    "Security and limits",
    "Development",
];

/// Returns what is wrong with the form of a changelog.
fn faults(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut versions = Vec::new();
    let mut task = None;
    for (idx, line) in text.lines().enumerate() {
        let mut fault = |what: &str| faults.push(format!("line {}: {what}: {line}", idx + 1));
        let n_characters = line.chars().count();
        if n_characters > LONGEST {
            fault(&format!("{n_characters} characters"));
        }
        if let Some(version) = line.strip_prefix("## ") {
            versions.push(version);
            task = None;
        } else if let Some(title) = line.strip_prefix("### ") {
            let place = TASKS.iter().position(|it| *it == title);
            if place.is_none() || place <= task {
                fault("no task, or not in its order");
            }
            task = place;
        } else if !versions.is_empty() && !line.is_empty() {
            let is_entry = line.starts_with("- ") && line.ends_with(['.', ')']);
            if !is_entry || task.is_none() {
                fault("not a sentence below a task");
            }
        }
    }
    let newest = versions.iter().find(|it| **it != "[Unreleased]");
    let this = format!("[{}] - ", env!("CARGO_PKG_VERSION"));
    let is_dated =
        |it: &&str| it.strip_prefix(&this).is_some_and(|it| it.len() == "2026-11-29".len());
    if !newest.is_some_and(is_dated) {
        faults.push(format!("the newest section is {newest:?}, not {this}DATE"));
    }
    faults
}

/// Returns the rows of a table of limits that do not say what, when and what to do.
fn incomplete(text: &str) -> Vec<&str> {
    let is_complete = |row: &&str| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        cells.len() == 3 && cells.iter().all(|it| !it.is_empty())
    };
    text.lines().filter(|it| it.starts_with('|') && !is_complete(it)).collect()
}

#[test]
fn each_limit_says_what_when_and_what_to_do() {
    let text = fs::read_to_string(paths::repo().join("docs/limits.md")).unwrap();
    assert_eq!(incomplete(&text), [""; 0]);
    let short = "| A limit. | Always. |";
    let open = "| A limit. | Always. |  |";
    assert_eq!(incomplete(&format!("| A | B | C |\n{short}\n{open}\n")), [short, open]);
}

#[test]
fn the_changelog_has_short_lines_by_task_and_a_section_for_this_version() {
    let text = fs::read_to_string(paths::repo().join("CHANGELOG.md")).unwrap();
    assert_eq!(faults(&text), [""; 0]);
    assert!(text.contains(&format!("\n### {}\n", TASKS[0])));
}

#[test]
fn long_lines_other_groups_loose_texts_and_a_missing_version_are_found() {
    let head = format!("# Changelog\n\n## [{}] - 2026-01-01\n\n", env!("CARGO_PKG_VERSION"));
    let said = |body: &str| faults(&format!("{head}{body}\n"));
    assert_eq!(said("### Hosts\n\n- A host.\n\n### Diagnosis\n\n- A ([b](c))"), [""; 0]);
    assert_eq!(said("### Added"), ["line 5: no task, or not in its order: ### Added"]);
    let twice = said("### Diagnosis\n\n- A.\n\n### Hosts\n\n- B.");
    assert_eq!(twice, ["line 9: no task, or not in its order: ### Hosts"]);
    assert_eq!(said("- A.").len(), 1, "an entry without a task");
    assert_eq!(said("### Hosts\n\n- A.\n  Goes on.").len(), 1);
    assert_eq!(said(&format!("### Hosts\n\n- {}.", "a".repeat(LONGEST))).len(), 1);
    assert_eq!(faults("# Changelog\n\n## [Unreleased]\n").len(), 1, "no section for the version");
}
