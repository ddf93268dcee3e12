//! Signals to the operators' processes, which run on the machine of the tests when the lab does.

use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::run;

/// An operator's process that was stopped; it goes on, or dies, with this.
pub struct Stopped {
    pid: String,
}

impl Stopped {
    /// Kills the process without letting it run again.
    pub async fn kill(self) -> Result<()> {
        signal("KILL", &self.pid).await
    }
}

/// Kills an operator's process at once; Kubernetes starts another one.
pub async fn kill(name: &str) -> Result<()> {
    signal("KILL", &pid(name).await?).await
}

/// Stops an operator's process where it is, as a machine that hangs would.
pub async fn stop(name: &str) -> Result<Stopped> {
    let pid = pid(name).await?;
    signal("STOP", &pid).await?;
    Ok(Stopped { pid })
}

async fn signal(signal: &str, pid: &str) -> Result<()> {
    run("kill", &[&format!("-{signal}"), pid]).await.map(drop)
}

/// The process of an operator; one that was just killed has a successor soon.
async fn pid(name: &str) -> Result<String> {
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    let find = async {
        loop {
            tick.tick().await;
            // The kernel keeps 15 characters of a name; the full command line tells the rest.
            let found = run("pgrep", &["-f", &format!("^/usr/local/bin/{name}( |$)")])
                .await
                .unwrap_or_default();
            let pids: Vec<&str> = found.lines().collect();
            // None while a killed one is started again, two while another release goes.
            if let [pid] = pids[..] {
                return pid.to_owned();
            }
        }
    };
    tokio::time::timeout(Duration::from_mins(2), find)
        .await
        .with_context(|| format!("{name} does not run just once on this machine"))
}
