//! Guests move over ssh where hosts have no certificates for it.

use anyhow::{Result, ensure};
use api::dataplane::Node;
use e2e::demo::{DEPLOYMENT, Demo};
use e2e::guests::{Guest, HOSTS, until};
use serde_json::{Value, json};

use crate::{Stage, change_role, stage};

/// Has guests move over TLS or not, where it is not null, deploys the computes of both hosts, and waits
/// until nova-compute has the scheme that follows.
async fn choose(demo: &Demo, tls: Value, scheme: &str) -> Result<()> {
    let vars = json!({ "edpm_nova_live_migration_tls": tls });
    let change = json!({ "spec": { "nodeTemplate": { "ansibleVars": vars } } });
    let role = change_role(demo, change).await?;
    let describes_it = |it: &Node| {
        let observed = it.status.as_ref().and_then(|it| it.observed_role.as_ref());
        observed.map(|it| it.generation) == role.metadata.generation
    };
    for host in HOSTS {
        demo.ns.wait(host, "follows the changed role", DEPLOYMENT, describes_it).await?;
        demo.settled_on(host).await?;
        demo.redeploy(host).await?;
        until(&format!("{host} uses {scheme}"), DEPLOYMENT, async || {
            let found = demo.logged(host, "libvirt.live_migration_scheme").await?;
            ensure!(found == scheme, "it uses {found}");
            Ok(())
        })
        .await?;
        demo.settled_on(host).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_guest_moves_over_ssh_where_tls_is_switched_off_and_over_tls_again() -> Result<()> {
    let Stage { demo, _lock } = stage().await?;
    let [host, other] = HOSTS;
    let mut guest = Guest::on(&demo, "t-a", host).await?;
    choose(&demo, json!(false), "ssh").await?;
    guest.lives(&demo).await?;
    assert_eq!(guest.migrate(&demo, other).await?["dest"], other);
    guest.lives(&demo).await?;
    choose(&demo, Value::Null, "tls").await?;
    assert_eq!(guest.migrate(&demo, host).await?["dest"], host);
    guest.lives(&demo).await
}
