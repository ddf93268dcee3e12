//! The lab's RabbitMQ and Keystone answer like the fakes of the simulated cluster.

use anyhow::Result;
use api::nova::Cell;
use e2e::cells::{BUS, CELL, demo_value};
use e2e::honest::{self, Bus};
use e2e::{Namespace, cluster};

#[tokio::test]
async fn the_real_neighbours_answer_the_script_that_the_played_ones_answer() -> Result<()> {
    let ns = Namespace::existing(&cluster::client().await?, "openstack");
    honest::broker(&Bus::of(&demo_value(&ns, BUS, "transport_url").await?)?).await?;
    let url = ns.api::<Cell>().get(CELL).await?.spec.keystone_auth_url;
    let password = demo_value(&ns, CELL, "ServicePassword").await?;
    honest::keystone(&url, "nova", &password).await
}
