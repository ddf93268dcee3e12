//! Tests of words: comments, names and texts use the field's terms.

use std::fs;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::Lit;

use crate::paths;
use crate::sources::{files, without_tests};

/// Words that comments do not use, each with the term that they use instead.
const IN_COMMENTS: &[(&str, &str)] = &[
    ("a human", "a user"),
    ("nobody", "no user, no controller, …"),
    ("nothing where", "returns `None` when"),
    ("the human", "the user"),
    ("told", "reported"),
    ("wakes", "enqueues"),
    ("whoever", "the caller, the user, …"),
];

/// Words that texts for users do not have, each with the terms that they use instead.
const IN_TEXTS: &[(&str, &str)] = &[
    ("human", "user"),
    ("humans", "users"),
    ("nobody", "no user, no operator, …"),
    ("tell", "report, show, list"),
    ("tells", "reports, shows, lists"),
    ("told", "reported, known"),
    ("whoever", "the user, the client, …"),
];

/// Names of types that have a standard term, each with it.
const NAMES: &[(&str, &str)] = &[
    ("Absorb", "WriteThrough"),
    ("Asker", "MachineRequest"),
    ("Bearing", "RelevantFields"),
    ("Candidate", "ManagerBuilder"),
    ("Crew", "TaskGroup"),
    ("Desk", "ReviewLimits"),
    ("Doors", "SshProbe"),
    ("Gate", "DisruptionBudget"),
    ("Judged", "Evaluation"),
    ("Judgement", "Evaluation"),
    ("Leader", "Manager"),
    ("Lender", "CertificateSource"),
    ("Notice", "EventDraft"),
    ("Queue", "WorkQueue"),
    ("Reach", "HostConnection"),
    ("Recipe", "RunTemplate"),
    ("Rival", "ConflictingService"),
    ("Shard", "Batch"),
    ("Standing", "RolloutState"),
    ("Stir", "Requeue"),
    ("Truth", "ConditionStatus"),
    ("Vault", "SourceContents"),
    ("Watches", "Informers"),
];

/// The words of a text: letters, digits and underscores.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|it: char| !it.is_alphanumeric() && it != '_').filter(|it| !it.is_empty())
}

/// Whether a line has the words of a phrase one after the other.
fn has(line: &str, phrase: &str) -> bool {
    let line: Vec<&str> = words(line).collect();
    let phrase: Vec<&str> = words(phrase).collect();
    line.windows(phrase.len()).any(|it| it == phrase)
}

/// The faults of a text: where it has a word that is not used, and what is used instead.
fn faults(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (idx, line) in text.lines().enumerate() {
        let code = line.trim_start();
        let bad = if code.starts_with("//") {
            let lower = code.to_lowercase();
            IN_COMMENTS.iter().find(|(it, _)| has(&lower, it))
        } else {
            NAMES.iter().find(|(it, _)| words(code).any(|word| word == *it))
        };
        faults.extend(bad.map(|(bad, good)| format!("line {}: {bad:?}, use {good}", idx + 1)));
    }
    faults
}

/// Which texts of a source file users read.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Read {
    /// The string literals.
    Literals,
    /// The string literals and the doc comments.
    LiteralsAndDocs,
}

/// The texts of a stream of tokens that users read; a line of a doc comment is a text of its own.
fn texts(tokens: TokenStream, read: Read) -> Vec<String> {
    let mut found = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                if read == Read::LiteralsAndDocs || !is_doc(&group) {
                    found.extend(texts(group.stream(), read));
                }
            }
            TokenTree::Literal(literal) => {
                if let Lit::Str(text) = Lit::new(literal) {
                    found.push(text.value());
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
    found
}

/// Whether tokens are the attribute that a doc comment is.
fn is_doc(group: &Group) -> bool {
    let first = group.stream().into_iter().next();
    group.delimiter() == Delimiter::Bracket
        && matches!(first, Some(TokenTree::Ident(name)) if name == "doc")
}

/// A text without its placeholders, which hold names of variables.
fn without_placeholders(text: &str) -> String {
    let mut n_open = 0_usize;
    let mut rest = String::new();
    for it in text.chars() {
        match it {
            '{' => n_open += 1,
            '}' => n_open = n_open.saturating_sub(1),
            _ if n_open == 0 => rest.push(it),
            _ => {}
        }
    }
    rest
}

/// The faults of the texts of a source file: which text has a word that is not used, and what is
/// used instead.
fn faults_of_texts(code: &str, read: Read) -> Vec<String> {
    let mut faults = Vec::new();
    for text in texts(code.parse().unwrap(), read) {
        let lower = without_placeholders(&text).to_lowercase();
        let bad = IN_TEXTS.iter().find(|(it, _)| has(&lower, it));
        faults.extend(bad.map(|(bad, good)| format!("{text:?}: {bad:?}, use {good}")));
    }
    faults
}

#[test]
fn comments_and_names_use_the_fields_terms() {
    let this = paths::repo().join("xtask/src/words.rs");
    for path in ["crates", "e2e/src", "xtask/src"].iter().flat_map(|it| files(it, ".rs").unwrap()) {
        let name = path.strip_prefix(paths::repo()).unwrap().display().to_string();
        if path == this || name.contains("test") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(faults(&without_tests(&text)), [""; 0], "{name}");
    }
}

#[test]
fn texts_for_users_use_the_fields_terms() {
    let mut n_checked = 0;
    for path in ["crates", "xtask/src/codegen"].iter().flat_map(|it| files(it, ".rs").unwrap()) {
        let name = path.strip_prefix(paths::repo()).unwrap().display().to_string();
        if name.contains("test") {
            continue;
        }
        // Doc comments of kinds are published in their definitions.
        let is_published = name.starts_with("crates/api/");
        let read = if is_published { Read::LiteralsAndDocs } else { Read::Literals };
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(faults_of_texts(&without_tests(&text), read), [""; 0], "{name}");
        n_checked += 1;
    }
    assert!(n_checked > 200, "only {n_checked} files were checked");
}

#[test]
fn a_word_is_found_in_a_comment_and_a_name_in_code() {
    assert_eq!(faults("/// What a human wrote.\n"), ["line 1: \"a human\", use a user"]);
    assert_eq!(faults("let it = Queue::new();\n"), ["line 1: \"Queue\", use WorkQueue"]);
    assert_eq!(faults("/// A WorkQueue of humans.\nlet told = WorkQueue::new();\n"), [""; 0]);
}

#[test]
fn a_word_is_found_in_a_literal_and_in_a_doc_comment_that_is_published() {
    let code = "/// It tells.\nfn a() {\n    // It is told.\n    b!(\"Nobody \\\n        waits\", \
                r#\"a \"human\"\"#, \"{told} of {}\", 'a', \"a toll\", x = told);\n}\n";
    let literals = [
        r#""Nobody waits": "nobody", use no user, no operator, …"#,
        r#""a \"human\"": "human", use user"#,
    ];
    assert_eq!(faults_of_texts(code, Read::Literals), literals);
    let all = faults_of_texts(code, Read::LiteralsAndDocs);
    assert_eq!(all[0], r#"" It tells.": "tells", use reports, shows, lists"#);
    assert_eq!(all[1..], literals);
}
