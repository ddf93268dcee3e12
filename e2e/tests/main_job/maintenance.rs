//! A host of the demo is drained, removed from nova, and comes back.

use anyhow::{Context as _, Result};
use api::conditions::Condition;
use api::dataplane::Node;
use api::nova::{Cell, ExternalCompute};
use e2e::demo::{Demo, conditions};
use e2e::journey::RUN;
use e2e::{holds, says};
use serde_json::{Value, json};

use crate::host;

const CELL: &str = "nova-cell2";
const DRAINED: &str = "nova.openstack.org/Drained";

async fn annotate(demo: &Demo, node: &str, annotations: Value) -> Result<()> {
    let change = json!({ "metadata": { "annotations": annotations } });
    demo.ns.merge::<Node>(node, change).await.map(drop)
}

fn of_node(node: &Node) -> &[Condition] {
    node.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default()
}

async fn wait_for_node(
    demo: &Demo,
    node: &str,
    what: &str,
    is: fn(&[Condition]) -> bool,
) -> Result<()> {
    demo.ns.wait::<Node>(node, what, RUN, |it| is(of_node(it))).await.map(drop)
}

/// What nova's database has of the host's service: whether it is disabled, and why.
async fn service(demo: &Demo, host: &str) -> Result<String> {
    let query =
        format!("SELECT disabled, disabled_reason FROM services WHERE host='{host}' AND deleted=0");
    Ok(demo.sql(CELL, &query).await?.trim().to_owned())
}

async fn count(demo: &Demo, database: &str, from: &str) -> Result<String> {
    Ok(demo.sql(database, &format!("SELECT COUNT(*) FROM {from}")).await?.trim().to_owned())
}

/// Returns the UUID of the compute node that a compute records.
pub(crate) async fn compute_id(demo: &Demo, host: &str) -> Result<String> {
    let status = demo.ns.api::<ExternalCompute>().get(host).await?.status.unwrap_or_default();
    status.compute_id.context("the compute records its UUID")
}

fn has_servers(conditions: &[Condition]) -> bool {
    let words = ["has 1 server and 0 open migrations", "openstack server list --all-projects"];
    says(conditions, DRAINED, "ServersOnHost", &words)
}

#[tokio::test]
async fn a_host_is_drained_leaves_nova_and_comes_back_as_who_it_was() -> Result<()> {
    let (host, _lock) = host(1).await;
    let demo = Demo::ready_on(host).await?;
    let (options, id) = (demo.options(host).await?, compute_id(&demo, host).await?);
    drained_and_enabled(&demo, host).await?;
    removed(&demo, host).await?;
    annotate(&demo, host, json!({ "nova.openstack.org/cell": CELL })).await?;
    demo.compute(host, "made anew", |it| it.status.is_some()).await?;
    demo.configure(host, &options).await?;
    demo.settled_on(host).await?;
    demo.compute(host, "up and mapped", |it| {
        ["ServiceUp", "HostMapped"].iter().all(|type_| holds(conditions(it), type_))
    })
    .await?;
    assert_eq!(compute_id(&demo, host).await?, id);
    annotate(&demo, host, json!({ "nova.openstack.org/allow-removal": null })).await
}

async fn drained_and_enabled(demo: &Demo, host: &str) -> Result<()> {
    let server = demo.server(&["create", "cell2", host]).await?;
    let drain = json!({
        "nova.openstack.org/drain": "wait", "nova.openstack.org/drain-reason": "new memory",
    });
    annotate(demo, host, drain).await?;
    wait_for_node(demo, host, "held by a server", has_servers).await?;
    assert_eq!(service(demo, host).await?, "1\tnova.openstack.org/drain: new memory");
    demo.server(&["delete", &server]).await?;
    wait_for_node(demo, host, "drained", |it| holds(it, DRAINED)).await?;
    let nothing = json!({
        "nova.openstack.org/drain": null, "nova.openstack.org/drain-reason": null,
    });
    annotate(demo, host, nothing).await?;
    let is_quiet = |it: &[Condition]| it.iter().all(|it| it.type_ != DRAINED);
    wait_for_node(demo, host, "given back", is_quiet).await?;
    assert_eq!(service(demo, host).await?, "0\tNULL");
    Ok(())
}

async fn removed(demo: &Demo, host: &str) -> Result<()> {
    let server = demo.server(&["create", "cell2", host]).await?;
    let removal = json!({
        "nova.openstack.org/cell": "", "nova.openstack.org/allow-removal": "true",
    });
    annotate(demo, host, removal).await?;
    let is_held = |it: &[Condition]| {
        says(it, "nova.openstack.org/Compute", "ServersOnHost", &["has 1 server", "skip-cleanup"])
    };
    wait_for_node(demo, host, "held by a server", is_held).await?;
    demo.on(host, "systemctl is-active edpm_nova_compute").await?;
    demo.server(&["delete", &server]).await?;
    demo.ns.gone::<ExternalCompute>(host, RUN * 2).await?;
    for (database, from) in [
        (CELL, format!("services WHERE host='{host}' AND deleted=0")),
        (CELL, format!("compute_nodes WHERE host='{host}' AND deleted=0")),
        ("nova-api", format!("host_mappings WHERE host='{host}'")),
        ("placement", format!("resource_providers WHERE name='{host}'")),
    ] {
        assert_eq!(count(demo, database, &from).await?, "0", "{from}");
    }
    let left = "systemctl is-active --quiet edpm_nova_compute && echo running; \
                podman container exists nova_compute && echo container; \
                ls -d /var/lib/openstack/config/nova 2>/dev/null; true";
    assert_eq!(demo.on(host, left).await?.trim(), "");
    let status = demo.ns.api::<Cell>().get(CELL).await?.status.unwrap_or_default();
    assert!(status.leftovers.iter().all(|it| it.host_name != host), "{:?}", status.leftovers);
    Ok(())
}
