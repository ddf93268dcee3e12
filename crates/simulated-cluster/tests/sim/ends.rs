//! The removal of a node with a compute: how it is requested, and what must be left.

use std::time::Duration;

use anyhow::Result;
use api::dataplane::Node;
use api::nova::{Cell, Leftover};
pub(crate) use e2e::cells::gone;
use e2e::{Namespace, SOON};
use kube::ResourceExt;
use kube::api::{DeleteParams, PropagationPolicy};
use simulated_cluster::Host;

use crate::computes::CELL;

/// Time limit for removing a compute whose host answers.
pub(crate) const GOES: Duration = Duration::from_mins(10);

/// Returns how often nova-compute was stopped on a host.
pub(crate) fn cleaned(host: &Host) -> usize {
    host.services().iter().filter(|it| *it == "nova-cleanup").count()
}

/// Waits until everything that the compute's removal needs exists.
pub(crate) async fn held(ns: &Namespace, name: &str) -> Result<()> {
    held_in(ns, name, CELL).await
}

/// The same for a compute of that cell.
pub(crate) async fn held_in(ns: &Namespace, name: &str, cell: &str) -> Result<()> {
    e2e::cells::wait_until_reachable(ns, name, SOON).await?;
    ns.wait::<Cell>(cell, "held", SOON, |it| it.finalizers().len() == 1).await?;
    let is_held_by_both = |it: &Node| it.finalizers().len() == 2;
    ns.wait::<Node>(name, "held by both operators", SOON, is_held_by_both).await.map(drop)
}

/// Deletes a node.
pub(crate) async fn delete(ns: &Namespace, node: &str, how: PropagationPolicy) -> Result<()> {
    let params = DeleteParams { propagation_policy: Some(how), ..DeleteParams::default() };
    ns.api::<Node>().delete(node, &params).await?;
    Ok(())
}

/// What the cell remembers.
pub(crate) async fn leftovers(ns: &Namespace) -> Result<Vec<Leftover>> {
    let status = ns.api::<Cell>().get(CELL).await?.status;
    Ok(status.map(|it| it.leftovers).unwrap_or_default())
}
