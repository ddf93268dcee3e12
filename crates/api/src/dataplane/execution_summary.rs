//! What Ansible counted in a run, as deployments and node sets report it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What Ansible counted in one run.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionSummary {
    /// How many hosts the run had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_hosts: Option<i64>,
    /// On how many of them a task failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_hosts: Option<i64>,
    /// How many of them did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreachable_hosts: Option<i64>,
    /// The share of hosts that failed or did not answer, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_percent: Option<i64>,
    /// Names of the hosts on which a task failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_host_list: Vec<String>,
    /// Names of the hosts that did not answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreachable_host_list: Vec<String>,
}
