//! Operators in a cluster that lacks a definition.

use anyhow::Result;
use e2e::journey::ready;

use crate::journey::{deploy, ssh_secret};
use crate::own::Own;

#[tokio::test]
async fn hosts_are_deployed_without_the_definition_of_readiness_reports() -> Result<()> {
    let values = ["crds.OpenStackDataPlaneHostReadiness=false"];
    let own = Own::start_with("no-readiness", &values).await?;
    let host = own.sim.player.host("no-readiness", "192.0.2.10");
    ssh_secret(&own, &host).await?;
    deploy(&own, &[&host]).await?;
    ready(&own, &host.name).await?;
    own.done()
}
