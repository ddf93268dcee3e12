//! A host of the demo is changed by hand: an audit finds it, and a repair mends it.

use anyhow::Result;
use api::conditions::Condition;
use api::dataplane::Node;
use e2e::demo::Demo;
use e2e::journey::RUN;
use e2e::{holds, says};
use serde_json::json;

use crate::{Alone, any_host};

const IN_SYNC: &str = "nova.openstack.org/ConfigurationInSync";
const FILE: &str = "/var/lib/openstack/config/nova/01-nova.conf";
const STRAY: &str = "/var/lib/openstack/config/nova/99-nova-stray.conf";

async fn wait_for(demo: &Demo, node: &str, what: &str, is: fn(&[Condition]) -> bool) -> Result<()> {
    demo.ns.wait::<Node>(node, what, RUN * 3, |it| is(it.conditions())).await.map(drop)
}

#[tokio::test]
async fn an_audit_finds_edited_and_stray_files_and_a_stopped_container_and_a_repair_mends_them()
-> Result<()> {
    let Alone { host, _lock, .. } = any_host().await;
    let demo = Demo::ready_on(host).await?;
    demo.use_present_runner(host).await?;
    let identity = demo.on(host, "cat /var/lib/nova/compute_id").await?;
    let damage =
        format!("echo '# edited' >>{FILE} && touch {STRAY} && systemctl stop edpm_nova_compute");
    demo.on(host, &damage).await?;
    let runs = "systemctl --quiet is-active edpm_nova_compute && echo active || echo stopped";
    let look = format!("grep -c edited {FILE}; ls {STRAY} 2>/dev/null; {runs}");
    // So long that no audit of the next interval is due meanwhile.
    demo.annotate(host, json!({ "nova.openstack.org/audit": "24h" })).await?;
    let is_found = |it: &[Condition]| {
        let named = [
            "01-nova.conf: content",
            "config/nova: other files",
            "container nova_compute: not running",
            "redeploy=",
        ];
        says(it, IN_SYNC, "OutOfSync", &named)
    };
    wait_for(&demo, host, "found", is_found).await?;
    let damaged = format!("1\n{STRAY}\nstopped");
    assert_eq!(demo.on(host, &look).await?.trim(), damaged, "an audit changes nothing");
    demo.annotate(host, json!({ "nova.openstack.org/audit-repair": "true" })).await?;
    wait_for(&demo, host, "mended", |it| holds(it, IN_SYNC)).await?;
    assert_eq!(demo.on(host, &look).await?.trim(), "0\nactive");
    assert_eq!(demo.on(host, "cat /var/lib/nova/compute_id").await?, identity);
    let nothing =
        json!({ "nova.openstack.org/audit": null, "nova.openstack.org/audit-repair": null });
    demo.annotate(host, nothing).await?;
    let is_absent = |it: &[Condition]| it.iter().all(|it| it.type_ != IN_SYNC);
    wait_for(&demo, host, "no longer audited", is_absent).await?;
    demo.settled_on(host).await.map(drop)
}
