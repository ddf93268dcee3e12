//! A host from an empty machine and back: a real Ironic deploys it, and the real cloud-init reads
//! the config drive; also an Ironic that authenticates with a real Keystone.

use std::time::Duration;

use anyhow::Result;
use api::baremetal::BaremetalSet;
use api::dataplane::{Node, Role};
use e2e::ironic::{self, Machine};
use e2e::journey::{self, ROLE, SSH_SECRET};
use e2e::own_ironic::{KEYSTONE, OwnIronic, password_of_nova};
use e2e::{Namespace, run};
use serde_json::json;

/// The machine, and the resource class that only it has.
const MACHINE: &str = "e2e-rack-u1";
const HOST: &str = "e2e-metal";
const ADDRESS: &str = "192.168.122.115";
/// The address of the Ironic that authenticates with Keystone.
const KEYSTONES_IRONIC: &str = "10.96.10.65";
/// A public key without a known private key.
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGzp0V5eeyEtRfB9K6gGXv6ooeyTVhGqvHLVIWNQ5vJv";
/// The router of the lab's hosts.
const GATEWAY: &str = "192.168.120.1";
/// The timeout until a machine is cleaned, deployed and booted.
const PROVISIONED: Duration = Duration::from_mins(10);
/// The timeout for the clean-up runs, and for Ironic's steps until the machine is returned.
const RETURNED: Duration = Duration::from_mins(10);

/// Creates the role of the host that the machine becomes.
async fn role(ns: &Namespace) -> Result<()> {
    journey::deploy(ns, &[]).await?;
    let template = json!({
        "provisioner": "ironic",
        "ironic": {
            "endpoint": ironic::ENDPOINT,
            "authentication": "http_basic",
            "secret": ironic::SECRET,
            "machine": { "resourceClass": MACHINE },
            "provide": true,
        },
        // The demo uses the other format.
        "configDriveFormat": "Iso",
        "deploymentSSHSecret": SSH_SECRET,
        "ctlplaneInterface": "eth0",
        "ctlplaneGateway": GATEWAY,
    });
    let change = json!({ "spec": { "preProvisioned": false, "baremetalSetTemplate": template } });
    ns.merge::<Role>(ROLE, change).await.map(drop)
}

/// A host to be deployed, and the only key that it accepts.
struct Host {
    machine: Machine,
    key: String,
}

impl Host {
    async fn enroll(ns: &Namespace) -> Result<Self> {
        let machine = Machine::enroll(&ns.client, MACHINE).await?;
        ironic::secret(ns).await?;
        let folder = std::env::temp_dir().join(HOST);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)?;
        let key = folder.join("user").display().to_string();
        run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-C", HOST, "-f", &key]).await?;
        let (private, public) =
            (std::fs::read_to_string(&key)?, std::fs::read_to_string(format!("{key}.pub"))?);
        let content = [("ssh-privatekey", private.as_str()), ("authorized_keys", &public)];
        ns.secret(SSH_SECRET, &content).await?;
        Ok(Self { machine, key })
    }

    /// Returns the output of a command on the host; the host key is verified.
    async fn ssh(&self, command: &str) -> Result<String> {
        let Self { machine, key } = self;
        let known_hosts = format!("{key}.known_hosts");
        std::fs::write(&known_hosts, format!("{ADDRESS} {}\n", machine.host_key().await?))?;
        let (known_hosts, login) =
            (format!("UserKnownHostsFile={known_hosts}"), format!("cloud-admin@{ADDRESS}"));
        // A different machine at the address is reachable only after the old ARP entry has expired.
        let options = "-o BatchMode=yes -o ConnectTimeout=5 -o ConnectionAttempts=10";
        let options: Vec<&str> =
            options.split(' ').chain(["-o", &known_hosts, "-i", key]).collect();
        run("ssh", &[&options[..], &[&login, command]].concat()).await
    }

    /// Waits until the machine's pod is gone, and asserts that the machine was returned.
    async fn returned(&self) -> Result<()> {
        self.machine.stopped().await?;
        let returned = self.machine.node().await?;
        assert!(returned["instance_uuid"].is_null(), "{returned}");
        assert_ne!(returned["provision_state"], "active", "{returned}");
        Ok(())
    }
}

#[tokio::test]
async fn an_empty_machine_becomes_a_ready_host_and_is_given_back() -> Result<()> {
    let ns = Namespace::new("baremetal").await?;
    let host = Host::enroll(&ns).await?;
    role(&ns).await?;
    let node = json!({
        "role": ROLE, "hostName": HOST, "ansibleHost": ADDRESS,
        "baremetalHost": { "ctlPlaneIP": format!("{ADDRESS}/21") },
    });
    ns.create::<Node>(HOST, node).await?;

    ns.good::<Node>(HOST, &["BaremetalReady"], PROVISIONED).await?;
    journey::ready(&ns, HOST).await?;
    let deployed = host.machine.node().await?;
    assert_eq!(deployed["provision_state"], "active", "{deployed}");
    assert_eq!(deployed["power_state"], "power on", "{deployed}");
    // The host can know this only from the config drive.
    assert_eq!(host.ssh("hostname").await?.trim(), HOST);
    assert_eq!(host.ssh("cat trace").await?.trim(), "hello");

    ns.removed::<Node>(HOST, RETURNED).await?;
    let is_empty = |it: &BaremetalSet| {
        it.spec.baremetal_hosts.is_empty()
            && it.status.as_ref().is_some_and(|it| it.baremetal_hosts.is_empty())
    };
    ns.wait::<BaremetalSet>(ROLE, "without the host", RETURNED, is_empty).await?;
    host.returned().await?;
    ns.done().await
}

#[tokio::test]
async fn a_set_logs_in_to_keystone_before_it_asks_its_ironic() -> Result<()> {
    let ns = Namespace::new("baremetal-keystone").await?;
    let ironic = OwnIronic::start(&ns, KEYSTONES_IRONIC).await?;
    ironic.enroll(MACHINE).await?;
    ns.secret(SSH_SECRET, &[("authorized_keys", KEY)]).await?;
    let log_in = async |password: &str| {
        let user = [("authURL", KEYSTONE), ("username", "nova"), ("projectName", "service")];
        ns.secret(ironic::SECRET, &[&user[..], &[("password", password)]].concat()).await
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
    let refused = "CredentialsRefused";
    ns.reports::<BaremetalSet>("metal", server, refused, &["Secret"], RETURNED).await?;
    log_in(&password_of_nova(&ns).await?).await?;
    ns.good::<BaremetalSet>("metal", &["Ready"], PROVISIONED).await?;
    ironic.reaches(MACHINE, "active").await?;
    ns.removed::<BaremetalSet>("metal", RETURNED).await?;
    ironic.reaches(MACHINE, "available").await?;
    ns.done().await
}
