//! Each fault of nova's API, and of what it reports of hosts, as `kubectl describe` shows it on the
//! object that a user wrote.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use api::dataplane::Node;
use e2e::diagnosis::{self, READINGS};
use e2e::faults::Fault;
use e2e::faults::nova::{API, HOSTS};
use e2e::{Namespace, cluster};
use k8s_openapi::api::core::v1::Secret;
use kube::api::PropagationPolicy;
use parking_lot::Mutex;
use serde_json::json;
use simulated_cluster::{Broker, Nova, NovaFault};

use super::{DRAIN, cell_reaches, drain, is_up, start};
use crate::computes::{self, BUS, CELL};
use crate::ends::{delete, held};
use crate::own::{Own, PATIENCE};

/// The host of each fault, which has a nova of its own.
const HOST: &str = "compute-0";

/// The world of each fault: a region of its own, so that each nova fails alone.
struct Regions {
    own: Own,
    novas: Mutex<BTreeMap<&'static str, Nova>>,
}

#[tokio::test]
async fn faults_of_nova_are_described_on_the_users_object() -> Result<()> {
    let own = start("api-described").await?;
    cluster::choose(own.sim.kubeconfig.clone(), own.sim.bin.clone(), vec![]);
    let regions = Regions { own, novas: <_>::default() };
    let inject = async |ns: &Namespace, fault: &Fault| regions.inject(ns, fault).await;
    let of_api = async |ns: &Namespace, fault: &Fault| regions.make(ns, fault, false).await;
    let of_hosts = async |ns: &Namespace, fault: &Fault| regions.make(ns, fault, true).await;
    // Each half leaves its transcripts whatever the other one shows.
    let api = diagnosis::judge_within(&READINGS, API, of_api, inject);
    let hosts = diagnosis::judge_within(&READINGS, HOSTS, of_hosts, inject);
    let (api, hosts) = tokio::join!(api, hosts);
    hosts.and(api)?;
    regions.own.done()
}

impl Regions {
    /// Creates a cell whose nova answers, and with `with_host` a compute that is up in it.
    async fn make(&self, ns: &Namespace, fault: &Fault, with_host: bool) -> Result<()> {
        let sim = &self.own.sim;
        let nova = sim.nova_of(fault.name).await?;
        self.novas.lock().insert(fault.name, nova.clone());
        let broker = Broker::start(fault.name, "first", fault.name).await?;
        let region = [("RegionName", fault.name)];
        computes::cell_at(ns, sim, (CELL, BUS), &broker, &region).await?;
        cell_reaches(ns, CELL, "NovaAPIReady", "Answered", &[]).await?;
        if with_host {
            let host = sim.player.host(HOST, &address(fault)?);
            computes::deploy(ns, &[&host]).await?;
            is_up(ns, &host).await?;
        }
        Ok(())
    }

    async fn inject(&self, ns: &Namespace, fault: &Fault) -> Result<()> {
        let nova = self.novas.lock().get(fault.name).cloned().context("it has no nova")?;
        let fails = |status: u16| nova.fail("GET /v2.1/os-", NovaFault::Status(status));
        match fault.name {
            "nova-refuses-token" => fails(401),
            "nova-role-missing" => fails(403),
            "nova-conflict" => fails(409),
            "nova-throttles" => fails(429),
            "nova-fails" => fails(500),
            "nova-unavailable" => fails(503),
            "nova-garbage" => nova.fail("GET /v2.1/os-", NovaFault::Garbage),
            "nova-stopped" => nova.stop(),
            "nova-region-unknown" => {
                let elsewhere = json!({ "stringData": { "RegionName": "nowhere" } });
                ns.merge::<Secret>(CELL, elsewhere).await?;
            }
            "service-down" => nova.report(HOST, false),
            "service-forced-down" => {
                let path = format!("/v2.1/os-services/{}", service(&nova)?);
                nova.ask("PUT", &path, Some(json!({ "forced_down": true })))?;
            }
            "service-deleted" => {
                nova.ask("DELETE", &format!("/v2.1/os-services/{}", service(&nova)?), None)?;
            }
            _ => return drain_or_remove(ns, fault, &nova).await,
        }
        Ok(())
    }
}

/// Returns an address that no other fault uses.
fn address(fault: &Fault) -> Result<String> {
    let at = HOSTS.iter().position(|it| it.name == fault.name).context("not of a host")?;
    Ok(format!("192.0.2.{}", 10 + at))
}

/// Injects the faults of hosts that are drained or removed.
async fn drain_or_remove(ns: &Namespace, fault: &Fault, nova: &Nova) -> Result<()> {
    match fault.name {
        "drain-invalid" => drain(ns, HOST, json!("evacuate")).await,
        "max-migrations-invalid" => {
            let annotations = json!({ DRAIN: "migrate", "nova.openstack.org/max-migrations": "0" });
            let change = json!({ "metadata": { "annotations": annotations } });
            ns.merge::<Node>(HOST, change).await.map(drop)
        }
        "drain-with-stopped-server" => {
            nova.set_vm_state(&nova.boot("one", HOST)?, "stopped")?;
            drain(ns, HOST, json!("migrate")).await
        }
        "drain-refused" => {
            nova.boot("one", HOST)?;
            nova.fail("POST /v2.1/servers/", NovaFault::Status(409));
            drain(ns, HOST, json!("migrate")).await
        }
        "removal-service-kept" => refused(ns, nova, "DELETE /v2.1/os-services/").await,
        "removal-provider-kept" => {
            // A share that no server accounts for keeps the provider when nova deletes the service.
            nova.allocate("00000000-0000-4000-8000-00000000000a", HOST)?;
            refused(ns, nova, "DELETE /placement/resource_providers/").await
        }
        other => bail!("{other} is not injected"),
    }
}

/// Deletes the node, and waits until the step of its removal that is refused.
async fn refused(ns: &Namespace, nova: &Nova, line: &str) -> Result<()> {
    held(ns, HOST).await?;
    nova.fail(line, NovaFault::Status(409));
    delete(ns, HOST, PropagationPolicy::Background).await?;
    nova.wait_for_total(line, 1, PATIENCE).await
}

/// Returns the UUID of the host's service.
fn service(nova: &Nova) -> Result<String> {
    let found = nova.ask("GET", "/v2.1/os-services", None)?;
    let id = found["services"][0]["id"].as_str();
    id.map(str::to_owned).with_context(|| format!("no service: {found}"))
}
