//! Annotations of this operator on objects where they do not count: a condition names them, and says where
//! they do.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::{ConditionDraft, first_names, join_with_more};
use api::dataplane::Node;
use api::nova::ExternalCompute;
use kube::{Resource, ResourceExt};
use nova_config::annotations::{
    AUDIT, AUDIT_REPAIR, DEFAULT_CONFIG, DRAIN, DRAIN_BEFORE, OF_KINDS, REDEPLOY,
};
use nova_config::conditions::ANNOTATIONS_IGNORED;
use operator_core::plan::Target;

use crate::compute::lifecycle::observed::Observed;
use crate::group::Group;
use crate::group::inherited_annotation::{annotation, repeated};
use crate::nova::drain::before::{DrainBefore, drain_before};
use crate::nova::drain::request::DRAIN_HOSTS;
use crate::reasons;

/// How many hosts of that annotation get a command.
const NAMED: usize = 5;

/// Returns the condition about the annotations of a role or node set, which has these nodes; `None` where
/// all of them count.
pub fn of_group(group: &Group, nodes: &[Arc<Node>]) -> Option<ConditionDraft> {
    let Target { kind, namespace, .. } = group.target();
    let names: Vec<String> = nodes.iter().map(|it| it.name_any()).collect();
    let mut texts = uncounted(&kind.kind, &group.title(), group.annotations(), &names);
    if let (Group::NodeSet(_), Some(text)) = (group, group.annotations().get(DRAIN_HOSTS)) {
        texts.push(drain_hosts(&group.title(), text, &namespace, nodes));
    }
    condition(&texts)
}

/// Returns the condition about the annotations of a node and those that it inherits; `None` where all of them
/// count.
pub fn of_node(seen: &Observed) -> Option<ConditionDraft> {
    let node = &*seen.node;
    let title = format!("OpenStackDataPlaneNode {}", node.name_any());
    let mut texts = uncounted(&Node::kind(&()), &title, node.annotations(), &[]);
    texts.extend(drain_without_effect(seen));
    texts.extend(redeploy_without_effect(seen));
    texts.extend(default_config_without_effect(seen));
    texts.extend(repair_without_audit(seen));
    condition(&texts)
}

fn condition(texts: &[String]) -> Option<ConditionDraft> {
    (!texts.is_empty())
        .then(|| reasons::node::ANNOTATIONS_IGNORED.condition(ANNOTATIONS_IGNORED, texts.join(" ")))
}

/// Returns a sentence for each annotation that counts only on other kinds; `nodes` are those that it may
/// be meant for.
fn uncounted(
    kind: &str,
    title: &str,
    annotations: &BTreeMap<String, String>,
    nodes: &[String],
) -> Vec<String> {
    let kinds_of = |name: &str| -> Vec<&str> {
        let counts = OF_KINDS.iter().filter(|(_, names)| names.contains(&name));
        counts.map(|(kind, _)| *kind).collect()
    };
    let sentence = |name: &String| {
        let kinds = kinds_of(name);
        (!kinds.is_empty() && !kinds.contains(&kind)).then(|| {
            let is_of_nodes = kinds.contains(&&*Node::kind(&())) && !nodes.is_empty();
            let which = if is_of_nodes {
                format!(" ({})", first_names(nodes, NAMED))
            } else {
                String::new()
            };
            let kinds = kinds.join(" and ");
            format!(
                "Annotation {name} of {title} counts for nothing: set it on {kinds}{which}, and \
                 remove it here."
            )
        })
    };
    annotations.keys().filter_map(sentence).collect()
}

/// Returns what is to be done instead of the annotation that drained hosts of a node set: a command for each
/// of its nodes that it names.
fn drain_hosts(title: &str, text: &str, namespace: &str, nodes: &[Arc<Node>]) -> String {
    let entries: BTreeMap<String, String> = serde_json::from_str(text).unwrap_or_default();
    let is_named = |node: &Node, entry: &str| {
        let status = node.status.as_ref();
        let key = status.and_then(|it| it.observed_node_set.as_ref()?.key.as_deref());
        let host = status.and_then(|it| it.host_name.as_deref());
        node.name_any() == entry || key == Some(entry) || host == Some(entry)
    };
    let command = |(entry, mode): (&String, &String)| {
        let node = nodes.iter().find(|it| is_named(it, entry))?;
        let (node, mode) = (node.name_any(), repeated(mode));
        Some(format!(
            "kubectl annotate -n {namespace} openstackdataplanenode/{node} {DRAIN}={mode}"
        ))
    };
    let mut commands: Vec<String> = entries.iter().filter_map(command).collect();
    let n_more = commands.len().saturating_sub(NAMED);
    commands.truncate(NAMED);
    let instead = if commands.is_empty() {
        format!("annotate the nodes of its hosts with {DRAIN}")
    } else {
        join_with_more(commands, "; ", n_more)
    };
    format!(
        "Annotation {DRAIN_HOSTS} of {title} drains no host any more, and while it is there none is \
         given back: drain the hosts by their nodes, then remove it: {instead}"
    )
}

/// Returns that a drain before deployments is asked for where nothing can do it: nova-compute is deployed by
/// a service, and no node set, or no API of nova, says when its host may be disturbed.
fn drain_without_effect(seen: &Observed) -> Option<String> {
    let node = &*seen.node;
    seen.nova.listed.as_ref()?;
    if drain_before(seen.group.as_ref(), node) == DrainBefore::No {
        return None;
    }
    let because = match (seen.reads_nova, node.node_set()) {
        (true, Some(_)) => return None,
        (true, None) => {
            "the hosts of a role are not drained before a service of type nova is deployed to them: \
             deploy nova-compute by the annotation of the cell instead"
        }
        (false, _) => {
            "nova's API is not read: set nova.api.enabled to true in the values of the chart"
        }
    };
    Some(format!(
        "Annotation {DRAIN_BEFORE} of OpenStackDataPlaneNode {} or what it belongs to counts for \
         nothing, because {because}.",
        node.name_any()
    ))
}

/// Returns that another attempt is asked for of a compute that the operator does not deploy.
fn redeploy_without_effect(seen: &Observed) -> Option<String> {
    let compute = seen.compute.as_deref().filter(|it| it.is_observed())?;
    compute.annotations().get(REDEPLOY)?;
    let way = if seen.node.node_set().is_some() {
        "create an OpenStackDataPlaneDeployment of its node set"
    } else {
        "annotate its node with dataplane.openstack.org/redeploy=<any new value>"
    };
    Some(format!(
        "Annotation {REDEPLOY} of NovaExternalCompute {} counts for nothing, because a service of type \
         nova deploys it: {way}.",
        compute.name_any()
    ))
}

/// Returns that a default configuration is named for a compute that a service deploys with its own files.
fn default_config_without_effect(seen: &Observed) -> Option<String> {
    let is_of_service = seen.nova.listed.is_some()
        || seen.compute.as_deref().is_some_and(ExternalCompute::is_observed);
    let found = annotation(seen.group.as_ref(), &seen.node, DEFAULT_CONFIG);
    let (_, origin) = found.filter(|(it, _)| is_of_service && !it.is_empty())?;
    Some(format!(
        "Annotation {DEFAULT_CONFIG} of {origin} counts for nothing on this host, because a service of \
         type nova deploys nova-compute to it: put its options under a key such as 25-nova-default.conf \
         into a ConfigMap that the service mounts, which is nova-extra-config of the default one."
    ))
}

/// Returns that a repair is asked for where nothing is audited; an empty interval is a choice.
fn repair_without_audit(seen: &Observed) -> Option<String> {
    let value = |name: &str| annotation(seen.group.as_ref(), &seen.node, name);
    let (_, origin) = value(AUDIT_REPAIR).filter(|(it, _)| *it == "true")?;
    value(AUDIT).is_none().then(|| {
        format!(
            "Annotation {AUDIT_REPAIR} of {origin} counts for nothing without {AUDIT}: set that to an \
             interval too, such as 6h."
        )
    })
}

#[cfg(test)]
mod tests {
    use nova_config::annotations::{ALLOW_REMOVAL, RELEASE};
    use serde_json::{Value, json};

    use super::*;

    fn set(annotations: &Value) -> Group {
        Group::NodeSet(Arc::new(
            serde_json::from_value(json!({
                "metadata": {"namespace": "ns", "name": "edpm", "annotations": annotations},
                "spec": {"services": [], "nodes": {}, "nodeTemplate": {
                    "ansibleSSHPrivateKeySecret": "ssh",
                }},
            }))
            .unwrap(),
        ))
    }

    fn node(name: &str, key: &str) -> Arc<Node> {
        let of = json!({"name": "edpm", "uid": "u", "generation": 1, "key": key});
        Arc::new(
            serde_json::from_value(json!({
                "metadata": {"namespace": "ns", "name": name}, "spec": {"nodeSet": "edpm"},
                "status": {"observedNodeSet": of, "hostName": format!("{name}.example.org")},
            }))
            .unwrap(),
        )
    }

    fn said(annotations: &Value) -> Option<String> {
        let nodes = [node("c0", "edpm-compute-0"), node("c1", "edpm-compute-1")];
        of_group(&set(annotations), &nodes).map(|it| it.message)
    }

    #[test]
    fn annotations_that_count_on_other_kinds_are_named_with_these() {
        assert_eq!(said(&json!({DRAIN_BEFORE: "true", "example.org/other": "x"})), None);
        let text = said(&json!({ALLOW_REMOVAL: "true", RELEASE: "epoxy"})).unwrap();
        for words in [
            "nova.openstack.org/allow-removal of OpenStackDataPlaneNodeSet edpm counts for nothing: \
             set it on OpenStackDataPlaneNode (c0, c1),",
            "nova.openstack.org/release of OpenStackDataPlaneNodeSet edpm counts for nothing: set it \
             on NovaCell,",
        ] {
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn the_hosts_of_the_annotation_before_get_a_command_each() {
        let hosts = json!({"edpm-compute-0": "wait", "c1.example.org": "migrate", "gone": "wait"});
        let text = said(&json!({DRAIN_HOSTS: hosts.to_string()})).unwrap();
        for command in [
            "kubectl annotate -n ns openstackdataplanenode/c0 nova.openstack.org/drain=wait",
            "kubectl annotate -n ns openstackdataplanenode/c1 nova.openstack.org/drain=migrate",
        ] {
            assert!(text.contains(command), "{text}");
        }
        assert!(!text.contains("gone"), "{text}");
        let text = said(&json!({DRAIN_HOSTS: "no JSON"})).unwrap();
        assert!(text.contains("annotate the nodes of its hosts with"), "{text}");
    }
}
