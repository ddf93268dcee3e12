//! Tests of the code's structure: crate dependencies, purity, headers and sizes. No command uses
//! this module.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::sources::without_tests;
use crate::{paths, sh, sources};

/// The allowed dependencies between the project's crates, tests aside.
const EDGES: &[(&str, &[&str])] = &[
    ("api", &[]),
    ("operator-core", &["api"]),
    ("config-drive", &["api", "operator-core"]),
    ("ironic", &["api", "config-drive", "operator-core"]),
    ("openstack-client", &["api", "operator-runtime"]),
    (
        "ironic-client",
        &["api", "config-drive", "ironic", "openstack-client", "operator-core", "operator-runtime"],
    ),
    ("operator-runtime", &["api", "operator-core"]),
    ("ansibleee-operator", &["api", "operator-core", "operator-runtime"]),
    (
        "baremetal",
        &["api", "config-drive", "ironic", "ironic-client", "operator-core", "operator-runtime"],
    ),
    ("dataplane-operator", &["api", "baremetal", "operator-core", "operator-runtime"]),
    ("nova-config", &["api", "operator-core"]),
    (
        "nova-operator",
        &["api", "nova-config", "openstack-client", "operator-core", "operator-runtime"],
    ),
    // A program for users: it reads services and nova's options with the rules of the operators.
    ("kubectl-edpm", &["api", "nova-config", "operator-core"]),
    ("e2e", &["api", "operator-core"]),
    ("simulated-cluster", &["api", "ironic", "operator-core"]),
    // Only tests depend on it.
    ("testkit", &["api", "operator-core"]),
    // A fresh clone compiles it first.
    ("xtask", &[]),
];

/// Crates that the pure crates must not depend on, directly or not.
const IMPURE: &[&str] = &["hyper", "kube-client", "kube-runtime", "reqwest", "tokio"];

/// Words that pure code must not contain.
const IMPURE_WORDS: &[&str] = &[
    "Timestamp::now",
    "clock::",
    "Instant",
    "SystemTime",
    "std::env",
    "std::fs",
    "tokio",
    "tracing",
    "kube::Client",
    "kube::Api",
    "operator_runtime::api",
    "async fn",
    ".await",
];

/// Files with more lines than the limit outside their tests, each with its reason.
const LARGE: &[(&str, &str)] = &[];
const LIMIT: usize = 500;

fn metadata() -> Value {
    let mut cargo = sh::cargo();
    cargo.args(["metadata", "--format-version", "1", "--no-deps"]).current_dir(paths::repo());
    serde_json::from_str(&sh::run(&mut cargo).unwrap()).unwrap()
}

#[test]
fn crates_depend_on_each_other_as_the_architecture_says() {
    let metadata = metadata();
    let ours: BTreeSet<&str> = EDGES.iter().map(|(name, _)| *name).collect();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let is_member = package["source"].is_null();
        if !is_member {
            continue;
        }
        assert!(ours.contains(name), "crate {name} has no line in EDGES");
        let normal =
            package["dependencies"].as_array().unwrap().iter().filter(|it| it["kind"].is_null());
        let edges = normal.filter_map(|it| it["name"].as_str()).filter(|it| ours.contains(it));
        found.insert(name.to_owned(), edges.map(Into::into).collect());
    }
    for (name, allowed) in EDGES {
        for edge in &found[*name] {
            assert!(allowed.contains(&edge.as_str()), "{name} must not depend on {edge}");
        }
    }
}

#[test]
fn the_pure_crates_hold_no_client_and_no_runtime() {
    for package in paths::PURE {
        let mut cargo = sh::cargo();
        cargo.args(["tree", "--package", package, "--edges", "normal", "--prefix", "none"]);
        cargo.args(["--format", "{p}", "--locked"]).current_dir(paths::repo());
        let tree = sh::run(&mut cargo).unwrap();
        for line in tree.lines() {
            let name = line.split(' ').next().unwrap_or_default();
            assert!(!IMPURE.contains(&name), "{package} depends on {name}");
        }
    }
}

/// Returns the files of a directory; see [`sources::files`].
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    sources::files(folder, ending).unwrap()
}

/// Returns the first word in code that stands for a client, a clock, a runtime or the environment.
pub(crate) fn impure_word(code: &str) -> Option<&'static str> {
    let has =
        |word: &str| code.lines().any(|it| it.contains(word) && !it.trim_start().starts_with("//"));
    IMPURE_WORDS.iter().copied().find(|it| has(it))
}

#[test]
fn judgements_and_builders_are_pure() {
    let mut n_checked = 0;
    for path in files("crates", ".rs") {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.contains("test") {
            continue;
        }
        let is_of =
            |name: &&str| path.starts_with(paths::repo().join("crates").join(name).join("src"));
        let is_pure = paths::PURE.iter().any(is_of);
        let is_judgement = ["build.rs", "decide.rs", "faults.rs", "provisioner.rs", "status.rs"]
            .iter()
            .any(|it| name.ends_with(it));
        if !is_pure && !is_judgement {
            continue;
        }
        n_checked += 1;
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(impure_word(&without_tests(&text)), None, "{}", path.display());
    }
    assert!(n_checked > 20, "only {n_checked} files were looked at");
}

#[test]
fn every_file_starts_with_a_sentence_and_stays_readable() {
    for folder in ["crates", "e2e", "xtask"] {
        for path in files(folder, ".rs") {
            let text = fs::read_to_string(&path).unwrap();
            let first = text.lines().next().unwrap_or_default();
            let is_sentence = first.starts_with("//! ") && first.ends_with(['.', '?', ':']);
            let goes_on = text.lines().nth(1).is_some_and(|it| it.starts_with("//! "));
            assert!(is_sentence || goes_on, "{}: no sentence at its start", path.display());
            let n_lines = without_tests(&text).lines().count();
            let is_listed = LARGE.iter().any(|(name, _)| path.ends_with(Path::new(name)));
            let is_test = path.to_string_lossy().contains("test");
            assert!(
                n_lines <= LIMIT || is_listed || is_test,
                "{}: {n_lines} lines",
                path.display()
            );
        }
    }
}

/// Operators for other services must be possible without a change here.
#[test]
fn dataplane_operator_and_the_engine_name_no_openstack_service() {
    let mut code = files("crates/dataplane-operator/src", ".rs");
    code.extend(files("crates/operator-core/src/run_engine", ".rs"));
    for path in code {
        let text = fs::read_to_string(&path).unwrap().to_lowercase();
        for word in ["nova", "libvirt", "neutron", "cinder", "glance", "keystone", "placement"] {
            assert!(!text.contains(word), "{} names {word}", path.display());
        }
    }
}
