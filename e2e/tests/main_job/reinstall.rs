//! A host of the demo is installed anew: it gets its identity in nova back once it has no servers.

use anyhow::Result;
use api::conditions::Condition;
use api::dataplane::Node;
use api::nova::ExternalCompute;
use e2e::demo::{Demo, fresh};
use e2e::host::install_anew;
use e2e::says;
use serde_json::json;

use crate::deployed_again::annotate;
use crate::maintenance::compute_id;
use crate::{Alone, any_host, in_nova};

/// Where a host keeps its identity.
const FILE: &str = "/var/lib/nova/compute_id";

async fn deploy_again(demo: &Demo, host: &str) -> Result<()> {
    let before = demo.ns.api::<ExternalCompute>().get(host).await?;
    let value = json!({ "nova.openstack.org/redeploy": fresh(&before) });
    let change = json!({ "metadata": { "annotations": value } });
    demo.ns.merge::<ExternalCompute>(host, change).await.map(drop)
}

#[tokio::test]
async fn a_host_that_is_installed_anew_gets_its_identity_back_once_it_has_no_servers() -> Result<()>
{
    let Alone { host, cell, _lock } = any_host().await;
    let demo = Demo::ready_on(host).await?;
    demo.use_present_runner(host).await?;
    let id = compute_id(&demo, host).await?;
    refused_with_another(&demo, host, &id).await?;
    let server = demo.server(&["create", in_nova(cell), host]).await?;
    install_anew(&demo.ns.client, host).await?;
    let bare =
        "ls -d /etc/edpm-firewall /etc/systemd/system/edpm_* /var/lib/openstack 2>/dev/null; true";
    assert_eq!(demo.on(host, bare).await?.trim(), "", "nothing of phase 0 and 1 is left");
    // Its services of phase 0 run first, and its compute follows.
    redeploy(&demo, host).await?;
    let words = [&*server, &*id, "/var/lib/nova/compute_id"];
    let is_held = |it: &[Condition]| says(it, "Ready", "IdentityHasServers", &words);
    demo.compute(host, "held by a server", |it| is_held(it.conditions())).await?;
    let started = "podman container exists nova_compute && echo container; \
                   ls /var/lib/nova/compute_id 2>/dev/null; true";
    assert_eq!(demo.on(host, started).await?.trim(), "", "nothing starts under a server");

    demo.server(&["delete", &server]).await?;
    demo.settled_on(host).await?;
    demo.up_and_mapped(host).await?;
    demo.ns.merge::<Node>(host, annotate(None)).await?;
    demo.settled_on(host).await?;
    assert_eq!(demo.on(host, "cat /var/lib/nova/compute_id").await?.trim(), id);
    assert_eq!(compute_id(&demo, host).await?, id);
    assert_eq!(demo.hypervisor(host).await?, Some(id.clone()));
    assert_eq!(demo.provider(host).await?, Some(id));
    Ok(())
}

/// Requests that all services of a node run on its host again.
async fn redeploy(demo: &Demo, host: &str) -> Result<()> {
    let value = fresh(&demo.ns.api::<Node>().get(host).await?);
    demo.ns.merge::<Node>(host, annotate(Some(&value))).await.map(drop)
}

/// A host with the identity of another one keeps it, and is refused.
async fn refused_with_another(demo: &Demo, host: &str, id: &str) -> Result<()> {
    let other = "11111111-2222-4333-8444-555555555555";
    let write = |id: &str| format!("chmod u+w {FILE}; echo {id} > {FILE}; chmod u-w {FILE}");
    demo.on(host, &write(other)).await?;
    deploy_again(demo, host).await?;
    let words = [id, other];
    let is_refused = |it: &[Condition]| says(it, "Ready", "IdentityMismatch", &words);
    let refused = demo.compute(host, "refused", |it| is_refused(it.conditions())).await;
    let kept = demo.on(host, &format!("cat {FILE}")).await;
    demo.on(host, &write(id)).await?;
    refused?;
    assert_eq!(kept?.trim(), other);
    Ok(())
}
