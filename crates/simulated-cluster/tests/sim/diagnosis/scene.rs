//! The worlds in which faults are injected, and the conditions that are waited for.

use anyhow::Result;
use api::dataplane::{Node, Role};
use api::nova::Cell;
use e2e::diagnosis::PATIENCE;
use e2e::{Namespace, cells};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::idle::idle_role;
use crate::world::idle_inputs;

/// A role and its node; nothing is deployed.
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
        Self { role: idle_role(), role_annotations: json!({}), node_annotations: json!({}) }
    }
}

impl World {
    /// Creates everything in dependency order, each object after those it needs were seen: nothing
    /// is ever missing.
    pub(crate) async fn make(self, ns: &Namespace) -> Result<()> {
        self.make_role(ns).await?;
        let spec = json!({ "role": "compute", "hostName": "n0", "ansibleHost": "192.168.123.200" });
        let metadata = json!({ "annotations": self.node_annotations });
        ns.create_with::<Node>("n0", spec, metadata).await?;
        ns.good::<Node>("n0", &["InputReady"], PATIENCE).await?;
        Ok(())
    }

    /// Creates everything except the node.
    pub(crate) async fn make_role(&self, ns: &Namespace) -> Result<()> {
        idle_inputs(ns).await?;
        let metadata = json!({ "annotations": self.role_annotations });
        ns.create_with::<Role>("compute", self.role.clone(), metadata).await?;
        ns.good::<Role>("compute", &["InputReady"], PATIENCE).await?;
        Ok(())
    }
}

/// Records that a node's compute has run, which is what the operator does before a first run.
pub(crate) async fn has_run(ns: &Namespace, node: &str) -> Result<()> {
    cells::wait_until_reachable(ns, node, PATIENCE).await?;
    cells::record_run(ns, node).await?;
    let is_held_by_both = |it: &Node| it.finalizers().len() == 2;
    ns.wait::<Node>(node, "held by both operators", PATIENCE, is_held_by_both).await.map(drop)
}

/// Waits until a cell has the finalizer that its computes require.
pub(crate) async fn is_held(ns: &Namespace, cell: &str) -> Result<()> {
    ns.wait::<Cell>(cell, "held", PATIENCE, |it| it.finalizers().len() == 1).await.map(drop)
}

/// Waits until a container is running.
pub(crate) async fn pod_runs(ns: &Namespace) -> Result<Pod> {
    let runs = |it: &Pod| {
        let containers = it.status.as_ref().and_then(|it| it.container_statuses.as_ref());
        let is_running = |it: &k8s_openapi::api::core::v1::ContainerStatus| {
            it.state.as_ref().is_some_and(|it| it.running.is_some())
        };
        containers.into_iter().flatten().any(is_running)
    };
    ns.wait_any::<Pod>(PATIENCE, "a pod that runs", runs).await
}

/// Waits until a container cannot start for one of these kubelet reasons.
pub(crate) async fn pod_waits(ns: &Namespace, reasons: &[&str]) -> Result<()> {
    let is_stuck = |it: &Pod| {
        let containers = it.status.as_ref().and_then(|it| it.container_statuses.as_ref());
        let waits = containers
            .into_iter()
            .flatten()
            .filter_map(|it| it.state.as_ref()?.waiting.as_ref()?.reason.as_deref());
        waits.into_iter().any(|it| reasons.contains(&it))
    };
    ns.wait_any::<Pod>(PATIENCE, "a pod that cannot start", is_stuck).await.map(drop)
}
