//! Maps changes of objects to the data planes they concern, and changes of a data plane to its
//! roles.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use api::dataplane::{DataPlane, DeployStrategy, Node, Role};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt};
use operator_core::object_key::Key;
use operator_runtime::workqueue::{DEBOUNCE, WorkQueue};

use crate::controller_ref::controller;
use crate::data_plane::map::Map;
use crate::data_plane::observe::Caches;
use crate::indexes::{BY_NAMESPACE, BY_OWNER, BY_PLANE};
use crate::role::NodeGroup;
use crate::role::observed::data_plane_of;

/// Registers the event handlers that enqueue data planes in `queue`, and in `groups` the roles
/// below them and the nodes that they own.
pub fn map_events(queue: &Arc<WorkQueue>, groups: &Arc<WorkQueue>, caches: &Caches) {
    let to_planes = Arc::clone(queue);
    let to_groups = Arc::clone(groups);
    let strategies = Strategies::default();
    let all = caches.clone();
    caches.planes.on_change(move |data_plane| {
        let key = Key::of(data_plane);
        to_planes.push(key.clone());
        let strategy = |it: Arc<DataPlane>| it.spec.deploy_strategy.clone().unwrap_or_default();
        if strategies.changed(&key, all.planes.get(&key).map(strategy)) {
            for role in all.roles.indexed(BY_PLANE, &key) {
                to_groups.push(NodeGroup::Role(role.name_any()).key(&key.namespace));
            }
            let owner = Key::new(&key.namespace, data_plane.uid().unwrap_or_default());
            for node in all.nodes.indexed(BY_OWNER, &owner) {
                to_groups.push(NodeGroup::of(&node).key(&key.namespace));
            }
        }
    });
    let (to_planes, all) = (Arc::clone(queue), caches.clone());
    caches.roles.on_change(move |role| {
        for key in concerned(&all.planes_beside(role), Map::Roles, role.meta()) {
            to_planes.push_in(key, DEBOUNCE);
        }
    });
    let (to_planes, all) = (Arc::clone(queue), caches.clone());
    caches.nodes.on_change(move |node| {
        let mut keys = concerned(&all.planes_beside(node), Map::Nodes, node.meta());
        // An orphaned role waits for the nodes that name it.
        keys.extend(all.role_of(node).and_then(|it| owner(it.meta())));
        for key in keys {
            to_planes.push_in(key, DEBOUNCE);
        }
    });
}

impl Caches {
    fn planes_beside<K: Resource>(&self, object: &K) -> Vec<Arc<DataPlane>> {
        let namespace = object.meta().namespace.clone().unwrap_or_default();
        self.planes.indexed(BY_NAMESPACE, &Key::new(namespace, ""))
    }

    fn role_of(&self, node: &Node) -> Option<Arc<Role>> {
        let name = node.spec.role.as_ref()?;
        self.roles.get(&Key::new(node.namespace().unwrap_or_default(), name))
    }
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

/// The last seen deploy strategy of each data plane, so that a status write does not enqueue roles.
#[derive(Default)]
struct Strategies(Mutex<BTreeMap<Key, DeployStrategy>>);

impl Strategies {
    /// Records the strategy of a data plane (`None` if it is gone) and returns whether it differs.
    fn changed(&self, key: &Key, strategy: Option<DeployStrategy>) -> bool {
        // The map is consistent even if a holder of the lock panicked.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_other = known.get(key) != strategy.as_ref();
        match strategy {
            Some(strategy) => known.insert(key.clone(), strategy),
            None => known.remove(key),
        };
        is_other
    }
}

/// Returns the keys of the index [`BY_PLANE`].
pub fn plane_of(role: &Role) -> Vec<Key> {
    let namespace = role.namespace().unwrap_or_default();
    data_plane_of(role).map(|it| Key::new(namespace, it)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn plane(name: &str, spec: &Value) -> Arc<DataPlane> {
        let object = json!({
            "apiVersion": "dataplane.openstack.org/v1beta1",
            "kind": "OpenStackDataPlane",
            "metadata": { "name": name, "namespace": "ns" },
            "spec": spec,
        });
        Arc::new(serde_json::from_value(object).unwrap())
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
        let strategies = Strategies::default();
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
            assert_eq!(strategies.changed(&key, strategy), expected, "step {idx}");
        }
    }
}
