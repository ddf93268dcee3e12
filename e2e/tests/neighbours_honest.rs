//! The lab's RabbitMQ, Keystone, nova and placement answer like the fakes of the simulated cluster.

use anyhow::Result;
use api::nova::Cell;
use e2e::cells::{BUS, CELL, demo_value};
use e2e::demo::Demo;
use e2e::honest::{self, Bus, NovaStage, STAGE_PROGRAM};
use e2e::{Namespace, cluster};

/// The lab's nova, where the script has hosts of its own in the second cell.
struct Stage(Demo);

impl NovaStage for Stage {
    async fn set(&mut self, stage: &str) -> Result<()> {
        self.0.python(STAGE_PROGRAM, &["cell2", stage]).await
    }
}

/// Writes `nova_answers.json` anew instead, where that variable is set.
#[tokio::test]
async fn the_real_nova_answers_the_script_that_the_played_one_answers() -> Result<()> {
    let ns = Namespace::existing(&cluster::client().await?, "openstack");
    let url = ns.api::<Cell>().get(CELL).await?.spec.keystone_auth_url;
    let password = demo_value(&ns, CELL, "ServicePassword").await?;
    let stage = &mut Stage(Demo { ns });
    if std::env::var_os("NOVA_ANSWERS_WRITE").is_some() {
        return honest::write_nova_answers(honest::RECORDS, &url, &password, stage).await;
    }
    honest::nova(honest::RECORDS, &url, &password, stage).await
}

#[tokio::test]
async fn the_real_neighbours_answer_the_script_that_the_played_ones_answer() -> Result<()> {
    let ns = Namespace::existing(&cluster::client().await?, "openstack");
    honest::broker(&Bus::of(&demo_value(&ns, BUS, "transport_url").await?)?).await?;
    let url = ns.api::<Cell>().get(CELL).await?.spec.keystone_auth_url;
    let password = demo_value(&ns, CELL, "ServicePassword").await?;
    honest::keystone(&url, "nova", &password).await
}
