//! An option is rolled out, and guests leave each host before.

use anyhow::Result;
use e2e::demo::Demo;
use e2e::guests::{Guest, HOSTS};
use serde_json::{Value, json};

use crate::{Stage, change_role, stage};

/// What the role says of its rollouts.
fn rollouts(drain_before: Option<&str>, max_unavailable: &Value) -> Value {
    json!({
        "metadata": { "annotations": { "nova.openstack.org/drain-before": drain_before } },
        "spec": { "deployStrategy": { "maxUnavailable": max_unavailable } },
    })
}

/// Returns how many live migrations of the guests nova has completed.
async fn migrations(demo: &Demo, guests: &[Guest]) -> Result<usize> {
    let mut completed = 0;
    for guest in guests {
        completed += guest.migrations(demo).await?;
    }
    Ok(completed)
}

#[tokio::test]
async fn an_option_comes_to_both_hosts_and_no_guest_is_lost() -> Result<()> {
    let Stage { demo, _lock } = stage().await?;
    let mut guests =
        [Guest::on(&demo, "t-a", HOSTS[0]).await?, Guest::on(&demo, "t-b", HOSTS[1]).await?];
    let before = migrations(&demo, &guests).await?;
    let options = demo.options(HOSTS[0]).await?;
    let default = demo.logged(HOSTS[0], "max_concurrent_builds").await?;
    assert_ne!(default, "7");
    // One host at a time: the other one takes the guests.
    change_role(&demo, rollouts(Some("true"), &json!(1))).await?;
    for host in HOSTS {
        demo.configure(host, &format!("{options}[DEFAULT]\nmax_concurrent_builds = 7\n")).await?;
    }
    for host in HOSTS {
        demo.settled_on(host).await?;
        assert_eq!(demo.logged(host, "max_concurrent_builds").await?, "7", "{host}");
    }
    // One guest left the first host; both left the other one, and are together since.
    assert_eq!(migrations(&demo, &guests).await?, before + 3);
    assert_eq!(guests[0].host(&demo).await?, guests[1].host(&demo).await?);
    for guest in &mut guests {
        guest.lives(&demo).await?;
    }
    change_role(&demo, rollouts(None, &json!("100%"))).await?;
    for host in HOSTS {
        demo.configure(host, &options).await?;
    }
    for host in HOSTS {
        demo.settled_on(host).await?;
        assert_eq!(demo.service(host).await?, Some(("enabled".to_owned(), String::new())));
    }
    for guest in &mut guests {
        guest.lives(&demo).await?;
    }
    Ok(())
}
