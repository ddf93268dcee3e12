//! The worlds in which faults are injected, and the facts that are waited for.

use std::time::Duration;

use anyhow::Result;
use common::api::dataplane::{Node, Role, Service};
use common::conditions::Condition;
use e2e::{Namespace, holds};
use k8s_openapi::api::batch::v1::Job;
use serde_json::{Value, json};

/// How long a world may take to be made, and a fact to come; neither is what is measured.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);

/// A role and its node, for which nothing is deployed.
pub(crate) struct World {
    /// The role's spec.
    pub(crate) role: Value,
    /// The role's annotations.
    pub(crate) role_annotations: Value,
    /// The node's annotations.
    pub(crate) node_annotations: Value,
}

impl Default for World {
    fn default() -> Self {
        let role = json!({
            "preProvisioned": true,
            "services": ["noop"],
            "deployStrategy": { "deploy": false },
            "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key", "ansibleUser": "cloud-admin" },
        });
        Self { role, role_annotations: json!({}), node_annotations: json!({}) }
    }
}

impl World {
    /// Makes everything, each object once those that it needs were seen: nothing is ever missing.
    pub(crate) async fn make(self, ns: &Namespace) -> Result<()> {
        self.make_role(ns).await?;
        let spec = json!({ "role": "compute", "hostName": "n0", "ansibleHost": "192.168.123.200" });
        let metadata = json!({ "annotations": self.node_annotations });
        ns.create_with::<Node>("n0", spec, metadata).await?;
        let is_complete = |it: &Node| holds(of_node(it), "InputReady");
        ns.wait::<Node>("n0", "complete", PATIENCE, is_complete).await?;
        Ok(())
    }

    /// Makes everything but the node.
    pub(crate) async fn make_role(&self, ns: &Namespace) -> Result<()> {
        ns.secret("key", &[("ssh-privatekey", "x"), ("known_hosts", "x")]).await?;
        let service = json!({ "playbookContents": "- hosts: all\n  tasks: [{fail: }]\n" });
        ns.create::<Service>("noop", service).await?;
        let metadata = json!({ "annotations": self.role_annotations });
        ns.create_with::<Role>("compute", self.role.clone(), metadata).await?;
        let is_complete = |it: &Role| {
            let conditions = it.status.as_ref().map(|it| it.conditions.as_slice());
            holds(conditions.unwrap_or_default(), "InputReady")
        };
        ns.wait::<Role>("compute", "complete", PATIENCE, is_complete).await?;
        Ok(())
    }
}

/// The conditions of a node.
pub(crate) fn of_node(it: &Node) -> &[Condition] {
    it.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default()
}

/// Waits until a Job has ended, well or not.
pub(crate) async fn job_ends(ns: &Namespace) -> Result<()> {
    let has_ended = |it: &Job| {
        let conditions = it.status.as_ref().and_then(|it| it.conditions.as_ref());
        let ends = |type_: &str| ["Complete", "Failed"].contains(&type_);
        conditions.into_iter().flatten().any(|it| ends(&it.type_) && it.status == "True")
    };
    ns.wait_any::<Job>(PATIENCE, "a Job that has ended", has_ended).await.map(drop)
}
