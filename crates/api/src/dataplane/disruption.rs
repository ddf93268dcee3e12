//! Which deployment waits to disturb a host of a node set, and which operators allow that.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shared::{DNS_SUBDOMAIN, is_zero};

/// Which deployment waits to disturb a host, and which operators allow that. Several operators write it,
/// each its own part.
#[derive(Clone, Debug, Default, Deserialize, Eq, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How many targets the host has had. It rises with each one given, also of the same deployment.
    /// Absent for none, so that an operator which writes only its own holder does not own it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub last: i64,
    /// The deployment that waits to disturb the host; absent once it has begun there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<DisruptionTarget>,
    /// What other operators say about it; a host without any waits for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    #[schemars(length(max = 8))]
    pub holders: Vec<DisruptionHolder>,
}

/// A deployment that is to disturb a host.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DisruptionTarget {
    /// UID of the deployment.
    pub deployment: String,
    /// Which target of the host it is. One that was taken away and is given again has another number,
    /// so that no earlier permission fits it.
    pub number: i64,
}

/// What one operator says about disturbing a host; it writes its entry under its own field manager.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DisruptionHolder {
    /// The prefix of the operator's conditions, for example `nova.openstack.org`.
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN))]
    pub name: String,
    /// Whether deployments of a host that is in service wait for `allowed`.
    #[serde(default)]
    pub holds: bool,
    /// The target that may go on; while it is there, the host counts as unavailable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<DisruptionTarget>,
    /// The last attempt after whose end the operator's conditions were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<SeenDeployment>,
}

/// An attempt of a deployment on a host.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SeenDeployment {
    /// UID of the deployment.
    pub deployment: String,
    /// Number of the attempt, as `deployment.attempt` of the host has it.
    pub attempt: i64,
}
