//! The services of type nova that deploy nova-compute to a node's host, and the cell whose Secret they
//! mount.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::dataplane::{Node, RunState, Service, ServiceRun};
use nova_config::rendered_secret::cell_secret_name;
use operator_core::data_sources::{SourceRef, sources_of};
use operator_core::object_key::Key;

use crate::group::Group;
use crate::group::conflicting_service::{ConflictingService, conflicting_service, is_nova, listed};

/// The services of type nova of a node.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NovaServices {
    /// The first one that is listed, and the object that lists it.
    pub listed: Option<ConflictingService>,
    /// The first one of which the node has the record of a run.
    pub deployed: Option<String>,
    /// The cells whose Secrets they mount.
    pub cells: Vec<String>,
}

/// The cell of a compute that a service of type nova deploys.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ObservedCell {
    /// The service mounts the Secret of this one.
    Mounted(String),
    /// The service mounts the Secret of no cell.
    None,
    /// Services of the node mount the Secrets of several.
    Several(Vec<String>),
}

impl NovaServices {
    /// Returns the cell that a compute has which they deploy.
    pub fn cell(&self) -> ObservedCell {
        match self.cells.as_slice() {
            [] => ObservedCell::None,
            [cell] => ObservedCell::Mounted(cell.clone()),
            several => ObservedCell::Several(several.to_vec()),
        }
    }
}

impl ObservedCell {
    /// Returns why the cell of a compute is not known, and what to do about it.
    pub fn message(&self, compute: &str) -> String {
        let mounted = match self {
            Self::Mounted(cell) => std::slice::from_ref(cell),
            Self::None => &[],
            Self::Several(cells) => cells,
        };
        let which = if mounted.is_empty() {
            "no service of type nova of its node mounts the Secret <cell>-compute-config of a \
             NovaCell of the namespace"
                .to_owned()
        } else {
            format!("services of type nova of its node mount those of {}", mounted.join(" and "))
        };
        format!(
            "The cell of NovaExternalCompute {compute} is not known, because {which}. All cells of \
             the namespace are asked for its host, and its removal waits: name the Secret of one \
             NovaCell in dataSources of the service."
        )
    }
}

/// Returns the services of type nova of a node, from the services that exist, by name, and the cells of the
/// namespace; `group` is what it belongs to, `None` where that does not exist.
pub fn of_node(
    group: Option<&Group>,
    node: &Node,
    services: &BTreeMap<&str, Arc<Service>>,
    cells: &[Key],
) -> NovaServices {
    let find = |name: &str| services.get(name).map(|it| &**it);
    let of_nova = |it: &&String| is_nova(it, find(it));
    let present: Vec<&String> = listed(group, node).iter().filter(of_nova).collect();
    let recorded: Vec<&String> = begun(node).filter(of_nova).collect();
    // Those that were run before say nothing of the cell that the host is deployed to from now on.
    let counted = if present.is_empty() { &recorded } else { &present };
    let counted: Vec<&Service> = counted.iter().filter_map(|it| find(it)).collect();
    NovaServices {
        listed: conflicting_service(group, node, find),
        deployed: recorded.first().map(|it| (*it).clone()),
        cells: mounted_cells(&counted, cells),
    }
}

/// Returns the names of the services of a node: those that are listed, and those that were run on its host.
pub fn names<'a>(group: Option<&'a Group>, node: &'a Node) -> impl Iterator<Item = &'a String> {
    listed(group, node).iter().chain(begun(node))
}

fn begun(node: &Node) -> impl Iterator<Item = &String> {
    let recorded = node.status.iter().flat_map(|it| &it.services);
    recorded.filter(|it| has_begun(it)).map(|it| &it.name)
}

/// Whether a service has ever been run on the host: a record is there before its first run is made.
fn has_begun(it: &ServiceRun) -> bool {
    it.run.is_some() || it.deployed_hash.is_some() || it.state != RunState::Pending
}

/// Returns the names of those cells whose rendered Secrets one of these services takes its files from.
pub fn mounted_cells(services: &[&Service], cells: &[Key]) -> Vec<String> {
    let is_mounted = |cell: &&Key| {
        let files = SourceRef::secret(&cell.namespace, &cell_secret_name(&cell.name));
        let mut sources = services.iter().flat_map(|it| sources_of(&it.spec));
        sources.any(|it| it.source(&cell.namespace) == files)
    };
    let mut mounted: Vec<String> =
        cells.iter().filter(is_mounted).map(|it| it.name.clone()).collect();
    mounted.sort();
    mounted
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt;
    use serde_json::{Value, json};

    use super::*;

    /// Returns a service with the files of these cells.
    fn service(name: &str, type_: &str, cells: &[&str]) -> Service {
        let sources: Vec<Value> =
            cells.iter().map(|it| json!({"secretRef": {"name": cell_secret_name(it)}})).collect();
        serde_json::from_value(json!({
            "metadata": {"namespace": "ns", "name": name},
            "spec": {
                "edpmServiceType": type_, "playbook": "osp.edpm.nova", "dataSources": sources,
            },
        }))
        .unwrap()
    }

    /// What a node says whose set lists these services, with records of others.
    fn found(listed: &[&str], recorded: &Value) -> NovaServices {
        let services = [
            service("nova", "nova", &["c2"]),
            service("custom", "nova", &["c1"]),
            service("gone", "nova", &["c9"]),
            service("copy", "backup", &["c1"]),
        ];
        let known = services.map(|it| (it.name_any(), Arc::new(it)));
        let known = known.iter().map(|(name, it)| (name.as_str(), Arc::clone(it)));
        let set = serde_json::from_value(json!({
            "metadata": {"namespace": "ns", "name": "edpm"},
            "spec": {"services": listed, "nodes": {}, "nodeTemplate": {
                "ansibleSSHPrivateKeySecret": "ssh",
            }},
        }));
        let node: Node = serde_json::from_value(json!({
            "metadata": {"namespace": "ns", "name": "n0"}, "spec": {"nodeSet": "edpm"},
            "status": {"services": recorded},
        }))
        .unwrap();
        let group = Group::NodeSet(Arc::new(set.unwrap()));
        let named = |it: &str| {
            let of_node = node.status.iter().flat_map(|it| &it.services);
            listed.contains(&it) || of_node.clone().any(|of| of.name == it)
        };
        let known = known.filter(|(name, _)| named(name)).collect();
        of_node(Some(&group), &node, &known, &["c1", "c2", "c3"].map(|it| Key::new("ns", it)))
    }

    #[test]
    fn the_cell_is_the_one_whose_files_a_nova_service_mounts_and_that_exists() {
        let cell = |listed: &[&str]| found(listed, &json!([])).cell();
        assert_eq!(cell(&["copy", "nova"]), ObservedCell::Mounted("c2".into()));
        assert_eq!(cell(&["copy"]), ObservedCell::None);
        assert_eq!(cell(&["gone"]), ObservedCell::None, "no NovaCell has that Secret");
        assert_eq!(
            cell(&["nova", "custom"]),
            ObservedCell::Several(vec!["c1".into(), "c2".into()])
        );
    }

    #[test]
    fn a_service_counts_that_is_listed_or_was_run() {
        let record = |run: Option<&str>| {
            json!([{
                "name": "custom", "state": "Pending", "hash": "h", "attempt": 1, "run": run,
                "since": "2026-01-01T00:00:00Z",
            }])
        };
        let listed = found(&["nova"], &json!([]));
        let service = listed.listed.unwrap();
        assert_eq!(
            (service.lister.as_str(), service.service.as_str(), listed.deployed),
            ("OpenStackDataPlaneNodeSet edpm", "nova", None)
        );
        assert_eq!(found(&["copy"], &record(None)).deployed, None);
        // The one that is listed has the cell, also where it takes another's place.
        assert_eq!(found(&["nova"], &record(Some("r"))).cells, ["c2"]);
        let run = found(&["copy"], &record(Some("r")));
        assert_eq!((run.listed, run.deployed.as_deref()), (None, Some("custom")));
        assert_eq!(run.cells, ["c1"]);
    }
}
