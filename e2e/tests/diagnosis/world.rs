//! Facts that the fault tests wait for.

use std::time::Duration;

use anyhow::Result;
use api::conditions::Condition;
use api::dataplane::Node;
use e2e::Namespace;
use k8s_openapi::api::batch::v1::Job;

/// The timeout for the preparation and for a fact; neither is measured.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);

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
