//! A host from an empty machine and back: a real Ironic deploys it, and the real cloud-init reads our
//! config drive.

use std::time::Duration;

use anyhow::Result;
use common::api::baremetal::BaremetalSet;
use common::api::dataplane::{Deployment, HostState, Node, NodeSet, Role};
use common::conditions::Condition;
use e2e::ironic::{self, Machine};
use e2e::journey::{self, ROLE, SERVICE, SSH_SECRET, conditions, conditions_of_set};
use e2e::own_ironic::{Flavour, KEYSTONE, OwnIronic, password_of_nova};
use e2e::{Namespace, holds, run, says};
use k8s_openapi::api::events::v1::Event;
use kube::api::DeleteParams;
use serde_json::{Value, json};

/// The machine of the role, and the resource class that only it has.
const MACHINE: &str = "e2e-rack-u1";
const HOST: &str = "e2e-metal";
const ADDRESS: &str = "192.168.122.115";
/// The same of the node set.
const MACHINE_OF_SET: &str = "e2e-rack-u2";
const HOST_OF_SET: &str = "e2e-metal-set";
const ADDRESS_OF_SET: &str = "192.168.122.116";
const SET: &str = "metal";
/// The Secret with root's password, which only drives hold.
const ROOT: &str = "root";
const PASSWORD: &str = "hunter2-of-the-drive";
const OTHER_PASSWORD: &str = "hunter3-of-the-drive";
/// The passwords as objects and logs would hold them, in the clear or in what is encoded by itself, and how
/// a drive begins that is packed.
const NOWHERE: [&str; 5] = [
    PASSWORD,
    OTHER_PASSWORD,
    "aHVudGVyMi1vZi10aGUtZHJpdmU=",
    "aHVudGVyMy1vZi10aGUtZHJpdmU=",
    "H4sI",
];
/// The router of the lab's hosts.
const GATEWAY: &str = "192.168.120.1";
/// A public key of nobody.
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGzp0V5eeyEtRfB9K6gGXv6ooeyTVhGqvHLVIWNQ5vJv";
/// Where the Ironic is reached that asks Keystone.
const KEYSTONES_IRONIC: &str = "10.96.10.65";
/// A machine is cleaned, deployed and booted before the first run begins.
const PROVISIONED: Duration = Duration::from_mins(6);
/// Clean-ups, and one look of Ironic's at the machine after another.
const RETURNED: Duration = Duration::from_mins(4);

/// What is asked of machines, of which one alone fits.
fn template(machine: &str) -> Value {
    json!({
        "provisioner": "ironic",
        "ironic": {
            "endpoint": ironic::ENDPOINT,
            "authentication": "http_basic",
            "secret": ironic::SECRET,
            "machine": { "resourceClass": machine },
            "provide": true,
        },
        "deploymentSSHSecret": SSH_SECRET,
        "passwordSecret": { "name": ROOT },
        "ctlplaneInterface": "eth0",
    })
}

/// The role of hosts that the machine is to become.
async fn role(ns: &Namespace) -> Result<()> {
    journey::deploy(ns, &[]).await?;
    let mut template = template(MACHINE);
    // The other form is that of the node set, and of the demo.
    template["configDriveFormat"] = json!("Iso");
    template["ctlplaneGateway"] = json!(GATEWAY);
    let change = json!({ "spec": { "preProvisioned": false, "baremetalSetTemplate": template } });
    ns.merge::<Role>(ROLE, change).await.map(drop)
}

/// A host that is to be, and the only key that opens it.
struct Host {
    machine: Machine,
    address: &'static str,
    key: String,
}

impl Host {
    async fn enroll(
        ns: &Namespace,
        machine: &str,
        host: &str,
        address: &'static str,
    ) -> Result<Self> {
        let machine = Machine::enroll(&ns.client, machine).await?;
        ironic::secret(ns).await?;
        ns.secret(ROOT, &[("NodeRootPassword", PASSWORD)]).await?;
        let folder = std::env::temp_dir().join(host);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)?;
        let key = folder.join("user").display().to_string();
        run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-C", host, "-f", &key]).await?;
        let (private, public) =
            (std::fs::read_to_string(&key)?, std::fs::read_to_string(format!("{key}.pub"))?);
        let content = [("ssh-privatekey", private.as_str()), ("authorized_keys", &public)];
        ns.secret(SSH_SECRET, &content).await?;
        Ok(Self { machine, address, key })
    }

    /// What a command on the host prints, with the host's key checked.
    async fn ssh(&self, command: &str) -> Result<String> {
        let Self { machine, address, key } = self;
        let known_hosts = format!("{key}.known_hosts");
        std::fs::write(&known_hosts, format!("{address} {}\n", machine.host_key().await?))?;
        let (known_hosts, login) =
            (format!("UserKnownHostsFile={known_hosts}"), format!("cloud-admin@{address}"));
        // Another machine at the address is found once the neighbour's old hardware address is forgotten.
        let options = "-o BatchMode=yes -o ConnectTimeout=5 -o ConnectionAttempts=10";
        let options: Vec<&str> =
            options.split(' ').chain(["-o", &known_hosts, "-i", key]).collect();
        run("ssh", &[&options[..], &[&login, command]].concat()).await
    }

    /// Asserts that the machine was given back, once its pod is gone.
    async fn returned(&self) -> Result<()> {
        self.machine.stopped().await?;
        let returned = self.machine.node().await?;
        assert!(returned["instance_uuid"].is_null(), "{returned}");
        assert_ne!(returned["provision_state"], "active", "{returned}");
        Ok(())
    }
}

fn told(set: &BaremetalSet) -> &[Condition] {
    set.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default()
}

/// That nothing tells what only drives hold.
async fn nothing_tells(ns: &Namespace) -> Result<()> {
    ns.holds_nowhere::<BaremetalSet>(&NOWHERE).await?;
    ns.holds_nowhere::<Role>(&NOWHERE).await?;
    ns.holds_nowhere::<Event>(&NOWHERE).await?;
    let operator = "deployment/dataplane-operator";
    let log = run("kubectl", &["-n", "edpm-system", "logs", operator, "--tail=-1"]).await?;
    assert!(!log.is_empty() && NOWHERE.iter().all(|it| !log.contains(it)), "the log tells: {log}");
    Ok(())
}

/// What changes after the deployment is told, and nothing is done.
async fn drift_is_told(ns: &Namespace, machine: &Machine) -> Result<()> {
    let before = machine.node().await?;
    ns.secret(ROOT, &[("NodeRootPassword", OTHER_PASSWORD)]).await?;
    let is_told = |it: &BaremetalSet| says(told(it), "UpToDate", "ConfigDriveChanged", &[HOST]);
    ns.wait::<BaremetalSet>(ROLE, "out of date", RETURNED, is_told).await?;
    let words = ["Provisioned", "only when it is provisioned again"];
    let is_told = |it: &Node| {
        let found = conditions(it).iter().find(|it| it.type_ == "BaremetalReady");
        found.is_some_and(|it| it.reason == words[0] && it.message.contains(words[1]))
    };
    ns.wait::<Node>(HOST, "told of it", RETURNED, is_told).await?;
    let after = machine.node().await?;
    for field in ["instance_uuid", "provision_state", "provision_updated_at"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    Ok(())
}

#[tokio::test]
async fn an_empty_machine_becomes_a_ready_host_and_is_given_back() -> Result<()> {
    let ns = Namespace::new("baremetal").await?;
    let host = Host::enroll(&ns, MACHINE, HOST, ADDRESS).await?;
    role(&ns).await?;
    let node = json!({
        "role": ROLE, "hostName": HOST, "ansibleHost": ADDRESS,
        "baremetalHost": { "ctlPlaneIP": format!("{ADDRESS}/21") },
    });
    ns.create::<Node>(HOST, node).await?;

    let has_machine = |it: &Node| holds(conditions(it), "BaremetalReady");
    ns.wait::<Node>(HOST, "on its machine", PROVISIONED, has_machine).await?;
    journey::ready(&ns, HOST).await?;
    let deployed = host.machine.node().await?;
    assert_eq!(deployed["provision_state"], "active", "{deployed}");
    assert_eq!(deployed["power_state"], "power on", "{deployed}");
    // Nobody told the host but the drive.
    assert_eq!(host.ssh("hostname").await?.trim(), HOST);
    assert_eq!(host.ssh("cat trace").await?.trim(), "hello");
    drift_is_told(&ns, &host.machine).await?;

    // Whoever undeploys it has it deployed again: another disk, on which the services run again.
    host.machine.provision("deleted").await?;
    let is_replaced = |it: &Node| {
        it.status.as_ref().and_then(|it| it.machine.as_ref()).is_some_and(|it| it.replaced)
    };
    ns.wait::<Node>(HOST, "on another installation", PROVISIONED, is_replaced).await?;
    journey::ready(&ns, HOST).await?;
    assert_eq!(host.ssh("cat trace").await?.trim(), "hello");
    let is_told = |it: &BaremetalSet| holds(told(it), "UpToDate");
    ns.wait::<BaremetalSet>(ROLE, "up to date", RETURNED, is_told).await?;
    nothing_tells(&ns).await?;
    ns.holds_nowhere::<Node>(&NOWHERE).await?;

    ns.api::<Node>().delete(HOST, &DeleteParams::default()).await?;
    ns.gone::<Node>(HOST, RETURNED).await?;
    let is_empty = |it: &BaremetalSet| {
        it.spec.baremetal_hosts.is_empty()
            && it.status.as_ref().is_some_and(|it| it.baremetal_hosts.is_empty())
    };
    ns.wait::<BaremetalSet>(ROLE, "without the host", RETURNED, is_empty).await?;
    host.returned().await?;
    ns.done().await
}

#[tokio::test]
async fn a_node_set_gets_an_empty_machine_is_deployed_to_it_and_gives_it_back() -> Result<()> {
    let ns = Namespace::new("baremetal-node-set").await?;
    let host = Host::enroll(&ns, MACHINE_OF_SET, HOST_OF_SET, ADDRESS_OF_SET).await?;
    journey::deploy(&ns, &[]).await?;
    let node = json!({
        "ansible": { "ansibleHost": ADDRESS_OF_SET },
        "baremetalHost": {
            "ctlPlaneIP": format!("{ADDRESS_OF_SET}/21"), "ctlplaneGateway": GATEWAY,
        },
    });
    let spec = json!({
        "preProvisioned": false,
        "baremetalSetTemplate": template(MACHINE_OF_SET),
        "services": [SERVICE],
        "nodeTemplate": { "ansibleSSHPrivateKeySecret": SSH_SECRET },
        "nodes": { HOST_OF_SET: node },
    });
    ns.create::<NodeSet>(SET, spec).await?;
    // It waits for the machine by itself.
    ns.create::<Deployment>("first", json!({ "nodeSets": [SET] })).await?;
    let has_machine = |it: &NodeSet| holds(conditions_of_set(it), "NodeSetBaremetalProvisionReady");
    ns.wait::<NodeSet>(SET, "on its machine", PROVISIONED, has_machine).await?;
    let is_done =
        |it: &NodeSet| ["Ready", "UpToDate"].iter().all(|of| holds(conditions_of_set(it), of));
    let set = ns.wait::<NodeSet>(SET, "ready and up to date", journey::RUN, is_done).await?;
    let status = set.status.unwrap_or_default();
    assert_eq!(status.hosts[0].state, HostState::Deployed);
    let deployed = host.machine.node().await?;
    assert_eq!(status.machines[HOST_OF_SET].machine.as_deref(), deployed["uuid"].as_str());
    assert_eq!(host.ssh("hostname").await?.trim(), HOST_OF_SET);
    assert_eq!(host.ssh("cat trace").await?.trim(), "hello");
    nothing_tells(&ns).await?;
    ns.holds_nowhere::<NodeSet>(&NOWHERE).await?;
    ns.holds_nowhere::<Deployment>(&NOWHERE).await?;

    ns.api::<NodeSet>().delete(SET, &DeleteParams::default()).await?;
    ns.gone::<NodeSet>(SET, RETURNED).await?;
    ns.gone::<BaremetalSet>(SET, RETURNED).await?;
    host.returned().await?;
    ns.done().await
}

#[tokio::test]
async fn a_set_logs_in_to_keystone_before_it_asks_its_ironic() -> Result<()> {
    let ns = Namespace::new("baremetal-keystone").await?;
    let ironic = OwnIronic::start(&ns, Flavour::Keystone, KEYSTONES_IRONIC).await?;
    ironic.enroll(MACHINE, json!({})).await?;
    ns.secret(SSH_SECRET, &[("authorized_keys", KEY)]).await?;
    let secret = |password: &str| {
        let text = |it: &str| it.to_owned();
        [
            ("authURL", text(KEYSTONE)),
            ("username", text("nova")),
            ("projectName", text("service")),
            ("password", text(password)),
        ]
    };
    let log_in = async |password: &str| {
        let secret = secret(password);
        let pairs: Vec<(&str, &str)> = secret.iter().map(|(key, it)| (*key, it.as_str())).collect();
        ns.secret(ironic::SECRET, &pairs).await
    };
    log_in("not-the-password").await?;
    let spec = json!({
        "provisioner": "ironic",
        "ironic": {
            "endpoint": ironic.endpoint, "authentication": "keystone", "secret": ironic::SECRET,
            "machine": { "resourceClass": MACHINE }, "provide": true,
        },
        "deploymentSSHSecret": SSH_SECRET,
        "ctlplaneInterface": "eth0",
        "baremetalHosts": { HOST: { "ctlPlaneIP": "192.168.123.215/24" } },
    });
    ns.create::<BaremetalSet>("metal", spec).await?;
    let server = "OpenStackBaremetalSetProvServerReady";
    let is_refused = |it: &BaremetalSet| says(told(it), server, "CredentialsRefused", &["Secret"]);
    ns.wait::<BaremetalSet>("metal", "refused", RETURNED, is_refused).await?;
    log_in(&password_of_nova(&ns).await?).await?;
    ns.wait::<BaremetalSet>("metal", "ready", PROVISIONED, |it| holds(told(it), "Ready")).await?;
    ironic.reaches(MACHINE, "active").await?;
    ns.api::<BaremetalSet>().delete("metal", &DeleteParams::default()).await?;
    ns.gone::<BaremetalSet>("metal", RETURNED).await?;
    ironic.reaches(MACHINE, "available").await?;
    ns.done().await
}
