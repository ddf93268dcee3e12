//! Operators in a cluster that lacks a definition.

use anyhow::Result;

use crate::computes;
use crate::own::Own;

#[tokio::test]
async fn computes_of_roles_are_deployed_without_the_definition_of_node_sets() -> Result<()> {
    let own = Own::start_with("no-node-sets", &["crds.OpenStackDataPlaneNodeSet=false"]).await?;
    let host = own.sim.player.host("no-node-sets", "192.0.2.10");
    let _broker = computes::cell(&own, &own.sim).await?;
    computes::deploy(&own, &[&host]).await?;
    own.done()
}
