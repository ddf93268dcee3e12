//! Signals to the operators' processes, which run on the machine of the tests when the lab does.

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::coordination::v1::Lease;
use kube::runtime::wait::await_condition;
use kube::{Api, Client};

use crate::installation::NAMESPACE;
use crate::run;

/// How long a successor may take: the kubelet's pause, and the time for which the Lease outlives
/// whom it names.
const SUCCESSION: Duration = Duration::from_mins(2);

/// An operator's process that was stopped where it is; it dies with this.
#[must_use = "a stopped operator serves nobody: kill it"]
pub struct Stopped {
    pid: String,
    killed: Killed,
}

/// An operator whose process is gone and that nobody has replaced yet.
#[must_use = "the next test needs the operator: wait until it is back"]
pub struct Killed {
    leases: Api<Lease>,
    name: String,
    holder: Option<String>,
}

impl Stopped {
    /// Kills the process without letting it run again.
    pub async fn kill(self) -> Result<Killed> {
        signal("KILL", &self.pid).await?;
        Ok(self.killed)
    }
}

impl Killed {
    async fn leading(client: &Client, operator: &str) -> Result<Self> {
        let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
        let name = format!("edpm-{operator}");
        let holder = holder(&leases.get(&name).await?).map(str::to_owned);
        Ok(Self { leases, name, holder })
    }

    /// Waits until another process leads.
    pub async fn is_back(self) -> Result<()> {
        let is_another = |it: Option<&Lease>| {
            it.and_then(holder).is_some_and(|it| Some(it) != self.holder.as_deref())
        };
        let waiting = await_condition(self.leases.clone(), &self.name, is_another);
        let waited = tokio::time::timeout(SUCCESSION, waiting).await;
        waited.with_context(|| format!("nobody took over Lease {}", self.name))??;
        Ok(())
    }
}

fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|it| !it.is_empty())
}

/// Kills an operator's process at once; Kubernetes starts another one.
pub async fn kill(client: &Client, name: &str) -> Result<Killed> {
    let (pid, killed) = (pid(name).await?, Killed::leading(client, name).await?);
    signal("KILL", &pid).await?;
    Ok(killed)
}

/// Stops an operator's process where it is, as a machine that hangs would.
pub async fn stop(client: &Client, name: &str) -> Result<Stopped> {
    let (pid, killed) = (pid(name).await?, Killed::leading(client, name).await?);
    signal("STOP", &pid).await?;
    Ok(Stopped { pid, killed })
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
