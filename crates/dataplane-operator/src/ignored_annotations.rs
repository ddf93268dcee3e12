//! Annotations of this operator on objects where they do not count: a condition names them, and says what
//! to do instead.

use std::collections::BTreeSet;

use api::conditions::{ConditionDraft, append_more};
use api::dataplane::node::REDEPLOY;
use api::dataplane::{Deployment, Node, NodeSet, Role};
use kube::{Resource, ResourceExt};
use operator_core::condition_catalog::{ConditionSpec, condition as spec};
use serde_json::json;

use crate::annotations::OF_KINDS;
use crate::reasons;

/// Condition type: annotations of the object count for nothing; absent where all of them count. `Ready`
/// does not depend on it.
pub const ANNOTATIONS_IGNORED: &str = "AnnotationsIgnored";

/// The condition on annotations that do not count.
pub const CONDITION: ConditionSpec = spec(
    ANNOTATIONS_IGNORED,
    "Never said: the condition is absent unless annotations of dataplane-operator are set on the object \
     that count elsewhere alone. `Ready` does not depend on it.",
    &[reasons::catalog::ANNOTATIONS],
);

/// How many nodes a command names.
const NAMED: usize = 3;

/// Returns the condition of a role or node set whose hosts have nodes of these names.
pub fn of_group<'a, K>(
    group: &K,
    nodes: impl IntoIterator<Item = &'a String>,
) -> Option<ConditionDraft>
where
    K: Resource<DynamicType = ()>,
{
    let nodes: Vec<&String> = nodes.into_iter().collect();
    let ignored = ignored(group);
    condition(group, ignored.iter().map(|it| (*it, instead(group, &nodes, it))))
}

/// Returns the condition of a node of a node set.
pub fn of_node(node: &Node) -> Option<ConditionDraft> {
    let redeploy = node.annotations().get_key_value(REDEPLOY).map(|_| REDEPLOY);
    let set = node.node_set()?;
    let command = deployment(&namespace(node), set, Some(&node.name_any()));
    condition(node, redeploy.map(|it| (it, command)).into_iter())
}

/// Returns the names that count on other kinds alone.
fn ignored<K: Resource<DynamicType = ()>>(object: &K) -> Vec<&'static str> {
    let kind = K::kind(&());
    let of_kind = OF_KINDS.iter().filter(|it| it.0 == kind).flat_map(|it| it.1);
    let counting: BTreeSet<&str> = of_kind.copied().collect();
    let all: BTreeSet<&'static str> = OF_KINDS.iter().flat_map(|it| it.1).copied().collect();
    let is_there = |it: &&str| object.annotations().contains_key(*it);
    all.into_iter().filter(|it| !counting.contains(it)).filter(is_there).collect()
}

/// Returns what to do in place of an annotation of a role or node set.
fn instead<K: Resource<DynamicType = ()>>(group: &K, nodes: &[&String], name: &str) -> String {
    let kinds: Vec<&str> =
        OF_KINDS.iter().filter(|it| it.1.contains(&name)).map(|it| it.0).collect();
    if name == REDEPLOY {
        return deployment(&namespace(group), &group.name_any(), None);
    }
    if !kinds.contains(&&*Node::kind(&())) {
        return format!("it counts on {} alone.", kinds.join(" and "));
    }
    let named = nodes.iter().take(NAMED).map(|it| format!("openstackdataplanenode/{it}"));
    let named = named.collect::<Vec<_>>().join(" ");
    let command =
        format!("kubectl annotate --overwrite -n {} {named} {name}=<value>", namespace(group));
    let command = append_more(command, nodes.len().saturating_sub(NAMED));
    format!("it counts on the nodes of hosts alone, each with a value of its own: {command}.")
}

/// Returns that a deployment is to be created for a node set, or for one of its hosts.
fn deployment(namespace: &str, set: &str, host: Option<&str>) -> String {
    let mut spec = json!({ "nodeSets": [set] });
    if let Some(host) = host {
        spec["ansibleLimit"] = json!(host);
    }
    let object = json!({
        "apiVersion": Deployment::api_version(&()),
        "kind": Deployment::kind(&()),
        "metadata": { "generateName": format!("{set}-"), "namespace": namespace },
        "spec": spec,
    });
    format!("hosts of a node set are deployed by deployments: kubectl create -f - <<< '{object}'")
}

fn condition<'a, K: Resource<DynamicType = ()>>(
    object: &K,
    ignored: impl Iterator<Item = (&'a str, String)>,
) -> Option<ConditionDraft> {
    let (kind, name) = (K::kind(&()), object.name_any());
    let (resource, namespace) = (kind.to_lowercase(), namespace(object));
    let text = |(annotation, instead): (&str, String)| {
        format!(
            "Annotation {annotation} of {kind} {name} counts for nothing: {instead} Then remove it: \
             kubectl annotate -n {namespace} {resource}/{name} {annotation}-"
        )
    };
    let texts: Vec<String> = ignored.map(text).collect();
    let reason = &reasons::ANNOTATIONS_IGNORED;
    (!texts.is_empty()).then(|| reason.condition(ANNOTATIONS_IGNORED, texts.join(" ")))
}

fn namespace<K: Resource>(object: &K) -> String {
    object.namespace().unwrap_or_default()
}
