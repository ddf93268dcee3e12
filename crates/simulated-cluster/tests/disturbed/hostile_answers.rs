//! Cells and Ironics of one namespace that answer as much as they can, beside honest ones of another one.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use api::baremetal::BaremetalSet;
use api::nova::Cell;
use e2e::{Namespace, holds};
use serde_json::{Value, json};
use simulated_cluster::{Ironic, Operator};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::computes::{self, CELL, PASSWORD};
use crate::own::{Own, PATIENCE};

/// How many cells of the namespace answer so.
const CELLS: usize = 20;
/// How many sets of machines.
const SETS: usize = 6;
/// How long what is counted as text of a name may be.
const NAME: usize = 255;
/// The Secret with the credentials of the honest Ironic.
const IRONIC: &str = "ironic";
/// The machine of the honest Ironic, which is also its resource class.
const MACHINE: &str = "rack-u1";

/// A Keystone, a nova and an Ironic at one address, each of whose answers is as large as is read.
struct Hostile {
    address: SocketAddr,
    /// How many lists of hypervisors and of machines were sent.
    sent: watch::Receiver<[usize; 2]>,
}

/// The bodies of long answers, which all requests share.
struct Bodies {
    catalog: String,
    services: String,
    hypervisors: [String; 2],
    machines: [String; 2],
}

/// Returns a text of `n` bytes that begins with a number.
fn padded(number: usize, n: usize) -> String {
    format!("{number:x<n$}")
}

fn joined(numbers: std::ops::Range<usize>, entry: impl Fn(usize) -> String) -> String {
    numbers.map(entry).collect::<Vec<_>>().join(",")
}

impl Bodies {
    fn of(address: SocketAddr) -> Self {
        let endpoint = |region: &str| {
            format!(
                r#"{{"interface": "public", "region_id": "{region}", "url": "http://{address}/v2.1"}}"#
            )
        };
        let regions = joined(0..8_000, |it| endpoint(&padded(it, 20)));
        let catalog = format!(
            r#"{{"token": {{"expires_at": "2999-01-01T00:00:00.000000Z", "catalog": [
                {{"type": "compute", "endpoints": [{}, {regions}]}}]}}}}"#,
            endpoint("regionOne")
        );
        let service = |it| {
            let (host, reason) = (padded(it, NAME), padded(0, NAME));
            format!(
                r#"{{"id": "{it:08x}", "host": "{host}", "status": "disabled", "state": "up",
                    "disabled_reason": "{reason}"}}"#
            )
        };
        let hypervisor = |it| {
            let (id, name) = (format!("{it:064x}"), padded(it, NAME));
            format!(
                r#"{{"id": "{id}", "hypervisor_hostname": "{name}", "service": {{"host": "{name}"}}}}"#
            )
        };
        let page = |of| format!(r#"{{"hypervisors": [{}]}}"#, joined(of, hypervisor));
        let tree = "{\"\":0},".repeat(22_000);
        let machines = |uuid, next| {
            format!(r#"{{"nodes": [{{"uuid": "{uuid}", "extra": {{"a": [{tree}0]}}}}]{next}}}"#)
        };
        Self {
            catalog,
            services: format!(r#"{{"services": [{}]}}"#, joined(0..13_000, service)),
            hypervisors: [page(0..10_000), page(10_000..20_000)],
            machines: [machines("a", r#", "next": "x""#), machines("b", "")],
        }
    }

    /// Returns the head and the body for a request, and which list it is of.
    fn answer(&self, line: &str) -> (&'static str, &str, Option<usize>) {
        const NOVA: &str = "OpenStack-API-Version: compute 2.69\r\n";
        const VERSIONS: &str = r#"{"version": {"version": "2.100", "min_version": "2.1"},
            "default_version": {"version": "1.115", "min_version": "1.1"}}"#;
        let [first, second] = &self.hypervisors;
        if line.contains("/auth/tokens") {
            ("X-Subject-Token: t\r\n", &self.catalog, None)
        } else if line.contains("/os-services") {
            (NOVA, &self.services, None)
        } else if line.contains("/os-hypervisors") {
            let page = match line.split_once("marker=") {
                None => first,
                Some((_, marker)) if marker.starts_with(&format!("{:064x}", 9_999)) => second,
                Some(_) => r#"{"hypervisors": []}"#,
            };
            (NOVA, page, Some(0))
        } else if line.contains("/v1/nodes") {
            let [first, second] = &self.machines;
            ("", if line.contains("marker=") { second } else { first }, Some(1))
        } else {
            ("", VERSIONS, None)
        }
    }
}

impl Hostile {
    async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (bodies, (counts, sent)) = (Arc::new(Bodies::of(address)), watch::channel([0, 0]));
        let counts = Arc::new(counts);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (bodies, counts) = (Arc::clone(&bodies), Arc::clone(&counts));
                tokio::spawn(async move { serve(stream, &bodies, &counts).await });
            }
        });
        Ok(Self { address, sent })
    }

    /// Waits until three more pages were sent for each cell and each set.
    async fn sends(&self) -> Result<()> {
        let mut sent = self.sent.clone();
        let [hypervisors, machines] = *sent.borrow_and_update();
        let goal = [hypervisors + 3 * CELLS, machines + 3 * SETS];
        let is_there = |it: &[usize; 2]| it.iter().zip(goal).all(|(n, goal)| *n >= goal);
        let waited = tokio::time::timeout(PATIENCE, sent.wait_for(is_there)).await;
        waited.with_context(|| format!("{:?} of {goal:?} lists", self.sent.borrow()))??;
        Ok(())
    }
}

/// Answers one request.
async fn serve(
    mut stream: TcpStream,
    bodies: &Bodies,
    counts: &watch::Sender<[usize; 2]>,
) -> Result<()> {
    let mut text = vec![0; 4096];
    let n = stream.read(&mut text).await?;
    let text = String::from_utf8_lossy(&text[..n]).into_owned();
    let (headers, body, list) = bodies.answer(text.lines().next().unwrap_or_default());
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    if let Some(list) = list {
        counts.send_modify(|it| it[list] += 1);
    }
    // The client closes the connection.
    let _ = stream.read(&mut [0; 64]).await;
    Ok(())
}

/// Creates a cell whose Keystone is the hostile server; another password is another reading.
async fn hostile_cell(ns: &Namespace, server: &Hostile, number: usize) -> Result<()> {
    let (name, bus) = (format!("hostile-{number}"), format!("hostile-{number}-transport"));
    ns.secret(&name, &[("ServicePassword", &name)]).await?;
    ns.secret(&bus, &[("transport_url", "rabbit://nova:p@127.0.0.1:1/v")]).await?;
    let spec = json!({
        "cellName": name, "secret": name, "cellMessageBusSecretName": bus,
        "keystoneAuthURL": format!("http://{}", server.address),
        "cellDatabaseHostname": "192.0.2.30", "conductorServiceTemplate": {},
        "noVNCProxyServiceTemplate": {}, "serviceAccount": "nova",
    });
    ns.create::<Cell>(&name, spec).await.map(drop)
}

/// Creates a set of one host on a machine of an Ironic.
async fn set(ns: &Namespace, name: &str, endpoint: &str, secret: &str) -> Result<()> {
    let spec = json!({
        "provisioner": "ironic",
        "ironic": {
            "endpoint": endpoint, "authentication": "http_basic", "secret": secret,
            "machine": { "resourceClass": MACHINE }, "provide": true,
        },
        "deploymentSSHSecret": "keys",
        "ctlplaneInterface": "eth0",
        "baremetalHosts": { "a": { "ctlPlaneIP": "192.0.2.202/24" } },
    });
    ns.create::<BaremetalSet>(name, spec).await.map(drop)
}

/// Lets the operator look at all sets again and again.
async fn wake(ns: Namespace) -> Result<()> {
    for number in 0.. {
        for set in 0..SETS {
            let look = number.to_string();
            ns.annotate::<BaremetalSet>(&format!("set-{set}"), "example.org/look", look).await?;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}

/// Returns the most memory that an operator's process ever had, in bytes.
fn peak(own: &Own, operator: Operator) -> Result<usize> {
    let status = fs::read_to_string(format!("/proc/{}/status", own.sim.operators.pid(operator)?))?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).context("no VmHWM")?;
    let kib: usize = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib << 10)
}

/// Returns the limit of memory that the chart has for an operator, in bytes.
fn limit(own: &Own, operator: Operator) -> Result<usize> {
    let deployments = own.sim.rendered("Deployment");
    let of_operator = |it: &&Value| it["metadata"]["name"] == operator.name();
    let deployment = deployments.iter().find(of_operator).context("no Deployment")?;
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let memory = container["resources"]["limits"]["memory"].as_str().context("no limit")?;
    let mib: usize = memory.strip_suffix("Mi").context("not in Mi")?.parse()?;
    Ok(mib << 20)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_answer_as_much_as_they_can_end_no_operator_and_hold_no_other_namespace_back()
-> Result<()> {
    let values = ["nova.api.enabled=true", "nova.api.interval=1"];
    let own = Own::start_with("honest", &values).await?;
    own.sim.keystone.admit("nova", PASSWORD);
    let server = Hostile::start().await?;
    let hostile = Namespace::of(own.sim.client.clone(), "hostile").await?;
    hostile.secret("keys", &[("authorized_keys", "ssh-ed25519 AAAA")]).await?;
    for number in 0..CELLS {
        hostile_cell(&hostile, &server, number).await?;
    }
    for number in 0..SETS {
        let secret = format!("ironic-{number}");
        hostile.secret(&secret, &[("username", "u"), ("password", &secret)]).await?;
        let endpoint = format!("http://{}", server.address);
        set(&hostile, &format!("set-{number}"), &endpoint, &secret).await?;
    }
    let woken = tokio::spawn(wake(hostile));
    server.sends().await?;

    let broker = &own.sim.brokers[0];
    computes::cell_at(&own, &own.sim, (CELL, "transport"), broker, &[]).await?;
    let is_read =
        |it: &Cell| it.status.as_ref().is_some_and(|it| holds(&it.conditions, "NovaAPIReady"));
    own.wait::<Cell>(CELL, "read", PATIENCE, is_read).await?;
    let ironic = Ironic::start().await?;
    ironic.enroll(MACHINE, json!({}))?;
    own.secret(IRONIC, &Ironic::secret()).await?;
    own.secret("keys", &[("authorized_keys", "ssh-ed25519 AAAA")]).await?;
    set(&own, "metal", &ironic.endpoint(), IRONIC).await?;
    own.good::<BaremetalSet>("metal", &["OpenStackBaremetalSetProvServerReady"], PATIENCE).await?;
    server.sends().await?;

    own.sim.operators.check()?;
    ensure!(!woken.is_finished(), "{:?}", woken.await);
    woken.abort();
    for operator in [Operator::Nova, Operator::DataPlane] {
        let (peak, limit) = (peak(&own, operator)?, limit(&own, operator)?);
        let mib = peak >> 20;
        println!("{} had at most {mib} MiB", operator.name());
        ensure!(peak < limit, "{} had {mib} MiB of {}", operator.name(), limit >> 20);
    }
    Ok(())
}
