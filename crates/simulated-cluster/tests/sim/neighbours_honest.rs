//! The fake message bus and Keystone answer as the lab's real ones do.

use anyhow::{Context as _, Result};
use e2e::honest::{self, Bus};
use simulated_cluster::{Broker, Keystone};

#[tokio::test]
async fn the_played_neighbours_answer_the_script_that_the_real_ones_answer() -> Result<()> {
    let broker = Broker::start("nova-cell1", "secret", "nova-cell1").await?;
    honest::broker(&Bus::of(&broker.transport_url())?).await?;
    let keystone = Keystone::start().await?;
    keystone.admit("nova", "secret of nova");
    honest::keystone(&keystone.url(), "nova", "secret of nova").await
}

#[tokio::test]
async fn a_broker_that_is_stopped_refuses_connections_until_it_listens_again() -> Result<()> {
    let broker = Broker::start("nova-cell1", "secret", "nova-cell1").await?;
    let bus = Bus::of(&broker.transport_url())?;
    broker.stop().await;
    let refused = honest::broker(&bus).await.err().context("it answers")?;
    assert!(format!("{refused:#}").contains("Connection refused"), "{refused:#}");
    broker.listen().await?;
    honest::broker(&bus).await?;
    broker.set_password("another");
    assert!(honest::broker(&bus).await.is_err(), "the old password is let in");
    honest::broker(&Bus::of(&broker.transport_url())?).await
}
