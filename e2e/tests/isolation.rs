//! One host that is away: the others are deployed, and nobody touches them again when it returns.

use anyhow::Result;
use common::api::dataplane::Role;
use e2e::journey::{self, ROLE, ready, told, trace};
use e2e::{Host, Namespace, run, says};
use serde_json::json;

/// How often sshd let someone in, since the host booted.
async fn sessions(host: &Host) -> Result<usize> {
    let command = "journalctl -u ssh --no-pager | grep -c 'Accepted publickey' || true";
    let exec = ["exec", "-n", "edpm-hosts", &host.name, "--", "sh", "-c", command];
    Ok(run("kubectl", &exec).await?.trim().parse()?)
}

async fn sshd(host: &Host, action: &str) -> Result<()> {
    let sshd = ["exec", "-n", "edpm-hosts", &host.name, "--", "systemctl", action, "ssh"];
    run("kubectl", &sshd).await.map(drop)
}

#[tokio::test]
async fn a_host_that_is_away_delays_nobody_and_is_met_when_it_returns() -> Result<()> {
    let ns = Namespace::new("isolation").await?;
    let near = Host::start(&ns.client, "e2e-near", "192.168.122.165").await?;
    let away = Host::start_like(&near, "e2e-away", "192.168.122.166").await?;
    let content = near.ssh_secret()?;
    let known_hosts = format!("{}{}", content[1].1, away.ssh_secret()?[1].1);
    let secret = [("ssh-privatekey", content[0].1.as_str()), ("known_hosts", &known_hosts)];
    ns.secret(journey::SSH_SECRET, &secret).await?;
    journey::deploy(&ns, &[&near, &away]).await?;
    ready(&ns, &near.name).await?;
    ready(&ns, &away.name).await?;

    sshd(&away, "stop").await?;
    let vars = json!({ "nodeTemplate": { "ansibleVars": { "greeting": "again" } } });
    ns.merge::<Role>(ROLE, json!({ "spec": vars })).await?;
    told(&ns, &away.name, "HostUnreachable", &[&away.address]).await?;
    ready(&ns, &near.name).await?;
    let words = ["1/2 nodes are ready", away.name.as_str()];
    let of_role = |it: &Role| {
        let conditions = it.status.as_ref().map(|it| it.conditions.as_slice());
        says(conditions.unwrap_or_default(), "Ready", "HostUnreachable", &words)
    };
    ns.wait::<Role>(ROLE, "1/2 ready", journey::RUN, of_role).await?;

    let before = sessions(&near).await?;
    assert!(before > 0, "sshd notes no sessions");
    sshd(&away, "start").await?;
    ready(&ns, &away.name).await?;
    assert_eq!(sessions(&near).await?, before, "somebody logged in to {}", near.name);
    assert_eq!(trace(&near).await?, ["hello", "again"]);
    assert_eq!(trace(&away).await?, ["hello", "again"]);
    near.stop().await?;
    away.stop().await?;
    ns.done().await
}
