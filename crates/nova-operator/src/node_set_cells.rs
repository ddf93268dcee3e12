//! Which cells a node set uses: those whose rendered Secret one of its nova services takes its files
//! from.

use std::sync::Arc;

use api::dataplane::{NodeSet, Service};
use nova_config::rendered_secret::cell_secret_name;
use operator_core::data_sources::{SourceRef, sources_of};
use operator_core::object_key::Key;

use crate::conflicting_service::is_nova;

/// Whether a node set lists a service of type nova that takes its files from the Secret of a cell;
/// `find` looks up the services that exist.
pub fn uses_cell(set: &NodeSet, cell: &Key, find: impl Fn(&Key) -> Option<Arc<Service>>) -> bool {
    let files = SourceRef::secret(&cell.namespace, &cell_secret_name(&cell.name));
    set.spec.services.iter().any(|name| {
        find(&Key::new(&cell.namespace, name)).is_some_and(|it| {
            let sources = sources_of(&it.spec);
            is_nova(name, Some(&it)) && sources.iter().any(|it| it.source(&cell.namespace) == files)
        })
    })
}

/// Returns the cells of a node set's namespace, those first that it uses: where cells share an API,
/// nova does not say in which of them a host is.
pub fn used_first(
    mut cells: Vec<Key>,
    set: &NodeSet,
    find: impl Fn(&Key) -> Option<Arc<Service>>,
) -> Vec<Key> {
    cells.sort_by_cached_key(|it| !uses_cell(set, it, &find));
    cells
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a service with the files of a cell.
    fn service(name: &str, type_: &str, cell: &str) -> Service {
        serde_json::from_value(json!({
            "metadata": {"namespace": "ns", "name": name},
            "spec": {
                "edpmServiceType": type_, "playbook": "osp.edpm.nova",
                "dataSources": [{"secretRef": {"name": cell_secret_name(cell)}}],
            },
        }))
        .unwrap()
    }

    #[test]
    fn the_cells_whose_files_a_nova_service_of_the_set_takes_come_first() {
        let services = [service("nova", "nova", "c2"), service("copy", "backup", "c1")];
        let find = |key: &Key| {
            let named = |it: &&Service| Key::of(*it) == *key;
            services.iter().find(named).cloned().map(Arc::new)
        };
        let set = |listed: &[&str]| -> NodeSet {
            serde_json::from_value(json!({
                "metadata": {"namespace": "ns", "name": "set"},
                "spec": {"services": listed, "nodes": {}, "nodeTemplate": {
                    "ansibleSSHPrivateKeySecret": "ssh",
                }},
            }))
            .unwrap()
        };
        let order = |set: &NodeSet| {
            let cells = ["c1", "c2", "c3"].map(|it| Key::new("ns", it)).to_vec();
            used_first(cells, set, find).into_iter().map(|it| it.name).collect::<Vec<_>>()
        };
        assert_eq!(order(&set(&["copy", "nova"])), ["c2", "c1", "c3"]);
        assert_eq!(order(&set(&["copy", "missing"])), ["c1", "c2", "c3"]);
    }
}
