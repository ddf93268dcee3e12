//! How far one service is on one host: the run engine's memory in a parent's status.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far one service is on this host.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceRun {
    /// Name of the service.
    pub name: String,
    /// How the newest attempt stands.
    pub state: RunState,
    /// Digest of the inputs of the newest attempt.
    pub hash: String,
    /// Number of the newest attempt; only its success counts.
    pub attempt: i64,
    /// Name of the `OpenStackAnsibleEE` of the newest attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Digest of the inputs with which the service last succeeded on this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed_hash: Option<String>,
    /// How many attempts in a row failed for the same reason: with these inputs, or with those before
    /// while an attempt with these is on its way.
    #[serde(default)]
    pub failures: i64,
    /// When the state was entered.
    pub since: Time,
    /// One CamelCase word for why the newest attempt failed or waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What failed, and what to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How an attempt stands.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
pub enum RunState {
    /// It is due and has not started.
    Pending,
    /// It has started.
    Running,
    /// It ended well on this host.
    Succeeded,
    /// It ended otherwise on this host.
    Failed,
}
