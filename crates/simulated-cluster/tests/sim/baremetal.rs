//! Hosts from empty machines and back: a fake Ironic deploys them, and the test's host answers once
//! its machine runs.

use std::time::Duration;

use anyhow::{Context as _, Result};
use api::baremetal::BaremetalSet;
use api::dataplane::{Deployment, HostState, Node, NodeSet, Role};
use e2e::journey::{self, ROLE, SERVICE, SSH_SECRET};
use e2e::{Namespace, says};
use k8s_openapi::api::events::v1::Event;
use serde_json::{Value, json};
use simulated_cluster::{Behaviour, Host, Ironic, Operator, Trouble};

use crate::journey::{deploy, trace};
use crate::metal;
use crate::world::World;

/// The machine, which is also the name of its own resource class.
const MACHINE: &str = "rack-u1";
const SET: &str = "metal";
/// The Secret with the credentials for Ironic.
const IRONIC: &str = "ironic";
/// The Secret with root's password, which must appear only in config drives.
const ROOT: &str = "root";
const PASSWORD: &str = "hunter2-of-the-drive";
const OTHER_PASSWORD: &str = "hunter3-of-the-drive";
/// The passwords as objects and logs would contain them: in plain text, encoded on their own, and
/// the beginning of a packed config drive.
const NOWHERE: [&str; 5] = [
    PASSWORD,
    OTHER_PASSWORD,
    "aHVudGVyMi1vZi10aGUtZHJpdmU=",
    "aHVudGVyMy1vZi10aGUtZHJpdmU=",
    PACKED,
];
/// How a packed drive begins.
const PACKED: &str = "H4sI";
/// The router of the hosts.
const GATEWAY: &str = "192.0.2.1";
/// A public key whose private key does not exist.
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGzp0V5eeyEtRfB9K6gGXv6ooeyTVhGqvHLVIWNQ5vJv";
/// The condition that reports the state of Ironic.
const SERVER: &str = "OpenStackBaremetalSetProvServerReady";
/// The condition that reports the state of the machines.
const PROVISIONED: &str = "OpenStackBaremetalSetBmhProvisioningReady";
/// Time limit for cleaning and deploying a machine.
const DEPLOYED: Duration = Duration::from_mins(10);
const RETURNED: Duration = Duration::from_mins(10);

/// Returns a machine request that only the test's machine matches.
fn template(ironic: &Ironic) -> Value {
    json!({
        "provisioner": "ironic",
        "ironic": {
            "endpoint": ironic.endpoint(),
            "authentication": "http_basic",
            "secret": IRONIC,
            "machine": { "resourceClass": MACHINE },
            "provide": true,
        },
        "deploymentSSHSecret": SSH_SECRET,
        "passwordSecret": { "name": ROOT },
        "ctlplaneInterface": "eth0",
    })
}

/// A host to be deployed, and the Ironic with its machine.
struct Metal {
    ironic: Ironic,
    host: Host,
}

impl Metal {
    async fn enroll(world: &World, host: &str) -> Result<Self> {
        let (ironic, host) = (Ironic::start().await?, world.sim.player.machine(host)?);
        ironic.enroll(MACHINE, json!({}))?;
        ironic.boots(MACHINE, &host)?;
        world.secret(IRONIC, &Ironic::secret()).await?;
        world.secret(ROOT, &[("NodeRootPassword", PASSWORD)]).await?;
        let (_, private) = &host.ssh_secret()[0];
        let content = [("ssh-privatekey", private.as_str()), ("authorized_keys", KEY)];
        world.secret(SSH_SECRET, &content).await?;
        Ok(Self { ironic, host })
    }

    /// Asserts that the machine was released and no longer runs.
    async fn returned(&self) -> Result<()> {
        let is_back = |it: &Value| it["instance_uuid"].is_null();
        let returned = self.ironic.wait(MACHINE, "given back", is_back).await?;
        assert_ne!(returned["provision_state"], "active", "{returned}");
        assert!(!self.host.is_up(), "the host still answers");
        Ok(())
    }
}

/// Asserts that the content of config drives appears in no object and no log.
async fn nothing_tells(world: &World) -> Result<()> {
    world.holds_nowhere::<BaremetalSet>(&NOWHERE).await?;
    world.holds_nowhere::<Role>(&NOWHERE).await?;
    world.holds_nowhere::<Event>(&NOWHERE).await?;
    let log = std::fs::read_to_string(world.sim.operators.log(Operator::DataPlane))?;
    assert!(!log.is_empty() && NOWHERE.iter().all(|it| !log.contains(it)), "the log tells: {log}");
    Ok(())
}

/// Changes after the deployment are reported, and nothing is done.
async fn drift_is_told(ns: &Namespace, metal: &Metal) -> Result<()> {
    let before = metal.ironic.node(MACHINE)?;
    let host = metal.host.name.as_str();
    ns.secret(ROOT, &[("NodeRootPassword", OTHER_PASSWORD)]).await?;
    ns.reports::<BaremetalSet>(ROLE, "UpToDate", "ConfigDriveChanged", &[host], RETURNED).await?;
    let words = ["Provisioned", "only when it is provisioned again"];
    let is_told = |it: &Node| {
        let found = it.conditions().iter().find(|it| it.type_ == "BaremetalReady");
        found.is_some_and(|it| it.reason == words[0] && it.message.contains(words[1]))
    };
    ns.wait::<Node>(host, "told of it", RETURNED, is_told).await?;
    let after = metal.ironic.node(MACHINE)?;
    for field in ["instance_uuid", "provision_state", "provision_updated_at"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    Ok(())
}

/// Creates a role whose hosts get machines, and its first host.
async fn role(ns: &Namespace, metal: &Metal) -> Result<()> {
    deploy(ns, &[]).await?;
    let mut template = template(&metal.ironic);
    // The other format is tested with the node set.
    template["configDriveFormat"] = json!("Iso");
    template["ctlplaneGateway"] = json!(GATEWAY);
    let change = json!({ "spec": { "preProvisioned": false, "baremetalSetTemplate": template } });
    ns.merge::<Role>(ROLE, change).await?;
    let Host { name, address, port, .. } = &metal.host;
    let node = json!({
        "role": ROLE, "hostName": name, "ansibleHost": address, "node": { "ansiblePort": port },
        "baremetalHost": { "ctlPlaneIP": "192.0.2.200/24" },
    });
    ns.create::<Node>(name, node).await.map(drop)
}

#[tokio::test]
async fn an_empty_machine_becomes_a_ready_host_and_is_given_back() -> Result<()> {
    let world = World::new("baremetal").await?;
    let metal = Metal::enroll(&world, "sim-metal").await?;
    let (ironic, host) = (&metal.ironic, metal.host.name.as_str());
    role(&world, &metal).await?;
    let waited = world.good::<Node>(host, &["BaremetalReady"], DEPLOYED);
    metal::meanwhile(&world, ROLE, waited).await?;
    journey::ready(&world, host).await?;
    let deployed = ironic.node(MACHINE)?;
    assert_eq!(deployed["provision_state"], "active", "{deployed}");
    assert_eq!(deployed["power_state"], "power on", "{deployed}");
    let drive = ironic.drive(MACHINE)?.context("no drive")?;
    assert!(drive.as_str().is_some_and(|it| it.starts_with(PACKED)), "another form");
    assert_eq!(trace(&metal.host), ["hello"]);
    drift_is_told(&world, &metal).await?;

    // A user who undeploys the machine triggers a new deployment: another disk, on which the
    // services run again.
    let installation = |it: &Node| it.status.clone()?.machine?.installation;
    let before = installation(&world.api::<Node>().get(host).await?);
    ironic.provision(MACHINE, "deleted")?;
    ironic.reaches(MACHINE, "available").await?;
    assert!(!metal.host.is_up(), "nothing runs on a machine that is free");
    let is_replaced = |it: &Node| installation(it).is_some_and(|it| Some(it) != before);
    let waited = world.wait::<Node>(host, "on another installation", DEPLOYED, is_replaced);
    metal::meanwhile(&world, ROLE, waited).await?;
    journey::ready(&world, host).await?;
    assert_eq!(trace(&metal.host), ["hello", "hello"], "once on each disk");
    let waited = world.good::<BaremetalSet>(ROLE, &["UpToDate"], RETURNED);
    metal::meanwhile(&world, ROLE, waited).await?;
    nothing_tells(&world).await?;
    world.holds_nowhere::<Node>(&NOWHERE).await?;

    let guests = "1 guest is on this host, so its machine is not given back: g1 (0f-1).";
    metal.host.behave("last-look", Behaviour::failed("The host must have no guests", guests));
    world.remove::<Node>(host).await?;
    let words = ["1 guest", "g1 (0f-1)", "dataplane.openstack.org/skip-cleanup=true"];
    world.reports::<Node>(host, "BaremetalReady", "MachineHeld", &words, RETURNED).await?;
    assert_eq!(ironic.node(MACHINE)?["provision_state"], "active", "nothing is wiped");
    metal.host.behave("last-look", Behaviour::Done);
    metal::meanwhile(&world, ROLE, world.gone::<Node>(host, RETURNED)).await?;
    let is_empty = |it: &BaremetalSet| {
        it.spec.baremetal_hosts.is_empty()
            && it.status.as_ref().is_some_and(|it| it.baremetal_hosts.is_empty())
    };
    world.wait::<BaremetalSet>(ROLE, "without the host", RETURNED, is_empty).await?;
    metal.returned().await?;
    world.done().await
}

#[tokio::test]
async fn a_node_set_gets_an_empty_machine_is_deployed_to_it_and_gives_it_back() -> Result<()> {
    let world = World::new("baremetal-node-set").await?;
    let metal = Metal::enroll(&world, "sim-metal-set").await?;
    let Host { name, address, port, .. } = &metal.host;
    deploy(&world, &[]).await?;
    let node = json!({
        "ansible": { "ansibleHost": address, "ansiblePort": port },
        "baremetalHost": { "ctlPlaneIP": "192.0.2.201/24", "ctlplaneGateway": GATEWAY },
    });
    let spec = json!({
        "preProvisioned": false,
        "baremetalSetTemplate": template(&metal.ironic),
        "services": [SERVICE],
        "nodeTemplate": { "ansibleSSHPrivateKeySecret": SSH_SECRET },
        "nodes": { name.as_str(): node },
    });
    world.create::<NodeSet>(SET, spec).await?;
    // The deployment waits for the machine by itself.
    world.create::<Deployment>("first", json!({ "nodeSets": [SET] })).await?;
    let waited = world.good::<NodeSet>(SET, &["NodeSetBaremetalProvisionReady"], DEPLOYED);
    metal::meanwhile(&world, SET, waited).await?;
    let set = world.good::<NodeSet>(SET, &["Ready", "UpToDate"], journey::RUN).await?;
    let status = set.status.unwrap_or_default();
    assert_eq!(status.hosts[0].state, HostState::Deployed);
    let deployed = metal.ironic.node(MACHINE)?;
    assert_eq!(status.machines[name].machine.as_deref(), deployed["uuid"].as_str());
    // The host learns its name only from the config drive.
    let drive = metal.ironic.drive(MACHINE)?.context("no drive")?;
    assert_eq!(drive["meta_data"]["hostname"], name.as_str());
    assert!(drive["user_data"].to_string().contains(KEY), "nobody could log in");
    assert_eq!(drive["network_data"]["networks"][0]["ip_address"], "192.0.2.201");
    assert_eq!(trace(&metal.host), ["hello"]);
    nothing_tells(&world).await?;
    world.holds_nowhere::<NodeSet>(&NOWHERE).await?;
    world.holds_nowhere::<Deployment>(&NOWHERE).await?;

    world.remove::<NodeSet>(SET).await?;
    metal::meanwhile(&world, SET, world.gone::<NodeSet>(SET, RETURNED)).await?;
    world.gone::<BaremetalSet>(SET, RETURNED).await?;
    metal.returned().await?;
    world.done().await
}

/// Creates a set of one host.
async fn set(ns: &Namespace, ironic: &Ironic, authentication: &str) -> Result<()> {
    ironic.enroll(MACHINE, json!({}))?;
    ns.secret(SSH_SECRET, &[("authorized_keys", KEY)]).await?;
    let spec = json!({
        "provisioner": "ironic",
        "ironic": {
            "endpoint": ironic.endpoint(), "authentication": authentication, "secret": IRONIC,
            "machine": { "resourceClass": MACHINE }, "provide": true,
        },
        "deploymentSSHSecret": SSH_SECRET,
        "ctlplaneInterface": "eth0",
        "baremetalHosts": { "a": { "ctlPlaneIP": "192.0.2.202/24" } },
    });
    ns.create::<BaremetalSet>(SET, spec).await.map(drop)
}

/// Waits until a set's machine runs, then deletes it and waits until the machine is free.
async fn there_and_back(ns: &Namespace, ironic: &Ironic) -> Result<()> {
    let waited = ns.good::<BaremetalSet>(SET, &["Ready"], DEPLOYED);
    metal::meanwhile(ns, SET, waited).await?;
    ironic.reaches(MACHINE, "active").await?;
    ns.remove::<BaremetalSet>(SET).await?;
    metal::meanwhile(ns, SET, ns.gone::<BaremetalSet>(SET, RETURNED)).await?;
    ironic.reaches(MACHINE, "available").await
}

#[tokio::test]
async fn a_set_logs_in_to_keystone_before_it_asks_its_ironic() -> Result<()> {
    let world = World::new("baremetal-keystone").await?;
    let (ironic, keystone) = (Ironic::start().await?, &world.sim.keystone);
    ironic.believe(keystone);
    keystone.admit("baremetal", "the-password");
    let url = keystone.url();
    let log_in = async |password: &str| {
        let pairs = [
            ("authURL", url.as_str()),
            ("username", "baremetal"),
            ("projectName", "service"),
            ("password", password),
        ];
        world.secret(IRONIC, &pairs).await
    };
    log_in("not-the-password").await?;
    set(&world, &ironic, "keystone").await?;
    world.reports::<BaremetalSet>(SET, SERVER, "CredentialsRefused", &["Secret"], RETURNED).await?;
    log_in("the-password").await?;
    there_and_back(&world, &ironic).await?;
    world.done().await
}

#[tokio::test]
async fn what_answers_instead_of_ironic_is_told_and_the_machine_goes_on_afterwards() -> Result<()> {
    let world = World::new("baremetal-troubles").await?;
    let ironic = Ironic::start().await?;
    world.secret(IRONIC, &Ironic::secret()).await?;
    let refusal = |status: u16, words: &str| Some(Trouble::Refusal(status, words.to_owned()));
    ironic.suffer(refusal(500, "the database is away"));
    set(&world, &ironic, "http_basic").await?;
    for (trouble, reason, words) in [
        (refusal(500, "the database is away"), "IronicFailed", "the database is away"),
        (refusal(401, ""), "CredentialsRefused", "Secret"),
        (refusal(403, "no such role"), "AccessDenied", "no such role"),
        (refusal(503, "no worker is free"), "IronicBusy", "no worker is free"),
        (Some(Trouble::Page("<html>hello</html>".to_owned())), "NotIronic", "endpoint"),
    ] {
        ironic.suffer(trouble);
        told_in_turn(&world, reason, words).await?;
    }
    ironic.suffer(None);
    ironic.stop();
    told_in_turn(&world, "Unreachable", "Connection refused").await?;
    // Another client holds the machine's lock.
    ironic.hold(MACHINE, true)?;
    ironic.listen().await?;
    let is_locked = |it: &BaremetalSet| {
        let told = it.conditions().iter().find(|it| it.type_ == PROVISIONED);
        told.is_some_and(|it| it.message.contains("and Ironic works on it"))
    };
    woken(&world, "waiting for its machine", is_locked).await?;
    assert_eq!(ironic.node(MACHINE)?["instance_uuid"], Value::Null);
    ironic.hold(MACHINE, false)?;
    there_and_back(&world, &ironic).await?;
    world.done().await
}

#[tokio::test]
async fn why_a_deployment_failed_is_read_from_the_history_where_ironic_says_it_no_more()
-> Result<()> {
    let world = World::new("baremetal-history").await?;
    let ironic = Ironic::start().await?;
    world.secret(IRONIC, &Ironic::secret()).await?;
    set(&world, &ironic, "http_basic").await?;
    // A list of the history cuts it.
    let end = "verification checksum: 0f0f";
    let words = format!("Image failed to verify against checksum. location: {:a<240}; {end}", "");
    ironic.fail(MACHINE, "deploying", Some(&words))?;
    let is_told = |it: &BaremetalSet| {
        let host = it.status.as_ref().and_then(|it| it.baremetal_hosts.get("a"));
        let failure = host.and_then(|it| it.failure.as_ref());
        failure.is_some_and(|it| it.said.ends_with(end))
            && says(it.conditions(), "Ready", "DeployRetrying", &["Image failed to verify"])
    };
    let waited = world.wait::<BaremetalSet>(SET, "told why", DEPLOYED, is_told);
    metal::meanwhile(&world, SET, waited).await?;
    assert_eq!(ironic.node(MACHINE)?["last_error"], Value::Null);
    world.done().await
}

/// Waits until the set reports this reason about its Ironic.
async fn told_in_turn(ns: &Namespace, reason: &str, words: &str) -> Result<()> {
    woken(ns, reason, |it| says(it.conditions(), SERVER, reason, &[words])).await
}

/// Waits until `holds` is true of the set, and triggers its reconciles meanwhile.
async fn woken(ns: &Namespace, what: &str, holds: impl Fn(&BaremetalSet) -> bool) -> Result<()> {
    let waited = ns.wait::<BaremetalSet>(SET, what, RETURNED, holds);
    metal::meanwhile(ns, SET, waited).await.map(drop)
}
