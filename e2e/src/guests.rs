//! Real guests on the demo's hosts with networks, and what neutron and OVN have of a host.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use serde_json::{Value, json};

use crate::demo::Demo;

/// The hosts between which guests move: those of the first cell.
pub const HOSTS: [&str; 2] = ["edpm-compute-0", "edpm-compute-3"];
/// The timeout until a guest has booted, or counts on, without KVM and on a busy machine.
const BOOT: Duration = Duration::from_mins(15);

/// A guest that runs, as it was seen last.
pub struct Guest {
    /// The name of its server.
    pub name: String,
    /// The UUID of its server.
    pub id: String,
    boot_id: String,
    count: u64,
}

impl Guest {
    /// Returns a guest that runs on a host: it is booted there, or that of an earlier test goes there.
    pub async fn on(demo: &Demo, name: &str, host: &str) -> Result<Self> {
        let found = demo.guest(&["show", name]).await?;
        let id = match found["host"].as_str() {
            None => demo.guest(&["boot", name, host]).await?["id"].clone(),
            Some(elsewhere) => {
                if elsewhere != host {
                    demo.guest(&["migrate", name, host]).await?;
                }
                found["id"].clone()
            }
        };
        let look = until(&format!("{name} counts"), BOOT, async || {
            let look = demo.guest(&["look", name]).await?;
            ensure!(look["boot_ids"].as_array().is_some_and(|it| it.len() == 1), "{look}");
            Ok(look)
        })
        .await?;
        let text = |it: &Value| it.as_str().map(str::to_owned).context("no text");
        Ok(Self {
            name: name.to_owned(),
            id: text(&id)?,
            boot_id: text(&look["boot_ids"][0])?,
            count: look["counts"]["last"].as_u64().context("it counts")?,
        })
    }

    /// Waits until it counts further than when it was seen last, and asserts that it has not booted
    /// since.
    pub async fn lives(&mut self, demo: &Demo) -> Result<()> {
        let look = until(&format!("{} counts on", self.name), BOOT, async || {
            let look = demo.guest(&["look", &self.name]).await?;
            let last = look["counts"]["last"].as_u64();
            let is_same = look["boot_ids"] == json!([self.boot_id]);
            // One that has booted begins from nothing: its counter is not awaited.
            ensure!(last.is_some() && (!is_same || last > Some(self.count)), "{look}");
            Ok(look)
        })
        .await?;
        ensure!(look["boot_ids"] == json!([self.boot_id]), "{} booted: {look}", self.name);
        ensure!(look["counts"]["goes_back"] == false, "{} counts backwards: {look}", self.name);
        self.count = look["counts"]["last"].as_u64().context("it counts")?;
        Ok(())
    }

    /// Migrates it live to a host, and returns what nova has of the migration.
    pub async fn migrate(&self, demo: &Demo, host: &str) -> Result<Value> {
        demo.guest(&["migrate", &self.name, host]).await
    }

    /// Returns how many of its live migrations nova has completed.
    pub async fn migrations(&self, demo: &Demo) -> Result<usize> {
        let path = format!("/os-migrations?instance_uuid={}&status=completed", self.id);
        let found = demo.nova(&path).await?;
        Ok(found["migrations"].as_array().context("a list of migrations")?.len())
    }

    /// Returns the host that nova has it on.
    pub async fn host(&self, demo: &Demo) -> Result<String> {
        let found = demo.guest(&["show", &self.name]).await?;
        found["host"].as_str().map(str::to_owned).with_context(|| format!("no host: {found}"))
    }
}

impl Demo {
    /// Runs the program `guest` of the lab's image, and returns the JSON that it prints.
    pub async fn guest(&self, arguments: &[&str]) -> Result<Value> {
        let said = self.exec("glance", &[&["guest"], arguments].concat()).await?;
        serde_json::from_str(&said).with_context(|| said)
    }

    /// Returns the programs of neutron's agents of a host.
    pub async fn agents(&self, host: &str) -> Result<BTreeSet<String>> {
        let path = format!("/v2.0/agents?host={host}");
        let said = self.exec("nova-api", &["openstack-get", "network", &path]).await?;
        let found: Value = serde_json::from_str(&said).with_context(|| said)?;
        let all = found["agents"].as_array().context("a list of agents")?;
        Ok(all.iter().filter_map(|it| it["binary"].as_str()).map(str::to_owned).collect())
    }

    /// Returns the hosts of which OVN's southbound database has a chassis.
    pub async fn chassis(&self) -> Result<BTreeSet<String>> {
        let list = ["ovn-sbctl", "--bare", "--columns=hostname", "list", "Chassis"];
        let said = self.exec("ovn-central", &list).await?;
        Ok(said.split_whitespace().map(str::to_owned).collect())
    }
}

/// Looks once a second until a look succeeds; at the deadline, fails with its last error.
///
/// For what no watch reports: nova's servers, consoles of guests, files of hosts.
pub async fn until<T>(
    what: &str,
    within: Duration,
    look: impl AsyncFn() -> Result<T>,
) -> Result<T> {
    let mut last = anyhow!("no look has ended");
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    let found = async {
        loop {
            tick.tick().await;
            match look().await {
                Ok(found) => return found,
                Err(error) => last = error,
            }
        }
    };
    let ended = tokio::time::timeout(within, found).await;
    ended.map_err(|_| last.context(format!("{what}: not within {} s", within.as_secs())))
}
