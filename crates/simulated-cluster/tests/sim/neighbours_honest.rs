//! The fake message bus, Keystone and nova answer as the lab's real ones do.

use anyhow::{Context as _, Result, bail};
use e2e::honest::{self, Bus, CONSUMER, NovaStage, Script};
use simulated_cluster::{Broker, Keystone, Nova};

/// A fake nova, with the servers that the script has booted.
struct Stage {
    nova: Nova,
    servers: Vec<String>,
}

impl NovaStage for Stage {
    async fn set(&mut self, stage: &str) -> Result<()> {
        let (nova, cell) = (&self.nova, "nova-cell1");
        match stage {
            "hosts" => {
                nova.register("honest-0", cell);
                nova.register("honest-1", cell);
                nova.report("honest-1", false);
            }
            "unmapped" | "mapped" => nova.map("honest-0", stage == "mapped")?,
            "servers" => {
                for name in ["honest-a", "honest-b"] {
                    self.servers.push(nova.boot(name, "honest-1")?);
                }
            }
            "lists-fail" | "lists-work" => nova.fail_lists_of_cell(cell, stage == "lists-fail"),
            "no-servers" => self.servers.iter().for_each(|it| nova.delete_server(it)),
            "share" => nova.allocate(CONSUMER, "honest-0")?,
            "guest" => {
                for host in ["edpm-compute-0", "edpm-compute-3"] {
                    nova.register(host, cell);
                    nova.add_agent(host, "ovn-controller");
                    nova.add_agent(host, "neutron-ovn-metadata-agent");
                }
                nova.hold_migrations(true);
                self.servers.push(nova.boot("t-honest", "edpm-compute-0")?);
            }
            "stopped" => nova.set_vm_state(&self.servers[0], "stopped")?,
            "started" => nova.set_vm_state(&self.servers[0], "active")?,
            "moved" => nova.finish_migrations(),
            "nothing" | "agents" | "moving" | "refused" => {}
            other => bail!("no such stage: {other}"),
        }
        Ok(())
    }
}

#[tokio::test]
async fn the_played_nova_answers_the_script_that_the_real_one_answers() -> Result<()> {
    answers(honest::RECORDS).await
}

#[tokio::test]
async fn the_played_nova_and_neutron_move_guests_as_the_real_ones_do() -> Result<()> {
    answers(honest::GUESTS).await
}

/// Has a fake nova answer a script.
async fn answers(script: Script) -> Result<()> {
    let keystone = Keystone::start().await?;
    keystone.admit("nova", "secret of nova");
    let nova = Nova::start(&keystone, "regionOne").await?;
    let stage = &mut Stage { nova, servers: vec![] };
    honest::nova(script, &keystone.url(), "secret of nova", stage).await
}

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
