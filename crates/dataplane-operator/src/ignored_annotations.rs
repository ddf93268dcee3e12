//! Annotations of this operator on objects where they do not count: a condition names them, and says what
//! to do instead.

use std::collections::BTreeSet;
use std::iter;

use api::conditions::{ConditionDraft, append_more};
use api::dataplane::node::REDEPLOY;
use api::dataplane::{Deployment, Node};
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
    let set = node.node_set().filter(|_| node.annotations().contains_key(REDEPLOY))?;
    let command = deployment(&namespace(node), set, Some(&node.name_any()));
    condition(node, iter::once((REDEPLOY, command)))
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

#[cfg(test)]
mod tests {
    use api::conditions::{ConditionStatus, Severity};
    use api::dataplane::{NodeSet, Role};
    use operator_core::run_engine::host_owner::TAKE_OVER;
    use serde_json::Value;
    use testkit::objects::named;

    use super::*;
    use crate::annotations::{CONFIRM, SKIP_CLEANUP};

    fn annotated<K>(annotations: &Value) -> K
    where
        K: Resource<DynamicType = ()> + serde::de::DeserializeOwned,
    {
        let template = json!({ "ansibleSSHPrivateKeySecret": "key" });
        let spec = json!({ "nodeSet": "edpm", "nodes": {}, "nodeTemplate": template });
        let metadata = json!({ "annotations": annotations });
        named("openstack", "edpm", json!({ "metadata": metadata, "spec": spec }))
    }

    fn of_set(annotations: &Value) -> Option<ConditionDraft> {
        let nodes = ["n0", "n1", "n2", "n3"].map(str::to_owned);
        of_group::<NodeSet>(&annotated(annotations), &nodes)
    }

    #[test]
    fn what_counts_on_nodes_alone_is_told_with_the_commands_for_them() {
        let counts = json!({ SKIP_CLEANUP: "true", "example.org/take-over": "u" });
        assert_eq!(of_set(&counts), None);
        let found = of_set(&json!({ TAKE_OVER: "u-1", CONFIRM: "true" })).unwrap();
        assert_eq!(found.status, ConditionStatus::False);
        assert_eq!(found.severity, Some(Severity::Warning));
        for text in [
            "Annotation dataplane.openstack.org/take-over of OpenStackDataPlaneNodeSet edpm counts \
             for nothing",
            "kubectl annotate --overwrite -n openstack openstackdataplanenode/n0 \
             openstackdataplanenode/n1 openstackdataplanenode/n2 \
             dataplane.openstack.org/take-over=<value> and 1 more.",
            "kubectl annotate -n openstack openstackdataplanenodeset/edpm \
             dataplane.openstack.org/take-over-",
            "it counts on OpenStackDataPlaneDeployment alone",
        ] {
            assert!(found.message.contains(text), "{text}: {}", found.message);
        }
    }

    #[test]
    fn a_redeployment_of_hosts_of_a_node_set_is_a_deployment_to_create() {
        let redeploy = json!({ REDEPLOY: "1" });
        let printed = |found: Option<ConditionDraft>| -> Value {
            let message = found.unwrap().message;
            let (_, rest) = message.split_once("kubectl create -f - <<< '").unwrap();
            serde_json::from_str(rest.split_once('\'').unwrap().0).unwrap()
        };
        let of_all = printed(of_set(&redeploy));
        assert_eq!(
            of_all["metadata"],
            json!({ "generateName": "edpm-", "namespace": "openstack" })
        );
        let deployment: Deployment = serde_json::from_value(of_all).unwrap();
        assert_eq!(deployment.spec.node_sets, ["edpm"]);
        let node = annotated(&redeploy);
        assert_eq!(printed(of_node(&node))["spec"]["ansibleLimit"], json!("edpm"));
        assert_eq!(of_node(&annotated(&json!({ TAKE_OVER: "u" }))), None);
        let role: Role = annotated(&redeploy);
        assert_eq!(of_group(&role, []), None, "it counts there");
    }
}
