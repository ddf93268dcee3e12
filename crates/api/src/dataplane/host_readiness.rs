//! `OpenStackDataPlaneHostReadiness`: the hosts of a node set that do not satisfy a readiness gate.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::service::QUALIFIED_NAME;
use crate::conditions::one_line;
use crate::shared::DNS_SUBDOMAIN;

/// How many bytes of a message about a host are kept.
const MESSAGE: usize = 256;

/// What the operator of a service reports about the hosts of a node set.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "dataplane.openstack.org",
    version = "v1beta1",
    kind = "OpenStackDataPlaneHostReadiness",
    plural = "openstackdataplanehostreadinesses",
    root = "HostReadiness",
    doc = "OpenStackDataPlaneHostReadiness lists the hosts of a node set that do not satisfy a \
           readiness gate of a service yet; the operator of that service writes it.",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    category = "edpm",
    shortname = "osdphr",
    label("edpm.openstack.org/managed-by", "edpm-operators"),
    printcolumn(name = "NodeSet", type_ = "string", json_path = ".spec.nodeSet"),
    printcolumn(name = "Condition", type_ = "string", json_path = ".spec.conditionType"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct HostReadinessSpec {
    /// Name of the `OpenStackDataPlaneNodeSet` in the same namespace.
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN))]
    pub node_set: String,
    /// The type of condition, as `readinessGates` of a service has it.
    #[schemars(length(min = 1, max = 317), regex(pattern = QUALIFIED_NAME))]
    pub condition_type: String,
    /// The `status.settledDeployments` of the node set that the report was made from: the report
    /// counts as long as it contains each of the present ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(length(max = 64)))]
    pub observed_deployments: Vec<String>,
    /// The hosts that are not there yet, by their names in the inventory, which every other host of
    /// the node set is.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-map-type" = "atomic", "maxProperties" = 500))]
    pub not_ready: BTreeMap<String, HostNotReady>,
    /// The hosts that have something to be cleaned up after them: each by its name in the inventory,
    /// with the name under which the writer has it. One that is taken out of the node set keeps its
    /// entry in the inventory, its machine and its addresses, and a node set that is deleted stays,
    /// until the writer has removed the entry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(
        extend("x-kubernetes-map-type" = "atomic", "maxProperties" = 500),
        inner(length(min = 1, max = 253))
    )]
    pub host_finalizers: BTreeMap<String, String>,
    /// The hosts that may be disturbed: each by its name in the inventory, with the UID of the
    /// deployment that may. While the field is there, a deployment begins only on such a host if the
    /// host is in service, and each host that is listed counts as unavailable; without it, no
    /// deployment waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic", "maxProperties" = 500))]
    pub disruption_allowed: Option<BTreeMap<String, String>>,
}

/// Why a host does not satisfy a readiness gate yet.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostNotReady {
    /// One CamelCase word for the cause.
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z][A-Za-z0-9]*$"))]
    pub reason: String,
    /// The cause, and what to do next.
    #[schemars(length(max = 256))]
    pub message: String,
}

impl HostNotReady {
    /// Creates an entry with a message in one line of at most 256 bytes.
    pub fn new(reason: &str, message: &str) -> Self {
        Self { reason: reason.to_owned(), message: one_line(message, MESSAGE) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_with_an_entry_for_each_of_500_hosts_stays_below_512_kib() {
        let host = |n: usize| format!("{n:h>63}").replace(' ', "h");
        let entry = HostNotReady::new(&"R".repeat(64), &"ä".repeat(MESSAGE));
        let spec = HostReadinessSpec {
            node_set: "n".repeat(253),
            condition_type: "c".repeat(317),
            observed_deployments: vec!["00000000-0000-0000-0000-000000000000".into(); 200],
            not_ready: (0..500).map(|it| (host(it), entry.clone())).collect(),
            host_finalizers: (0..500).map(|it| (host(it), "c".repeat(253))).collect(),
            disruption_allowed: Some((0..500).map(|it| (host(it), "u".repeat(36))).collect()),
        };
        assert_eq!((spec.not_ready.len(), entry.message.len()), (500, 255));
        let size = serde_json::to_vec(&HostReadiness::new("n", spec)).unwrap().len();
        assert!(size < 512 * 1024, "{size}");
    }

    #[test]
    fn a_message_is_one_line_without_what_a_terminal_obeys() {
        assert_eq!(HostNotReady::new("Down", "a\n \u{1b}b").message, "a b");
    }
}
