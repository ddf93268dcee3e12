//! Which services run on which node set: duplicates once, and what is for all node sets with the first
//! one that lists it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::api::dataplane::Service;

use crate::inputs::service_type;

/// Whether one run of the service is for all node sets of a deployment.
pub fn is_global(service: &Service) -> bool {
    service.spec.deploy_on_all_node_sets.unwrap_or(false)
}

/// Node set → its services in order, from what each node set lists, in the deployment's order.
///
/// Of two services with one name or one type the first stays, for both would write the same files.
/// One that does not exist stays, so that it is told.
pub fn lists<'a>(
    listed: impl IntoIterator<Item = (&'a str, &'a [String])>,
    services: &BTreeMap<String, Arc<Service>>,
) -> BTreeMap<String, Vec<String>> {
    let mut global: BTreeSet<&str> = BTreeSet::new();
    let mut lists = BTreeMap::new();
    for (node_set, names) in listed {
        let (mut kept, mut seen) = (Vec::<String>::new(), BTreeSet::new());
        for name in names {
            let service = services.get(name);
            let type_ = service.map_or_else(|| name.clone(), |it| service_type(&it.spec, name));
            if kept.contains(name) || !seen.insert(type_) {
                continue;
            }
            if service.is_some_and(|it| is_global(it)) && !global.insert(name) {
                continue;
            }
            kept.push(name.clone());
        }
        lists.insert(node_set.to_owned(), kept);
    }
    lists
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

    #[test]
    fn of_one_name_or_one_type_the_first_stays() {
        let services =
            services(&[("own", Some("agent"), false), ("agent", None, false), ("a", None, false)]);
        let of = |list: &[&str]| lists([("x", &*names(list))], &services)["x"].clone();
        assert_eq!(of(&["a", "own", "agent", "a"]), ["a", "own"]);
        assert_eq!(of(&["agent", "own"]), ["agent"]);
        // What does not exist is told, not left out.
        assert_eq!(of(&["missing", "a", "missing"]), ["missing", "a"]);
    }

    #[test]
    fn a_type_is_no_name() {
        let services = services(&[("x", Some("y"), false), ("y", Some("z"), false)]);
        assert_eq!(lists([("s", &*names(&["x", "y"]))], &services)["s"], ["x", "y"]);
    }

    #[test]
    fn a_global_service_runs_with_the_first_node_set_that_lists_it() {
        let services = services(&[("all", None, true), ("known", None, true), ("b", None, false)]);
        let found = lists(
            [
                ("z", &*names(&["b"])),
                ("x", &*names(&["all", "b", "known"])),
                ("a", &*names(&["known", "all"])),
            ],
            &services,
        );
        assert_eq!(found["x"], ["all", "b", "known"]);
        assert_eq!((found["z"].len(), found["a"].len()), (1, 0));
    }
}
