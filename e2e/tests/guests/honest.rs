//! The lab's nova and neutron move guests as the fake of the simulated cluster does.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use api::nova::Cell;
use e2e::cells::{CELL, demo_value};
use e2e::demo::Demo;
use e2e::guests::{Guest, HOSTS, until};
use e2e::honest::{self, NovaStage};

use crate::{Stage, stage};

/// The guest of the script.
const GUEST: &str = "t-honest";
/// The timeout until nova or neutron is as a stage has it.
const WITHIN: Duration = Duration::from_mins(10);

/// The lab's nova and neutron.
struct Lab<'a>(&'a Demo);

impl Lab<'_> {
    /// Waits until the guest's last migration has a status.
    async fn migration(&self, status: &str) -> Result<()> {
        let found = self.0.guest(&["show", GUEST]).await?;
        let id = found["id"].as_str().context("the guest has an id")?;
        let path = format!("/os-migrations?instance_uuid={id}&limit=1");
        until(&format!("a migration that is {status}"), WITHIN, async || {
            let found = self.0.nova(&path).await?;
            ensure!(found["migrations"][0]["status"] == status, "{found}");
            Ok(())
        })
        .await
    }

    /// Waits until no task of the guest is left.
    async fn at_rest(&self) -> Result<()> {
        until("a guest without a task", WITHIN, async || {
            let found = self.0.guest(&["show", GUEST]).await?;
            ensure!(found["task_state"].is_null(), "{found}");
            Ok(())
        })
        .await
    }
}

impl NovaStage for Lab<'_> {
    async fn set(&mut self, stage: &str) -> Result<()> {
        match stage {
            "nothing" => {
                self.0.guest(&["delete", GUEST]).await?;
                // A script that failed may have disabled it.
                self.0.guest(&["enable", HOSTS[0]]).await.map(drop)
            }
            "guest" => Guest::on(self.0, GUEST, HOSTS[0]).await.map(drop),
            "agents" => {
                until("both agents", WITHIN, async || {
                    let found = self.0.agents(HOSTS[0]).await?;
                    ensure!(found.len() == 2, "{found:?}");
                    Ok(())
                })
                .await
            }
            "moving" => self.migration("running").await,
            "moved" => {
                self.migration("completed").await?;
                self.at_rest().await
            }
            "refused" => {
                self.migration("error").await?;
                self.at_rest().await
            }
            "stopped" => self.0.guest(&["stop", GUEST]).await.map(drop),
            "started" => self.0.guest(&["start", GUEST]).await.map(drop),
            other => bail!("no such stage: {other}"),
        }
    }
}

/// Writes `guests_answers.json` anew instead, where that variable is set.
#[tokio::test]
async fn the_real_nova_and_neutron_answer_the_script_that_the_played_ones_answer() -> Result<()> {
    let Stage { demo, _lock } = stage().await?;
    let url = demo.ns.api::<Cell>().get(CELL).await?.spec.keystone_auth_url;
    let password = demo_value(&demo.ns, CELL, "ServicePassword").await?;
    let lab = &mut Lab(&demo);
    if std::env::var_os("NOVA_ANSWERS_WRITE").is_some() {
        return honest::write_nova_answers(honest::GUESTS, &url, &password, lab).await;
    }
    honest::nova(honest::GUESTS, &url, &password, lab).await
}
