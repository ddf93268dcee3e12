//! The services of each node set: duplicates are removed, and a service for all node sets is led by
//! one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::dataplane::Service;

/// Returns whether one run of the service is for all node sets of a deployment.
pub fn is_global(service: &Service) -> bool {
    service.spec.deploy_on_all_node_sets.unwrap_or(false)
}

/// The services that a node set lists.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'a> {
    /// The node set.
    pub node_set: &'a str,
    /// The services that it is to get, before duplicates are removed.
    pub names: &'a [String],
    /// Whether any of its hosts takes part.
    pub has_hosts: bool,
}

/// The services of a node set's hosts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct List {
    /// All of them, in order.
    pub services: Vec<String>,
    /// Those at the end that another node set leads.
    pub joined: Vec<String>,
}

/// Returns node set → its services, from the lists of the node sets in the deployment's order.
///
/// A service that is listed twice stays where it is first.
///
/// A service for all node sets is led by the first node set that lists it and has hosts, as in
/// upstream. If none that lists it has hosts, the first node set with hosts leads it, after all of
/// its others. The other node sets have it last: none of their services waits for it, and its
/// failures count.
pub fn lists(
    listed: &[Listed<'_>],
    services: &BTreeMap<String, Arc<Service>>,
) -> BTreeMap<String, List> {
    let is_for_all = |it: &String| services.get(it).is_some_and(|it| is_global(it));
    let own: Vec<Vec<String>> = listed.iter().map(|it| once(it.names)).collect();
    let mut leaders: Vec<(String, usize)> = Vec::new();
    for name in own.iter().flatten().filter(|it| is_for_all(it)) {
        if leaders.iter().all(|(known, _)| known != name) {
            leaders.push((name.clone(), leader(listed, &own, name)));
        }
    }
    let mut lists = BTreeMap::new();
    for (idx, (set, own)) in listed.iter().zip(&own).enumerate() {
        let leads = |name: &String| leaders.iter().any(|(it, at)| it == name && *at == idx);
        let is_kept = |it: &&String| !is_for_all(it) || leads(it);
        let mut services: Vec<String> = own.iter().filter(is_kept).cloned().collect();
        let names = || leaders.iter().map(|(name, _)| name);
        let unlisted: Vec<String> =
            names().filter(|it| leads(it) && !services.contains(*it)).cloned().collect();
        services.extend(unlisted);
        let joined: Vec<String> =
            names().filter(|it| set.has_hosts && !leads(it)).cloned().collect();
        services.extend(joined.clone());
        lists.insert(set.node_set.to_owned(), List { services, joined });
    }
    lists
}

fn once(names: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    names.iter().filter(|it| seen.insert(*it)).cloned().collect()
}

/// Returns the index of the node set that leads a service for all node sets.
fn leader(listed: &[Listed<'_>], own: &[Vec<String>], name: &String) -> usize {
    let all = || listed.iter().zip(own).enumerate();
    let with_hosts = || all().filter(|(_, (it, _))| it.has_hosts);
    let lists = |(_, (_, own)): &(usize, (&Listed<'_>, &Vec<String>))| own.contains(name);
    let found =
        with_hosts().find(lists).or_else(|| with_hosts().next()).or_else(|| all().find(lists));
    found.map(|(idx, _)| idx).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn services(all: &[(&str, Option<&str>, bool)]) -> BTreeMap<String, Arc<Service>> {
        let service = |(name, type_, is_global): &(&str, Option<&str>, bool)| {
            let spec = json!({
                "playbook": "a.b.c", "edpmServiceType": type_, "deployOnAllNodeSets": is_global,
            });
            let service = Service::new(name, serde_json::from_value(spec).unwrap());
            ((*name).to_owned(), Arc::new(service))
        };
        all.iter().map(service).collect()
    }

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|it| (*it).to_owned()).collect()
    }

    /// The lists of node sets, each with what it lists and whether it has hosts.
    fn of(
        services: &BTreeMap<String, Arc<Service>>,
        sets: &[(&str, &[&str], bool)],
    ) -> BTreeMap<String, List> {
        let all: Vec<Vec<String>> = sets.iter().map(|it| names(it.1)).collect();
        let listed = |(names, (node_set, _, has_hosts))| Listed { node_set, names, has_hosts };
        let listed: Vec<Listed<'_>> =
            all.iter().map(Vec::as_slice).zip(sets.iter().copied()).map(listed).collect();
        lists(&listed, services)
    }

    #[test]
    fn a_service_that_is_listed_twice_runs_once() {
        let services = services(&[("own", Some("agent"), false), ("a", None, false)]);
        let of = |list: &[&str]| of(&services, &[("x", list, true)])["x"].services.clone();
        assert_eq!(of(&["a", "own", "a"]), ["a", "own"]);
        // A service that does not exist is reported, not left out.
        assert_eq!(of(&["missing", "a", "missing"]), ["missing", "a"]);
    }

    fn list(services: &[&str], joined: &[&str]) -> List {
        List { services: names(services), joined: names(joined) }
    }

    #[test]
    fn a_global_service_runs_with_the_first_node_set_that_lists_it() {
        let services = services(&[("all", None, true), ("known", None, true), ("b", None, false)]);
        let found = of(
            &services,
            &[
                ("z", &["b"], true),
                ("x", &["all", "b", "known"], true),
                ("a", &["known", "all", "b"], true),
            ],
        );
        assert_eq!(found["x"], list(&["all", "b", "known"], &[]));
        for other in ["a", "z"] {
            assert_eq!(found[other], list(&["b", "all", "known"], &["all", "known"]), "{other}");
        }
    }

    #[test]
    fn a_node_set_without_hosts_leads_no_service_for_all() {
        let services = services(&[("all", None, true), ("b", None, false)]);
        let found = of(&services, &[("x", &["all", "b"], false), ("y", &["b", "all"], true)]);
        assert_eq!(found["x"], list(&["b"], &[]));
        assert_eq!(found["y"], list(&["b", "all"], &[]));
        let found = of(&services, &[("x", &["all"], false), ("y", &["b"], true), ("z", &[], true)]);
        assert_eq!(found["x"], list(&[], &[]));
        assert_eq!(found["y"], list(&["b", "all"], &[]));
        assert_eq!(found["z"], list(&["all"], &["all"]));
        assert_eq!(of(&services, &[("x", &["all"], false)])["x"], list(&["all"], &[]));
    }
}
