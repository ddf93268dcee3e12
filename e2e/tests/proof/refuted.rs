//! The demo's verification fails once the demo does not hold.

use anyhow::Result;
use e2e::demo::{Demo, HOSTS};

#[tokio::test]
async fn options_that_were_emptied_a_deleted_service_record_and_a_lost_container_refute_the_demo()
-> Result<()> {
    let (host, cell) = (HOSTS[1], "nova-cell2");
    let demo = Demo::ready_on(host).await?;
    let options = demo.options(host).await?;
    demo.configure(host, "").await?;
    demo.settled_on(host).await?;
    // nova deletes likewise: the row stays and is marked, so one of an earlier compute may be there.
    let present = format!("SELECT id FROM services WHERE host='{host}' AND deleted=0");
    let id = demo.sql(cell, &present).await?.trim().to_owned();
    let mark = |it: &str| format!("UPDATE services SET deleted={it} WHERE id={id}");
    demo.sql(cell, &mark("id")).await?;
    let without_record = demo.refuted().await;
    demo.sql(cell, &mark("0")).await?;
    let without_record = without_record?;
    for words in ["nova-compute's log is \"\"", "services row is \"\""] {
        assert!(without_record.contains(&format!("{host}: {words}")), "{without_record}");
    }
    demo.on(host, "podman rm -f nova_compute").await?;
    let text = demo.refuted().await?;
    let is_named =
        |it: &str| it.contains(&format!("facts of {host}")) && it.contains("nova_compute");
    assert!(text.lines().any(is_named), "{text}");
    demo.configure(host, &options).await?;
    demo.settled_on(host).await?;
    assert_eq!(demo.logged(host, "libvirt.cpu_models").await?, "['Nehalem']");
    Ok(())
}
