//! Maps changes of objects to the data planes they concern, and changes of a data plane to its
//! roles.

use std::sync::Arc;

use api::dataplane::{DataPlane, Node, Role};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt};
use operator_core::object_key::Key;
use operator_runtime::change_filter::ChangeFilter;
use operator_runtime::event_mapping::EventMapping;
use operator_runtime::workqueue::WorkQueue;

use crate::caches::Caches;
use crate::controller_ref::controller;
use crate::data_plane::map::Map;

use crate::indexes::{BY_OWNER, BY_PLANE, namespace};
use crate::role::NodeGroup;

/// Registers the event handlers that enqueue data planes in `queue`, and in `groups` the roles
/// below them and the nodes that they own.
pub fn map_events(queue: &Arc<WorkQueue>, groups: &Arc<WorkQueue>, caches: &Arc<Caches>) {
    let data_planes = EventMapping::new(queue, caches);
    data_planes.watches(&caches.data_planes, |_, data_plane| [Key::of(data_plane)]);
    let debounced = data_planes.debounced();
    debounced.watches(&caches.hosts.roles, |caches, role| {
        concerned(&planes_beside(caches, role), Map::Roles, role.meta())
    });
    debounced.watches(&caches.hosts.nodes, |caches, node| {
        let mut keys = concerned(&planes_beside(caches, node), Map::Nodes, node.meta());
        // An orphaned role waits for the nodes that name it.
        keys.extend(role_of(caches, node).and_then(|it| owner(it.meta())));
        keys
    });
    // A status write of the data plane does not concern its roles.
    let strategies = ChangeFilter::default();
    let groups = EventMapping::new(groups, caches);
    groups.watches(&caches.data_planes, move |caches, data_plane| {
        let key = Key::of(data_plane);
        let strategy = |it: Arc<DataPlane>| it.spec.deploy_strategy.clone().unwrap_or_default();
        if !strategies.changes(&key, || caches.data_planes.get(&key).map(strategy)) {
            return Vec::new();
        }
        let roles = caches.hosts.roles.indexed(BY_PLANE, &key);
        let roles = roles.iter().map(|it| NodeGroup::Role(it.name_any()));
        let owner = Key::new(&key.namespace, data_plane.uid().unwrap_or_default());
        let nodes = caches.hosts.nodes.indexed(BY_OWNER, &owner);
        let nodes = nodes.iter().filter_map(|it| NodeGroup::of(it));
        roles.chain(nodes).map(|it| it.key(&key.namespace)).collect()
    });
}

fn planes_beside<K: Resource>(caches: &Caches, object: &K) -> Vec<Arc<DataPlane>> {
    caches.data_planes.in_namespace(&namespace(object))
}

fn role_of(caches: &Caches, node: &Node) -> Option<Arc<Role>> {
    let name = node.spec.role.as_ref()?;
    caches.hosts.roles.get(&Key::new(node.namespace().unwrap_or_default(), name))
}

/// Returns the data planes that own an object or list its name.
fn concerned(planes: &[Arc<DataPlane>], map: Map, meta: &ObjectMeta) -> Vec<Key> {
    let name = meta.name.as_deref().unwrap_or_default();
    let lists = |it: &&Arc<DataPlane>| match map {
        Map::Roles => it.spec.roles.contains_key(name),
        Map::Nodes => it.spec.nodes.contains_key(name),
    };
    let mut keys: Vec<Key> = planes.iter().filter(lists).map(|it| Key::of(&**it)).collect();
    keys.extend(owner(meta).filter(|it| !keys.contains(it)));
    keys
}

/// Returns the data plane that owns an object.
fn owner(meta: &ObjectMeta) -> Option<Key> {
    let owner = controller(meta).filter(|it| it.kind == DataPlane::kind(&()))?;
    Some(Key::new(meta.namespace.clone().unwrap_or_default(), &owner.name))
}

#[cfg(test)]
mod tests {
    use api::dataplane::DeployStrategy;
    use serde_json::{Value, json};

    use super::*;

    fn plane(name: &str, spec: &Value) -> Arc<DataPlane> {
        Arc::new(testkit::objects::new("ns", name, spec))
    }

    fn meta(name: &str, owner: Option<(&str, &str)>) -> ObjectMeta {
        let owners: Vec<Value> = owner
            .iter()
            .map(|(kind, name)| {
                json!({ "apiVersion": "v1", "kind": kind, "name": name, "uid": "u",
                        "controller": true })
            })
            .collect();
        let meta = json!({ "name": name, "namespace": "ns", "ownerReferences": owners });
        serde_json::from_value(meta).unwrap()
    }

    #[test]
    fn an_object_concerns_the_data_planes_that_list_it_and_the_one_that_owns_it() {
        let planes = [
            plane("a", &json!({ "nodes": { "x": {} } })),
            plane("b", &json!({ "nodes": { "x": {} }, "roles": { "y": {} } })),
            plane("c", &json!({})),
        ];
        let keys = |map, meta: &ObjectMeta| -> Vec<String> {
            concerned(&planes, map, meta).into_iter().map(|it| it.name).collect()
        };
        let owned_by = |name| Some(("OpenStackDataPlane", name));
        assert_eq!(keys(Map::Nodes, &meta("x", None)), ["a", "b"]);
        assert_eq!(keys(Map::Roles, &meta("x", None)), [""; 0]);
        assert_eq!(keys(Map::Roles, &meta("y", owned_by("c"))), ["b", "c"]);
        assert_eq!(keys(Map::Nodes, &meta("x", owned_by("a"))), ["a", "b"]);
        assert_eq!(keys(Map::Nodes, &meta("z", Some(("Deployment", "a")))), [""; 0]);
    }

    #[test]
    fn roles_are_told_of_another_strategy_and_of_nothing_else() {
        let strategies = ChangeFilter::default();
        let key = Key::new("ns", "a");
        let open = DeployStrategy::default();
        let on = DeployStrategy { deploy: Some(true), ..DeployStrategy::default() };
        let steps = [
            (Some(open.clone()), true),
            (Some(open.clone()), false),
            (Some(on.clone()), true),
            (Some(on), false),
            (None, true),
            (None, false),
            (Some(open), true),
        ];
        for (idx, (strategy, expected)) in steps.into_iter().enumerate() {
            assert_eq!(strategies.changes(&key, || strategy), expected, "step {idx}");
        }
    }
}
