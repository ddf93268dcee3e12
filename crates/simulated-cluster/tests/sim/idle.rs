//! Roles and nodes of which nothing is deployed.

use anyhow::Result;
use api::dataplane::Node;
use e2e::Namespace;
use serde_json::{Value, json};

/// The annotation that sets a node's cell.
pub(crate) const CELL: &str = "nova.openstack.org/cell";

/// Returns a role of which nothing is deployed.
pub(crate) fn idle_role() -> Value {
    json!({
        "preProvisioned": true,
        "services": ["noop"],
        "deployStrategy": { "deploy": false },
        "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key", "ansibleUser": "cloud-admin" },
    })
}

/// Returns the service of that role, which would fail if it ever ran.
pub(crate) fn idle_service() -> Value {
    json!({ "playbookContents": "- hosts: all\n  tasks: [{fail: }]\n" })
}

/// Creates a node of the role `compute` at an unused address.
pub(crate) async fn idle_node(ns: &Namespace, name: &str, cell: Option<&str>) -> Result<()> {
    let spec = json!({ "role": "compute", "hostName": name, "ansibleHost": "192.168.123.254" });
    let annotations = cell.map(|it| json!({ CELL: it })).unwrap_or_default();
    ns.create_with::<Node>(name, spec, json!({ "annotations": annotations })).await.map(drop)
}

/// Returns the change a user makes to the cell annotation: a name, or null to remove it.
pub(crate) fn cell(cell: impl Into<Value>) -> Value {
    json!({ "metadata": { "annotations": { CELL: cell.into() } } })
}
