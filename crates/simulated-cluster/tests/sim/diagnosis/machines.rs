//! Faults between hosts and machines: fake Ironics of these tests alone stand in for a real one's
//! failures.

use std::time::Duration;

use anyhow::{Result, bail};
use api::baremetal::BaremetalSet;
use api::dataplane::{Node, Role};
use e2e::diagnosis::{self, IDLE, MACHINES, PATIENCE};
use e2e::faults::{Fault, machines};
use e2e::{Namespace, cluster};
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use simulated_cluster::Ironic;

use super::scene::World;
use crate::metal;
use crate::world::simulation;

/// The role, and the set that it creates.
const ROLE: &str = "compute";
/// The Secret with the public keys of the hosts.
const KEYS: &str = "machine-keys";
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGzp0V5eeyEtRfB9K6gGXv6ooeyTVhGqvHLVIWNQ5vJv";
const ADDRESS: &str = "192.168.123.200";
/// The addresses that transcripts show instead of the Ironics' real ones.
const SOUND_ADDRESS: &str = "10.96.10.61:6385";
const STORELESS_ADDRESS: &str = "10.96.10.62:6385";
const OLD_ADDRESS: &str = "10.96.10.63:6385";
const AWAY_ADDRESS: &str = "10.96.10.64:6385";
/// The machine that another client takes, the one taken while it runs, the one that is deleted, and
/// the one whose write Ironic rejects.
const TAKEN: &str = "machine-taken";
const TAKEN_OVER: &str = "machine-taken-over";
const DELETED: &str = "machine-deleted";
const REFUSED: &str = "machine-refused";
/// Machines of the Ironic without faults, each with a resource class of its own name.
const SOUND: [&str; 4] = ["no-machine-fits", TAKEN, "too-few-machines", "machine-in-maintenance"];
/// Time in which an operator detects a change without notification: Ironic is polled every minute.
const ASKED: Duration = Duration::from_secs(75);
/// Time limit for cleaning and deploying a machine.
const PROVISIONED: Duration = Duration::from_mins(10);
/// The instance UUID of a foreign owner.
const SOMEBODY: &str = "00000000-0000-4000-8000-00000000000e";

#[tokio::test]
async fn what_goes_wrong_with_machines_is_told_on_the_node_and_on_the_set() -> Result<()> {
    simulation().await?;
    let ironics = Ironics::start().await?;
    let before = async |ns: &Namespace, fault: &Fault| ironics.before(ns, fault).await;
    let fate = async |ns: &Namespace, fault: &Fault| ironics.fate(ns, fault).await;
    let ask = async |ns: &Namespace, fault: &Fault| ask(ns, fault, &ironics.old).await;
    // A set that is not enqueued is reconciled within a minute, so this fault is started first.
    let (fates, last) = machines::FATES.split_at(machines::FATES.len() - 1);
    let slow = diagnosis::judge_within(&IDLE, last, &before, &fate);
    let fates = diagnosis::judge_within(&MACHINES, fates, &before, &fate);
    let asked = diagnosis::judge_within(&MACHINES, machines::ASKED, &before, ask);
    let (slow, fates, asked) = tokio::join!(slow, fates, asked);
    let failed: Vec<String> = [slow, fates, asked]
        .into_iter()
        .filter_map(|it| Some(format!("{:#}", it.err()?)))
        .collect();
    if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("\n")) }
}

/// The Ironics of these tests.
struct Ironics {
    sound: Ironic,
    without_store: Ironic,
    old: Ironic,
    away: Ironic,
}

impl Ironics {
    async fn start() -> Result<Self> {
        let (sound, without_store) = (Ironic::start().await?, Ironic::start().await?);
        let (old, away) = (Ironic::start().await?, Ironic::start().await?);
        for (ironic, address) in [
            (&sound, SOUND_ADDRESS),
            (&without_store, STORELESS_ADDRESS),
            (&old, OLD_ADDRESS),
            (&away, AWAY_ADDRESS),
        ] {
            cluster::alias(ironic.endpoint().replace("http://", ""), address);
        }
        without_store.lose_store();
        old.speak("1.1", "1.31");
        for name in SOUND {
            sound.enroll(name, json!({}))?;
        }
        for name in ["too-few-machines", "machine-in-maintenance"] {
            brought(&sound, name, &[("manage", "manageable"), ("provide", "available")]).await?;
        }
        without_store.enroll("deploy-failed", json!({}))?;
        without_store.enroll("clean-failed", json!({ "deploy_interface": "ramdisk" }))?;
        without_store.enroll(REFUSED, json!({}))?;
        without_store.enroll(TAKEN_OVER, json!({}))?;
        brought(&without_store, TAKEN_OVER, &[("manage", "manageable")]).await?;
        let runs = json!({ "provision_state": "active", "power_state": "power on" });
        without_store.enroll(DELETED, runs)?;
        Ok(Self { sound, without_store, old, away })
    }

    /// Creates the world without the fault: a role that requests machines and gets an answer,
    /// mostly with a host.
    async fn before(&self, ns: &Namespace, fault: &Fault) -> Result<()> {
        let endpoint = match fault.name {
            "machine-template-invalid" => return World::default().make(ns).await,
            "ironic-away" => self.away.endpoint(),
            "deploy-failed" | "clean-failed" | DELETED | TAKEN_OVER | REFUSED => {
                self.without_store.endpoint()
            }
            _ => self.sound.endpoint(),
        };
        ns.secret("ironic", &Ironic::secret()).await?;
        ns.secret(KEYS, &[("authorized_keys", KEY)]).await?;
        let machine = match fault.name {
            "no-machine-fits" => json!({ "resourceClass": fault.name, "traits": ["CUSTOM_GPU"] }),
            "too-few-machines"
            | "machine-in-maintenance"
            | "deploy-failed"
            | "clean-failed"
            | DELETED
            | TAKEN_OVER
            | REFUSED => json!({ "resourceClass": fault.name }),
            TAKEN => json!({ "node": TAKEN }),
            // No machine has this resource class.
            _ => json!({ "resourceClass": "nobody" }),
        };
        let mut world = World::default();
        world.role["preProvisioned"] = json!(false);
        world.role["baremetalSetTemplate"] = template(&endpoint, &machine);
        world.make_role(ns).await?;
        match fault.name {
            "too-few-machines" | "machine-in-maintenance" | DELETED | TAKEN_OVER => {
                let adopted = [DELETED, TAKEN_OVER].into_iter().find(|it| *it == fault.name);
                node(ns, "n0", ADDRESS, adopted).await?;
                runs(ns).await
            }
            "machine-address-twice" => {
                node(ns, "n0", ADDRESS, None).await?;
                finds_none(ns).await
            }
            // An Event is created for a new reason, so the host is created with the fault.
            _ => Ok(()),
        }
    }

    /// Injects what happens to a machine or to its Ironic.
    async fn fate(&self, ns: &Namespace, fault: &Fault) -> Result<()> {
        match fault.name {
            TAKEN => {
                let patch = json!([{ "op": "add", "path": "/instance_uuid", "value": SOMEBODY }]);
                self.sound.ask("PATCH", &of(TAKEN, ""), Some(&patch))?;
                node(ns, "n0", ADDRESS, None).await
            }
            "no-machine-fits" => node(ns, "n0", ADDRESS, None).await,
            "too-few-machines" => node(ns, "n1", "192.168.123.201", None).await,
            "ironic-away" => {
                self.away.stop();
                node(ns, "n0", ADDRESS, None).await
            }
            "machine-in-maintenance" => {
                let reason = json!({ "reason": "disk 3 is broken" });
                self.sound.ask("PUT", &of(fault.name, "maintenance"), Some(&reason))?;
                let off = json!({ "target": "power off" });
                self.sound.ask("PUT", &of(fault.name, "states/power"), Some(&off))?;
                let is_off = |it: &Value| it["power_state"] == "power off";
                self.sound.wait(fault.name, "off", is_off).await?;
                metal::look(ns, ROLE, &self.sound).await
            }
            "deploy-failed" | "clean-failed" => {
                node(ns, "n0", ADDRESS, None).await?;
                let state = fault.name.replace('-', " ");
                let reached = self.without_store.reaches(fault.name, &state);
                metal::meanwhile(ns, ROLE, reached).await?;
                metal::look(ns, ROLE, &self.without_store).await
            }
            REFUSED => {
                let data = json!({ "links": [{ "id": "nic" }], "networks": [{ "link": "nic" }] });
                ns.secret("ramdisk", &[("networkData", &data.to_string())]).await?;
                let host = json!({
                    "ctlPlaneIP": format!("{ADDRESS}/24"),
                    "preprovisioningNetworkDataName": "ramdisk",
                });
                made(ns, "n0", ADDRESS, host).await
            }
            TAKEN_OVER => {
                let ironic = &self.without_store;
                let free = json!([{ "op": "remove", "path": "/instance_uuid" }]);
                let take = json!([{ "op": "add", "path": "/instance_uuid", "value": SOMEBODY }]);
                for patch in [free, take] {
                    ironic.ask("PATCH", &of(TAKEN_OVER, ""), Some(&patch))?;
                }
                metal::look(ns, ROLE, ironic).await
            }
            DELETED => {
                // A running machine can be deleted only in Ironic. The set is not enqueued: its
                // operator polls.
                let reason = json!({ "reason": "it burns" });
                let ironic = &self.without_store;
                ironic.ask("PUT", &of(DELETED, "maintenance"), Some(&reason))?;
                ironic.ask("DELETE", &of(DELETED, ""), None)?;
                let is_gone = |it: &BaremetalSet| {
                    let host = it.status.as_ref().and_then(|it| it.baremetal_hosts.get("n0"));
                    host.is_some_and(|it| it.provisioning_state == "gone")
                };
                ns.wait::<BaremetalSet>(ROLE, "asked for", ASKED, is_gone).await.map(drop)
            }
            other => bail!("nobody injects {other}"),
        }
    }
}

/// Brings a machine to the last of these states.
async fn brought(ironic: &Ironic, machine: &str, verbs: &[(&str, &str)]) -> Result<()> {
    for (verb, state) in verbs {
        ironic.provision(machine, verb)?;
        ironic.reaches(machine, state).await?;
    }
    Ok(())
}

/// Returns the path of a machine, or of a part of it.
fn of(machine: &str, part: &str) -> String {
    format!("/v1/nodes/{machine}/{part}").trim_end_matches('/').to_owned()
}

fn template(endpoint: &str, machine: &Value) -> Value {
    json!({
        "provisioner": "ironic",
        "ironic": {
            "endpoint": endpoint, "authentication": "http_basic", "secret": "ironic",
            "machine": machine, "provide": true, "deployAttempts": 1,
        },
        "deploymentSSHSecret": KEYS,
        "ctlplaneInterface": "eth0",
        "ctlplaneGateway": "192.168.123.1",
    })
}

/// Creates a host of the role, or one that adopts the named machine, which already runs.
async fn node(ns: &Namespace, name: &str, address: &str, adopted: Option<&str>) -> Result<()> {
    let mut host = json!({ "ctlPlaneIP": format!("{address}/24") });
    if let Some(machine) = adopted {
        host["adopt"] = true.into();
        host["machine"] = json!({ "node": machine });
    }
    made(ns, name, address, host).await
}

/// Creates a host of the role at an address, with its machine request.
async fn made(ns: &Namespace, name: &str, address: &str, host: Value) -> Result<()> {
    let spec = json!({
        "role": ROLE, "hostName": name, "ansibleHost": address, "baremetalHost": host,
    });
    ns.create::<Node>(name, spec).await.map(drop)
}

/// Waits until the host has its machine.
async fn runs(ns: &Namespace) -> Result<()> {
    let is_active = |it: &BaremetalSet| {
        let host = it.status.as_ref().and_then(|it| it.baremetal_hosts.get("n0"));
        host.is_some_and(|it| it.provisioning_state == "active")
    };
    let waited = ns.wait::<BaremetalSet>(ROLE, "on its machine", PROVISIONED, is_active);
    metal::meanwhile(ns, ROLE, waited).await.map(drop)
}

/// Waits until the host reports that there is no machine for it.
async fn finds_none(ns: &Namespace) -> Result<()> {
    ns.reports::<Node>("n0", "BaremetalReady", "ProvisioningFailed", &["enroll"], PATIENCE)
        .await
        .map(drop)
}

/// Changes the machine request of the role.
async fn template_changes(ns: &Namespace, change: Value) -> Result<()> {
    let change = json!({ "spec": { "baremetalSetTemplate": change } });
    ns.merge::<Role>(ROLE, change).await.map(drop)
}

/// Injects a user's mistake or removal, and creates the host that is affected.
async fn ask(ns: &Namespace, fault: &Fault, old: &Ironic) -> Result<()> {
    match fault.name {
        // The world already has a host.
        "machine-template-invalid" => mistake(ns, fault, old).await,
        "machine-address-wrong" => {
            made(ns, "n0", ADDRESS, json!({ "ctlPlaneIP": "192.168.123.0/24" })).await
        }
        "machine-address-missing" => made(ns, "n0", "n0.example.org", json!({})).await,
        "machine-address-twice" => {
            let host = json!({ "ctlPlaneIP": format!("{ADDRESS}/24") });
            made(ns, "n1", "192.168.123.201", host).await
        }
        _ => {
            mistake(ns, fault, old).await?;
            node(ns, "n0", ADDRESS, None).await
        }
    }
}

async fn mistake(ns: &Namespace, fault: &Fault, old: &Ironic) -> Result<()> {
    match fault.name {
        "machine-template-invalid" => {
            // A misspelt requirement: any machine would match.
            let machine = json!({ "resourceclass": "compute" });
            let ironic = json!({ "endpoint": "http://ironic", "machine": machine });
            let template = json!({ "ctlplaneInterface": "eth0", "ironic": ironic });
            let wanted = json!({ "preProvisioned": false, "baremetalSetTemplate": template });
            ns.merge::<Role>(ROLE, json!({ "spec": wanted })).await?;
        }
        "machine-secret-missing" => ns.remove::<Secret>(KEYS).await?,
        "machine-secret-of-ironic-missing" => ns.remove::<Secret>("ironic").await?,
        "machine-secret-without-key" => {
            let nothing = json!({ "data": { "authorized_keys": null } });
            ns.merge::<Secret>(KEYS, nothing).await?;
        }
        "machine-credentials-wrong" => {
            let wrong = json!({ "stringData": { "password": "another" } });
            ns.merge::<Secret>("ironic", wrong).await?;
        }
        "machine-gateway-outside" => {
            template_changes(ns, json!({ "ctlplaneGateway": "198.51.100.1" })).await?;
        }
        "machine-drive-too-large" => {
            let large = format!("#!/bin/sh\n# {}", "a".repeat(600_000));
            ns.secret("large", &[("userData", &large)]).await?;
            template_changes(ns, json!({ "userData": { "name": "large" } })).await?;
        }
        "machine-ironic-old" => {
            template_changes(ns, json!({ "ironic": { "endpoint": old.endpoint() } })).await?;
        }
        other => bail!("nobody injects {other}"),
    }
    Ok(())
}
