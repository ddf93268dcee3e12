//! The annotations that each kind takes, for the chart's policy that warns of others, compared with
//! the quick reference.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use api::definitions;
use dataplane_operator::annotations::WRITTEN;
use nova_operator::shared_caches::cleanup_runs::COMPUTE_NAME;
use serde_json::json;

use crate::paths;

/// The page that lists what users set.
const PAGE: &str = "docs/quick-reference.md";
/// The groups in which annotations are ours, each with a slash.
const GROUPS: [&str; 3] =
    ["dataplane.openstack.org/", "edpm.openstack.org/", "nova.openstack.org/"];

/// Returns the annotations that users set, by the kind that takes them.
fn known() -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut known: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let tables =
        [&nova_config::annotations::OF_KINDS[..], &dataplane_operator::annotations::OF_KINDS[..]];
    for (kind, keys) in tables.into_iter().flatten() {
        known.entry(*kind).or_default().extend(*keys);
    }
    known
}

/// Returns the names of all annotations that users set, without their groups, as alternatives of a regular
/// expression.
fn names() -> String {
    let known = known();
    let keys = known.values().flatten();
    let names: BTreeSet<&str> = keys.filter_map(|it| it.split_once('/')).map(|it| it.1).collect();
    names.into_iter().collect::<Vec<_>>().join("|")
}

/// Returns the named templates of the policy: expressions of CEL, and the kinds as rules.
pub(super) fn templates() -> [(&'static str, String); 4] {
    let written = [&WRITTEN[..], &[COMPUTE_NAME]].concat();
    [
        ("edpm.annotations.known", json!(known()).to_string()),
        ("edpm.annotations.names", names()),
        ("edpm.annotations.written", json!(written).to_string()),
        ("edpm.annotations.resources", resources()),
    ]
}

fn resources() -> String {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for it in definitions::all() {
        if known().contains_key(it.spec.names.kind.as_str()) {
            groups.entry(it.spec.group).or_default().push(it.spec.names.plural);
        }
    }
    let mut text = String::new();
    for (group, resources) in groups {
        let _ = writeln!(
            text,
            "- apiGroups: [{group}]\n  apiVersions: [v1beta1]\n  operations: [CREATE, UPDATE]\n  \
             resources: [{}]",
            resources.join(", ")
        );
    }
    text
}

/// Returns the kinds that a cell of the page names.
fn kinds(cell: &str) -> Vec<&str> {
    let parts = cell.split(',').flat_map(|it| it.split(" or ")).map(str::trim);
    parts.map(|it| kind(it.trim_matches('`'))).collect()
}

fn kind(name: &str) -> &str {
    match name {
        "role" => "OpenStackDataPlaneRole",
        "node" => "OpenStackDataPlaneNode",
        "node set" => "OpenStackDataPlaneNodeSet",
        "deployment" => "OpenStackDataPlaneDeployment",
        kind => kind,
    }
}

/// Returns the keys of annotations that stand in code in a text.
fn keys(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|it: char| !it.is_ascii_alphanumeric() && !"./-".contains(it));
    words.filter(|it| GROUPS.iter().any(|group| it.starts_with(group)))
}

#[test]
fn the_quick_reference_lists_each_annotation_that_a_kind_takes_and_no_other() {
    let page = fs::read_to_string(paths::repo().join(PAGE)).unwrap();
    let mut documented: BTreeSet<(&str, &str)> = BTreeSet::new();
    for row in page.lines().filter(|it| it.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let [_, on, set] = cells[..] else { continue };
        let of_row = kinds(on).into_iter().flat_map(|kind| keys(set).map(move |key| (kind, key)));
        documented.extend(of_row);
    }
    // cert-manager's kind: a condition of the node set says what its Issuer lacks.
    assert!(documented.remove(&("Issuer", "dataplane.openstack.org/issues-for-hosts")));
    let known = known();
    let known = known.iter().flat_map(|(kind, keys)| keys.iter().map(move |key| (*kind, *key)));
    assert_eq!(known.collect::<BTreeSet<_>>(), documented, "{PAGE} and the operators' tables");
}

#[test]
fn each_annotation_that_nova_operator_declares_is_taken_by_a_kind() {
    let path = "crates/nova-config/src/annotations.rs";
    let source = fs::read_to_string(paths::repo().join(path)).unwrap();
    let declared: BTreeSet<&str> = source
        .lines()
        .filter(|it| it.starts_with("pub const ") && it.contains(": &str"))
        .filter_map(|it| it.split('"').nth(1))
        .collect();
    let taken = nova_config::annotations::OF_KINDS.into_iter().flat_map(|it| it.1).copied();
    assert_eq!(declared, taken.collect());
}

#[test]
fn each_command_of_the_docs_sets_an_annotation_that_is_known() {
    let known: BTreeSet<&str> = known().into_values().flatten().collect();
    let mut n_found = 0;
    for page in fs::read_dir(paths::repo().join("docs")).unwrap() {
        let path = page.unwrap().path();
        if path.extension().is_none_or(|it| it != "md") {
            continue;
        }
        let page = fs::read_to_string(&path).unwrap();
        for line in page.lines().filter(|it| it.contains("kubectl") && it.contains(" annotate ")) {
            for key in keys(line).map(|it| it.trim_end_matches(['-', '.'])) {
                let is_known = known.contains(key) || key.ends_with("/issues-for-hosts");
                assert!(is_known, "{}: {key}", path.display());
                n_found += 1;
            }
        }
    }
    assert!(n_found > 10, "{n_found} commands");
}

#[test]
fn the_policy_is_about_each_kind_that_is_defined() {
    let defined: BTreeSet<String> =
        definitions::all().into_iter().map(|it| it.spec.names.kind).collect();
    let known: BTreeSet<String> = known().into_keys().map(str::to_owned).collect();
    assert_eq!(known, defined);
}

#[test]
fn the_names_of_annotations_are_plain_words_of_a_regular_expression() {
    let names = names();
    let is_plain = |it: &str| it.bytes().all(|it| it.is_ascii_lowercase() || it == b'-');
    assert!(names.split('|').all(|it| !it.is_empty() && is_plain(it)), "{names}");
}
