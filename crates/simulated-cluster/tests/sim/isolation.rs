//! One unreachable host: the others are deployed, and are not touched again when it returns.

use anyhow::Result;
use api::dataplane::Role;
use e2e::journey::{self, ROLE, node_reports, ready};
use serde_json::json;

use crate::journey::trace;
use crate::world::World;

#[tokio::test]
async fn a_host_that_is_away_delays_nobody_and_is_met_when_it_returns() -> Result<()> {
    let (ns, near) = World::with_host("isolation", "e2e-near", "192.168.122.165").await?;
    let away = ns.host_like(&near, "e2e-away", "192.168.122.166");
    let content = near.ssh_secret();
    let known_hosts = format!("{}{}", content[1].1, away.ssh_secret()[1].1);
    let secret = [("ssh-privatekey", content[0].1.as_str()), ("known_hosts", &known_hosts)];
    ns.secret(journey::SSH_SECRET, &secret).await?;
    crate::journey::deploy(&ns, &[&near, &away]).await?;
    ready(&ns, &near.name).await?;
    ready(&ns, &away.name).await?;

    away.stop();
    let vars = json!({ "nodeTemplate": { "ansibleVars": { "greeting": "again" } } });
    ns.merge::<Role>(ROLE, json!({ "spec": vars })).await?;
    node_reports(&ns, &away.name, "HostUnreachable", &[&away.address]).await?;
    ready(&ns, &near.name).await?;
    let words = ["1/2 nodes are ready", away.name.as_str()];
    ns.reports::<Role>(ROLE, "Ready", "HostUnreachable", &words, journey::RUN).await?;

    let before = near.visits().len();
    assert!(before > 0, "the ledger notes no visits");
    away.boot();
    ready(&ns, &away.name).await?;
    assert_eq!(near.visits().len(), before, "somebody logged in to {}", near.name);
    assert_eq!(trace(&near), ["hello", "again"]);
    assert_eq!(trace(&away), ["hello", "again"]);
    ns.done().await
}
