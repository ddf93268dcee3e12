//! A host is emptied by live migration.

use anyhow::Result;
use e2e::guests::{Guest, HOSTS};
use e2e::{holds, says};
use serde_json::json;

use crate::{DRAIN, DRAINED, Stage, stage};

#[tokio::test]
async fn a_drained_host_loses_its_running_guests_and_names_the_one_that_is_stopped() -> Result<()> {
    let Stage { demo, _lock } = stage().await?;
    let [host, other] = HOSTS;
    let mut guests = [Guest::on(&demo, "t-a", host).await?, Guest::on(&demo, "t-b", host).await?];
    // One of a test that failed is shut off, and moves nowhere.
    demo.guest(&["delete", "t-c"]).await?;
    let stopped = Guest::on(&demo, "t-c", host).await?;
    demo.guest(&["stop", &stopped.name]).await?;
    demo.annotate(host, json!({ DRAIN: "migrate" })).await?;
    let words = ["has 1 server and 0 open migrations", &*stopped.id];
    demo.node(host, "naming the guest that is stopped", |it| {
        says(it, DRAINED, "ServersStuck", &words)
    })
    .await?;
    for guest in &mut guests {
        assert_eq!(guest.host(&demo).await?, other, "{}", guest.name);
        guest.lives(&demo).await?;
    }
    demo.guest(&["delete", &stopped.name]).await?;
    demo.node(host, "drained", |it| holds(it, DRAINED)).await?;
    demo.annotate(host, json!({ DRAIN: null })).await?;
    demo.node(host, "given back", |it| it.iter().all(|it| it.type_ != DRAINED)).await?;
    assert_eq!(demo.service(host).await?, Some(("enabled".to_owned(), String::new())));
    Ok(())
}
