//! Adding and removing the operators' finalizers.

use k8s_openapi::NamespaceResourceScope;
use kube::{Resource, ResourceExt};

use crate::plan::{Step, Target, Write};

/// Returns whether the object is being deleted.
pub fn is_terminating<K: Resource>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some()
}

/// Returns whether the object has the finalizer.
pub fn has_finalizer<K: Resource>(object: &K, finalizer: &str) -> bool {
    object.finalizers().iter().any(|it| it == finalizer)
}

/// Returns whether this finalizer is the object's only one.
pub fn is_only_finalizer<K: Resource>(object: &K, finalizer: &str) -> bool {
    matches!(object.finalizers(), [only] if only == finalizer)
}

/// Returns the step that adds the finalizer.
///
/// Returns `None` when the object has it, or is being deleted: the API server rejects new ones
/// then.
pub fn add_finalizer<K>(object: &K, finalizer: &str, because: &str) -> Option<Step>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    if has_finalizer(object, finalizer) || is_terminating(object) {
        return None;
    }
    let write = Write::AddFinalizer { finalizer: finalizer.to_owned() };
    Some(Step { target: Target::of(object), write, reason: because.to_owned() })
}

/// Returns the step that removes the finalizer; `None` when the object does not have it.
pub fn remove_finalizer<K>(object: &K, finalizer: &str, because: &str) -> Option<Step>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    if !has_finalizer(object, finalizer) {
        return None;
    }
    let rest = object.finalizers().iter().filter(|it| *it != finalizer).cloned().collect();
    let write = Write::RemoveFinalizer { rest, resource_version: object.resource_version() };
    Some(Step { target: Target::of(object), write, reason: because.to_owned() })
}

#[cfg(test)]
mod tests {
    use api::dataplane::Node;
    use serde_json::json;

    use super::*;

    fn node(finalizers: &[&str], is_terminating: bool) -> Node {
        let mut object = json!({
            "apiVersion": "dataplane.openstack.org/v1beta1",
            "kind": "OpenStackDataPlaneNode",
            "metadata": { "name": "n0", "namespace": "ns", "uid": "u", "resourceVersion": "7",
                "finalizers": finalizers },
            "spec": {},
        });
        if is_terminating {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn an_object_is_held_once_and_not_when_it_goes() {
        let add = |it: &Node| add_finalizer(it, "x/a", "of the test").map(|it| it.write);
        assert_eq!(
            add(&node(&["y/b"], false)),
            Some(Write::AddFinalizer { finalizer: "x/a".into() })
        );
        assert_eq!(add(&node(&["x/a"], false)), None);
        assert_eq!(add(&node(&["y/b"], true)), None);
    }

    #[test]
    fn a_release_leaves_the_finalizers_of_others_as_they_were_read() {
        let remove = |it: &Node| remove_finalizer(it, "x/a", "of the test").map(|it| it.write);
        let rest = |rest: &[&str]| Write::RemoveFinalizer {
            rest: rest.iter().map(|it| (*it).to_owned()).collect(),
            resource_version: Some("7".into()),
        };
        assert_eq!(remove(&node(&["y/b", "x/a", "z/c"], true)), Some(rest(&["y/b", "z/c"])));
        assert_eq!(remove(&node(&["x/a"], false)), Some(rest(&[])));
        assert_eq!(remove(&node(&["y/b"], true)), None);
    }

    #[test]
    fn the_last_holder_is_known() {
        assert!(is_only_finalizer(&node(&["x/a"], true), "x/a"));
        for others in [&["x/a", "foregroundDeletion"][..], &["y/b"], &[]] {
            assert!(!is_only_finalizer(&node(others, true), "x/a"), "{others:?}");
        }
    }
}
