//! The variables of a run's hosts, read from the inventory that its pod mounts.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The playbook of a run that has its text.
const PLAYBOOK: &str = "/runner/project/playbook.yaml";
/// The folder where Ansible looks for inventories.
const FOLDER: &str = "/runner/inventory/";

/// Returns the variables of one host by Ansible's precedence: all hosts, its groups, the host.
///
/// Templates are not resolved: the values are the texts that Ansible would start from.
pub(crate) fn variables(files: &BTreeMap<String, String>, host: &str) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let inventories = files.iter().filter(|(path, _)| is_inventory(path));
    let groups: Vec<Value> =
        inventories.filter_map(|(_, text)| api::yaml::from_str(text).ok()).collect();
    for (path, text) in files {
        if path == &format!("{FOLDER}group_vars/all") {
            merge(&mut found, &api::yaml::from_str(text).unwrap_or_default());
        }
    }
    let (mut shared, mut own) = (Vec::new(), Vec::new());
    for group in groups.iter().filter_map(Value::as_object).flat_map(Map::values) {
        collect(group, host, &mut shared, &mut own);
    }
    for vars in shared.into_iter().chain(own) {
        merge(&mut found, vars);
    }
    if let Some(text) = files.get(&format!("{FOLDER}host_vars/{host}")) {
        merge(&mut found, &api::yaml::from_str(text).unwrap_or_default());
    }
    found
}

/// Returns whether Ansible's command line selects the host; without a limit it does.
///
/// Limits are parsed as far as operators use them: names of hosts and groups, required groups (`&`)
/// and exclusions (`!`).
pub(crate) fn is_within_limit(files: &BTreeMap<String, String>, host: &str) -> bool {
    let command = files.get("/runner/env/cmdline").map(String::as_str).unwrap_or_default();
    let Some((_, limit)) = command.split_once("--limit ") else { return true };
    let limit = limit.trim_start_matches('\'').split(['\'', ' ']).next().unwrap_or_default();
    let is_of = |name: &str| name == "all" || name == host || has_host(files, name, host);
    let terms = || limit.split([',', ':']).filter(|it| !it.is_empty());
    let is_named = terms().filter(|it| !it.starts_with(['&', '!'])).any(is_of);
    let is_in_all = terms().filter_map(|it| it.strip_prefix('&')).all(is_of);
    let is_out = terms().filter_map(|it| it.strip_prefix('!')).any(is_of);
    is_named && is_in_all && !is_out
}

/// Returns whether all plays of the run's playbook are for localhost, so that they come to no host.
pub(crate) fn is_for_localhost(files: &BTreeMap<String, String>) -> bool {
    let plays: Option<Vec<Value>> = files.get(PLAYBOOK).and_then(|it| api::yaml::from_str(it).ok());
    plays.is_some_and(|it| !it.is_empty() && it.iter().all(|it| it["hosts"] == "localhost"))
}

/// Returns whether a group of an inventory contains the host.
fn has_host(files: &BTreeMap<String, String>, group: &str, host: &str) -> bool {
    let inventories = files.iter().filter(|(path, _)| is_inventory(path));
    let parsed = inventories.filter_map(|(_, text)| api::yaml::from_str::<Value>(text).ok());
    parsed.into_iter().any(|it| it[group]["hosts"].get(host).is_some())
}

fn is_inventory(path: &str) -> bool {
    let below = path.strip_prefix(FOLDER);
    below.is_some_and(|it| !it.starts_with("group_vars") && !it.starts_with("host_vars"))
}

/// Collects the variables of a group and its child groups that contain the host; returns whether
/// the group does.
fn collect<'a>(
    group: &'a Value,
    host: &str,
    shared: &mut Vec<&'a Value>,
    own: &mut Vec<&'a Value>,
) -> bool {
    let place = shared.len();
    let entry = group["hosts"].get(host);
    let mut has_it = entry.is_some();
    own.extend(entry);
    for child in group["children"].as_object().into_iter().flat_map(Map::values) {
        has_it |= collect(child, host, shared, own);
    }
    if has_it {
        shared.insert(place, &group["vars"]);
    }
    has_it
}

fn merge(found: &mut BTreeMap<String, Value>, vars: &Value) {
    for (name, value) in vars.as_object().into_iter().flatten() {
        found.insert(name.clone(), value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)], host: &str) -> BTreeMap<String, Value> {
        let files = files.iter().map(|(path, text)| (format!("{FOLDER}{path}"), (*text).into()));
        variables(&files.collect(), host)
    }

    #[test]
    fn a_hosts_own_variables_win_over_those_of_its_group_and_of_all_hosts() {
        let inventory =
            "edpm:\n  vars: {a: group, b: group}\n  hosts:\n    n0: {a: host}\n    n1: {}\n";
        let files = [("group_vars/all", "{a: all, b: all, c: all}"), ("hosts", inventory)];
        let found = of(&files, "n0");
        assert_eq!(
            (&found["a"], &found["b"], &found["c"]),
            (&"host".into(), &"group".into(), &"all".into())
        );
        assert_eq!(of(&files, "n1")["a"], "group");
        assert_eq!(of(&files, "n2").get("b"), Some(&"all".into()));
    }

    #[test]
    fn a_limit_names_hosts_and_groups() {
        let run = "edpm_run:\n  hosts:\n    n0: {}\n    n1: {}\n";
        let is_left = |limit: &str, host: &str| {
            let files = BTreeMap::from([
                (format!("{FOLDER}inventory.yaml"), run.to_owned()),
                ("/runner/env/cmdline".to_owned(), limit.to_owned()),
            ]);
            is_within_limit(&files, host)
        };
        assert!(is_left("--limit 'edpm_run'", "n0") && !is_left("--limit 'edpm_run'", "n2"));
        assert!(is_left("--limit 'n0,&edpm_run' --tags 'a'", "n0"));
        assert!(!is_left("--limit 'n0,&edpm_run'", "n1"));
        assert!(!is_left("--limit 'edpm_run,!n0'", "n0"));
        assert!(is_left("--limit 'edpm_run,localhost'", "localhost"));
        assert!(!is_left("--limit 'n0,&edpm_run'", "localhost") && is_left("", "localhost"));
        assert!(is_left("--tags 'a'", "n7") && is_left("", "n7"));
    }

    #[test]
    fn a_playbook_is_for_localhost_where_all_of_its_plays_are() {
        let is_it = |text: &str| is_for_localhost(&[(PLAYBOOK.to_owned(), text.to_owned())].into());
        assert!(is_it("[{hosts: localhost}, {hosts: localhost}]"));
        assert!(!is_it("[{hosts: localhost}, {hosts: all}]") && !is_it("[]") && !is_it("a: b"));
        assert!(!is_for_localhost(&BTreeMap::new()));
    }

    #[test]
    fn a_file_of_the_host_wins_over_the_inventory_and_unsafe_text_stays_as_it_is() {
        let inventory =
            "all:\n  children:\n    edpm:\n      hosts:\n        n0: {a: \"{{ x }}\"}\n";
        let own = "a: !unsafe \"{{ 1 + 1 }}\"\n";
        assert_eq!(of(&[("hosts", inventory)], "n0")["a"], "{{ x }}");
        assert_eq!(of(&[("hosts", inventory), ("host_vars/n0", own)], "n0")["a"], "{{ 1 + 1 }}");
    }
}
