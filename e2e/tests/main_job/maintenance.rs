//! A host of the demo is drained, removed from nova, and comes back.

use anyhow::{Context as _, Result, ensure};
use api::conditions::{Condition, ConditionStatus};
use api::nova::{Cell, ExternalCompute};
use e2e::demo::Demo;
use e2e::journey::RUN;
use e2e::{holds, says};
use serde_json::json;

use crate::{Alone, host, in_nova};

const CELL: &str = "nova-cell2";
const DRAINED: &str = "nova.openstack.org/Drained";

/// Has nova's API make an aggregate of a host, or delete that aggregate: `create HOST` or `delete`.
const AGGREGATE: &str = r#"
import sys
from nova import config, context, objects, rpc
from nova.compute import api

config.parse_args(["aggregate", "--config-dir", "/etc/nova/nova.conf.d"])
objects.register_all()
rpc.init(config.CONF)
ctx, aggregates = context.get_admin_context(), api.AggregateAPI()
for it in aggregates.get_aggregate_list(ctx):
    if it.name == "removal" and not it.hosts:
        aggregates.delete_aggregate(ctx, it.id)
if sys.argv[1] == "create":
    made = aggregates.create_aggregate(ctx, "removal", None)
    aggregates.add_host_to_aggregate(ctx, made.id, sys.argv[2])
"#;

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
    let Alone { host, _lock, .. } = host(1).await;
    let demo = Demo::ready_on(host).await?;
    let (options, id) = (demo.options(host).await?, compute_id(&demo, host).await?);
    drained_and_enabled(&demo, host).await?;
    removed(&demo, host).await?;
    discover(&demo, "external").await?;
    let unmapped = unmapped(&demo, host, &options).await;
    discover(&demo, "operator").await?;
    unmapped?;
    demo.settled_on(host).await?;
    demo.up_and_mapped(host).await?;
    assert_eq!(compute_id(&demo, host).await?, id);
    assert_eq!(demo.hypervisor(host).await?, Some(id));
    demo.annotate(host, json!({ "nova.openstack.org/allow-removal": null })).await
}

async fn drained_and_enabled(demo: &Demo, host: &str) -> Result<()> {
    let server = demo.server(&["create", in_nova(CELL), host]).await?;
    let drain = json!({
        "nova.openstack.org/drain": "wait", "nova.openstack.org/drain-reason": "new memory",
    });
    demo.annotate(host, drain).await?;
    demo.node(host, "held by a server", has_servers).await?;
    let disabled = ("disabled".to_owned(), "nova.openstack.org/drain: new memory".to_owned());
    assert_eq!(demo.service(host).await?, Some(disabled));
    demo.server(&["delete", &server]).await?;
    demo.node(host, "drained", |it| holds(it, DRAINED)).await?;
    let nothing = json!({
        "nova.openstack.org/drain": null, "nova.openstack.org/drain-reason": null,
    });
    demo.annotate(host, nothing).await?;
    let is_quiet = |it: &[Condition]| it.iter().all(|it| it.type_ != DRAINED);
    demo.node(host, "given back", is_quiet).await?;
    assert_eq!(demo.service(host).await?, Some(("enabled".to_owned(), String::new())));
    Ok(())
}

async fn discover(demo: &Demo, who: &str) -> Result<()> {
    let annotations = json!({ "nova.openstack.org/host-discovery": who });
    let change = json!({ "metadata": { "annotations": annotations } });
    demo.ns.merge::<Cell>(CELL, change).await.map(drop)
}

/// Until its host is mapped, nova has the service of a compute, and does not list it as a hypervisor.
async fn unmapped(demo: &Demo, host: &str, options: &str) -> Result<()> {
    demo.annotate(host, json!({ "nova.openstack.org/cell": CELL })).await?;
    demo.compute(host, "made anew", |it| it.status.is_some()).await?;
    demo.configure(host, options).await?;
    let is_unmapped = |it: &ExternalCompute| {
        let mapped = it.conditions().iter().find(|it| it.type_ == "HostMapped");
        mapped.is_some_and(|it| it.status == ConditionStatus::False)
    };
    demo.compute(host, "not mapped", is_unmapped).await?;
    let service = demo.service(host).await?;
    ensure!(service == Some(("enabled".to_owned(), String::new())), "{service:?}");
    let listed = demo.hypervisor(host).await?;
    ensure!(listed.is_none(), "it is listed as {listed:?}");
    ensure!(!demo.mapped_hosts().await?.contains(host), "it is mapped");
    Ok(())
}

/// Whether nova has a host in an aggregate.
async fn is_in_aggregate(demo: &Demo, host: &str) -> Result<bool> {
    let found = demo.nova("/os-aggregates").await?;
    let all = found["aggregates"].as_array().context("a list of aggregates")?;
    Ok(all.iter().any(|it| it["hosts"].as_array().is_some_and(|it| it.contains(&json!(host)))))
}

async fn removed(demo: &Demo, host: &str) -> Result<()> {
    demo.python(AGGREGATE, &["create", host]).await?;
    assert!(is_in_aggregate(demo, host).await?);
    let server = demo.server(&["create", in_nova(CELL), host]).await?;
    let removal = json!({
        "nova.openstack.org/cell": "", "nova.openstack.org/allow-removal": "true",
    });
    demo.annotate(host, removal).await?;
    let is_held = |it: &[Condition]| {
        says(it, "nova.openstack.org/Compute", "ServersOnHost", &["has 1 server", "skip-cleanup"])
    };
    demo.node(host, "held by a server", is_held).await?;
    demo.on(host, "systemctl is-active edpm_nova_compute").await?;
    demo.server(&["delete", &server]).await?;
    let words = ["nova-manage cell_v2 list_hosts has host"];
    let is_read =
        |it: &ExternalCompute| says(it.conditions(), "HostUnmapped", "HostUnmapped", &words);
    demo.compute(host, "read as not mapped", is_read).await?;
    demo.ns.gone::<ExternalCompute>(host, RUN * 2).await?;
    assert_eq!(demo.service(host).await?, None);
    assert_eq!(demo.hypervisor(host).await?, None);
    assert_eq!(demo.provider(host).await?, None);
    assert!(!is_in_aggregate(demo, host).await?);
    demo.python(AGGREGATE, &["delete"]).await?;
    assert!(!demo.mapped_hosts().await?.contains(host), "its mapping is left");
    let left = "systemctl is-active --quiet edpm_nova_compute && echo running; \
                podman container exists nova_compute && echo container; \
                ls -d /var/lib/openstack/config/nova 2>/dev/null; true";
    assert_eq!(demo.on(host, left).await?.trim(), "");
    let status = demo.ns.api::<Cell>().get(CELL).await?.status.unwrap_or_default();
    assert!(status.leftovers.iter().all(|it| it.host_name != host), "{:?}", status.leftovers);
    Ok(())
}
