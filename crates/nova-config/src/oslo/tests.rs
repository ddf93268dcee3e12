//! The parser against oslo.config's own results, and the writer against the parser.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{
    Entry, LIST_LIMIT, LONGEST_TEXT, Reason, Release, Text, Value, faults, parse, render, warnings,
};

type Sections = BTreeMap<String, BTreeMap<String, Vec<String>>>;

#[derive(serde::Deserialize)]
struct Table {
    #[serde(rename = "oslo.config")]
    version: String,
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    text: String,
    sections: Option<Sections>,
    message: Option<String>,
    line: Option<usize>,
}

/// Maps a message of oslo.config's own parser, as in the table.
fn reason(message: &str) -> Reason {
    match message {
        "No ':' or '=' found in assignment" => Reason::NoAssignment,
        "Key cannot be empty" => Reason::EmptyKey,
        "Unexpected continuation line" => Reason::UnexpectedContinuation,
        "Invalid section (must end with ])" => Reason::UnclosedSection,
        "Empty section name" => Reason::EmptySection,
        "Section must be started before assignment" => Reason::NoSection,
        other => panic!("the table holds a message that is not known: {other}"),
    }
}

fn sections(entries: &[Entry]) -> Sections {
    let mut sections = Sections::new();
    for it in entries {
        let options = sections.entry(it.section.clone()).or_default();
        options.entry(it.key.clone()).or_default().push(it.value.clone());
    }
    sections
}

#[test]
fn every_tricky_file_reads_as_oslo_config_reads_it() {
    let table: Table = serde_json::from_str(include_str!("testdata/expected.json")).unwrap();
    assert_eq!(table.version, "10.7.0");
    assert!(table.cases.len() > 60);
    for case in table.cases {
        let (entries, errors) = parse(&case.text);
        match (case.sections, case.message, case.line) {
            (Some(mut expected), None, None) => {
                assert_eq!(errors, [], "{}", case.name);
                // A header without options below it is not compared.
                expected.retain(|_, options| !options.is_empty());
                assert_eq!(sections(&entries), expected, "{}", case.name);
            }
            (None, Some(message), Some(line)) => {
                let first = errors.first().unwrap_or_else(|| panic!("{}: accepted", case.name));
                assert_eq!(first.reason, reason(&message), "{}", case.name);
                // oslo reports the missing header at the end of the value, this parser at its
                // beginning.
                let is_exact = first.reason != Reason::NoSection;
                assert!(if is_exact { first.line == line } else { first.line <= line });
            }
            other => panic!("{}: a malformed case: {other:?}", case.name),
        }
    }
}

#[track_caller]
fn check(text: &str, expected: &[(usize, usize, Reason)]) {
    let (_, errors) = parse(text);
    let errors: Vec<_> = errors.into_iter().map(|it| (it.line, it.column, it.reason)).collect();
    assert_eq!(errors, expected);
}

#[test]
fn every_bad_line_is_named_not_only_the_first() {
    check(
        "[libvirt\ncpu_mode = custom\n\n  x\n[a] note\nk\n= 1\n[]\n",
        &[
            (1, 9, Reason::UnclosedSection),
            (4, 3, Reason::UnexpectedContinuation),
            (5, 4, Reason::UnclosedSection),
            (6, 1, Reason::NoAssignment),
            (7, 1, Reason::EmptyKey),
            (8, 1, Reason::EmptySection),
        ],
    );
    // A missing first header is named once, and columns count characters.
    check("# note\na = 1\nb = 2\n[c]\nd = 3\n", &[(2, 1, Reason::NoSection)]);
    check("[grüße] x\n", &[(1, 8, Reason::UnclosedSection)]);
    let (entries, _) = parse("[a]\n\n\x0ck = 1\n  2\n");
    assert_eq!((entries[0].line, entries[0].column), (3, 2));
}

#[test]
fn a_fault_names_field_line_column_and_the_legal_way() {
    let found = faults("[libvirt]\ncpu_mode custom\n").first;
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].path, found[0].line, found[0].column), ("spec.customServiceConfig", 2, 1));
    assert_eq!(
        found[0].message,
        "spec.customServiceConfig, line 2, column 1: this line has neither '=' nor ':'; write \
         `option = value`, start the line with '#' to make it a comment, or indent it to continue \
         the value above"
    );
    assert_eq!(faults("[libvirt]\ncpu_mode = custom\n").first, []);
}

#[test]
fn of_many_faults_and_findings_the_first_are_told_and_the_others_counted() {
    let found = faults(&"x\n".repeat(50_000));
    assert_eq!((found.first.len(), found.n_more), (LIST_LIMIT, 50_000 - LIST_LIMIT));
    assert_eq!(found.first.last().unwrap().line, LIST_LIMIT);
    let text = format!("[DEFAULT]\n{}", "host = a\n".repeat(20_000));
    let text = Text { source: "x", text: &text };
    for release in [None, Some(Release::newest())] {
        let found = warnings(&[text], &[], release, 3);
        assert_eq!(
            found.first.iter().map(|it| it.line).collect::<Vec<_>>()[..2],
            [2, 3 - usize::from(release.is_some())]
        );
        assert!(found.first.len() == 3 && found.n_more >= 20_000 - 3, "{}", found.n_more);
    }
}

#[test]
fn a_text_or_a_sections_name_that_is_too_long_is_a_fault_and_costs_nothing_more() {
    let longest = format!("[{}]\na = 1\n", "s".repeat(128));
    assert_eq!(parse(&longest).0.len(), 1);
    // Each entry repeats its section's name: 100 MiB of them, in 130 KiB.
    let longer = format!("[{}]\n{}", "s".repeat(100_000), "a=\n".repeat(1_000));
    assert_eq!(parse(&longer).0, []);
    check(&longer, &[(1, 2, Reason::LongSection)]);
    let text = "#".repeat(LONGEST_TEXT);
    check(&text, &[]);
    check(&format!("{text}\n[a]\nb = 1"), &[(1, 1, Reason::LongText)]);
}

/// The positions and options of the warnings without a release.
fn told(text: &str) -> Vec<(usize, String)> {
    let found = warnings(&[Text { source: "x", text }], &[], None, usize::MAX).first;
    assert!(found.iter().all(|it| it.message.starts_with(&format!("x, line {}, ", it.line))));
    assert!(found.iter().all(|it| !it.message.contains("hunter2")));
    found.into_iter().map(|it| (it.line, it.option)).collect()
}

#[test]
fn options_of_the_operator_are_findings_without_their_values() {
    let found = told(
        "[DEFAULT]\ndebug = True\ntransport_url = rabbit://u:hunter2@h\n[Placement]\npassword: x\n",
    );
    assert_eq!(
        found,
        [(3, "[DEFAULT] transport_url".to_owned()), (5, "[Placement] password".to_owned())]
    );
}

#[test]
fn what_oslo_config_reads_otherwise_than_it_looks_is_a_finding() {
    let found = told(
        "[default]\na = 1\n[ libvirt ]\nb = 2\n[database]\nc = 3\n[x]\nd = 4\ne = 5 # five\n\
         f = 6\n  [y]\ng = \"7\n",
    );
    assert_eq!(found.into_iter().map(|it| it.0).collect::<Vec<_>>(), [2, 4, 6, 9, 10, 12]);
}

#[test]
fn what_follows_from_another_name_of_the_host_is_told_with_novas_words() {
    let text = Text { source: "x", text: "[DEFAULT]\nhost = compute-9\n" };
    let found = warnings(&[text], &[], None, 9).first;
    assert_eq!(found.len(), 1);
    assert!(found[0].message.contains("refuses to start (Possible rename detected)"), "{found:?}");
}

#[test]
fn what_decides_how_guests_move_is_told_and_tcp_above_all() {
    for (option, words) in [
        ("live_migration_uri = qemu+tcp://%s/system", "neither asks who calls nor encrypts"),
        ("live_migration_scheme = tcp", "neither asks who calls nor encrypts"),
        ("live_migration_uri = qemu+ssh://nova@%s/system", "replaces live_migration_scheme"),
        ("live_migration_scheme = tls", "is set by the play"),
        ("live_migration_inbound_addr = 192.0.2.1", "is set by the play"),
        ("live_migration_with_native_tls = True", "is set by the play"),
        ("live_migration_tunnelled = True", "excludes live_migration_with_native_tls"),
    ] {
        let text = format!("[Libvirt]\n{option}\nlive_migration_timeout_action = abort\n");
        let found = warnings(&[Text { source: "x", text: &text }], &[], None, 9).first;
        assert_eq!(found.len(), 1, "{option}: {found:?}");
        assert!(found[0].line == 2 && found[0].message.contains(words), "{found:?}");
    }
    assert_eq!(told("[libvirt]\nlive_migration_tunnelled = False\n"), []);
    assert_eq!(told("[other]\nlive_migration_uri = qemu+tcp://%s/system\n"), []);
}

#[test]
fn a_value_does_not_show_itself() {
    assert_eq!(format!("{:?}", Value::new("hunter2").unwrap()), "Value(hidden)");
}

prop_compose! {
    fn entry()(
        section in "[A-Za-z_][A-Za-z0-9_ .:=\\]-]{0,12}",
        key in "[A-Za-z_][A-Za-z0-9_.-]{0,12}",
        first in "[ -~äß\"']{0,20}",
        more in prop::collection::vec("[!-~]([ -~]{0,10}[!-~])?", 0..3),
    ) -> Entry {
        let value = std::iter::once(first).chain(more).collect::<Vec<_>>().join("\n");
        Entry { section, key, value, line: 0, column: 0 }
    }
}

fn without_places(entries: Vec<Entry>) -> Vec<Entry> {
    entries.into_iter().map(|it| Entry { line: 0, column: 0, ..it }).collect()
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(entries in prop::collection::vec(entry(), 0..8)) {
        let (read, errors) = parse(&render(&entries));
        prop_assert_eq!(errors, []);
        prop_assert_eq!(without_places(read), entries);
    }

    #[test]
    fn what_is_read_can_be_written(text in "([\\[\\]=:#;'\" a-c\n\t\r]|\\[a\\]\n|k = v\n){0,60}") {
        let (entries, _) = parse(&text);
        let (again, errors) = parse(&render(&entries));
        prop_assert_eq!(errors, []);
        prop_assert_eq!(without_places(again), without_places(entries));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        let (entries, errors) = parse(&text);
        let n_lines = text.replace("\r\n", "\n").split(['\n', '\r']).count();
        prop_assert!(entries.iter().all(|it| (1..=n_lines).contains(&it.line)));
        prop_assert!(errors.iter().all(|it| (1..=n_lines).contains(&it.line)));
    }

    #[test]
    fn a_value_survives_escape_quotes_and_substitution(text in "[ -~ä]{0,20}") {
        if let Ok(value) = Value::new(&text) {
            let entry = Entry {
                section: "a".to_owned(), key: "k".to_owned(), value: value.escaped(), line: 0, column: 0,
            };
            let (read, errors) = parse(&render(&[entry]));
            prop_assert_eq!(errors, []);
            prop_assert!(!read[0].value.contains(r"\$"));
            prop_assert_eq!(read[0].value.replace("$$", "$"), text);
        }
    }
}

#[test]
fn options_of_the_control_plane_have_no_effect_on_a_compute() {
    let found = told(
        "[filter_scheduler]\nenabled_filters = ComputeFilter\ntrack_instance_changes = False\n\
         [conductor]\nworkers = 4\n[scheduler]\nmax_attempts = 5\n",
    );
    let options = ["[filter_scheduler] enabled_filters", "[conductor] workers"];
    let options = options.into_iter().chain(["[scheduler] max_attempts"]);
    assert_eq!(found, [2, 5, 7].into_iter().zip(options.map(str::to_owned)).collect::<Vec<_>>());
}
