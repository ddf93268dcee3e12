//! Faults of the networks of guests, each on a host of its own that reaches OVN and nova of the demo.
//!
//! They are in docs/faults.md once `cargo xtask codegen` has found their transcripts.

use anyhow::{Context as _, Result};
use api::dataplane::{Node, Role, RunState};
use e2e::faults::{Fault, guests::FAULTS};
use e2e::journey::{self, ROLE, RUN, SSH_SECRET};
use e2e::{Host, Namespace, diagnosis};
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// The southbound database of the demo with TLS, without it, and an address without one.
const SOUTHBOUND: &str = "ssl:10.96.10.17:6642";
const OPEN: &str = "tcp:10.96.10.17:6643";
const AWAY: &str = "tcp:192.168.123.201:6642";
/// The address of tunnels that no host has.
const NOWHERE: &str = "198.51.100.9";
/// The first of the addresses of the hosts.
const FIRST: usize = 184;

/// Makes a certificate of its own authority where the service looks for the host's.
const OTHER_AUTHORITY: &str = "
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other -keyout tls.key -out tls.crt
    cp tls.crt ca.crt";
/// The same, expired since 2020.
const EXPIRED: &str = "
    openssl req -new -newkey rsa:2048 -nodes -subj /CN=other -keyout tls.key -out request
    echo 01 > serial; touch index
    printf \"[ca]\\ndefault_ca=a\\n[a]\\ndatabase=index\\nserial=serial\\nnew_certs_dir=.\\n\" > ca.conf
    printf \"default_md=sha256\\npolicy=p\\n[p]\\ncommonName=supplied\\n\" >> ca.conf
    openssl ca -batch -notext -config ca.conf -selfsign -keyfile tls.key -in request -out tls.crt \
        -startdate 200101000000Z -enddate 200102000000Z
    cp tls.crt ca.crt";

#[tokio::test]
async fn what_goes_wrong_with_the_networks_of_guests_is_told_on_the_node() -> Result<()> {
    let hosts = Mutex::new(Vec::new());
    let before = async |ns: &Namespace, fault: &Fault| {
        let host = before(ns, fault).await?;
        hosts.lock().await.push(host);
        anyhow::Ok(())
    };
    let outcome = diagnosis::judge(FAULTS, before, inject).await;
    for host in hosts.into_inner() {
        // Most have no Chassis to take away.
        let leave = "sudo podman exec ovn_controller ovn-appctl -t ovn-controller exit || true";
        host.ssh(leave).await?;
        host.stop().await?;
    }
    outcome
}

/// Starts a host, creates what its services need, and deploys those before the one that fails.
async fn before(ns: &Namespace, fault: &Fault) -> Result<Host> {
    let idx = FAULTS.iter().position(|it| it.name == fault.name).context("a fault of the table")?;
    let address = format!("192.168.122.{}", FIRST + idx);
    let host = Host::start(&ns.client, &format!("e2e-{}", fault.name), &address).await?;
    let certificate = match fault.name {
        "ovn-wrong-authority" => Some(OTHER_AUTHORITY),
        "ovn-certificate-expired" => Some(EXPIRED),
        _ => None,
    };
    if let Some(made) = certificate {
        let folder = "/var/lib/openstack/certs/ovn/default";
        host.ssh(&format!("sudo sh -ec 'mkdir -p {folder}; cd {folder}; {made}'")).await?;
    }
    journey::ssh_secret(ns, &host).await?;
    inputs(ns, fault).await?;
    let is_metadata = fault.name.starts_with("metadata");
    ns.create::<Role>(ROLE, role(ns, &host, fault, certificate.is_some()).await?).await?;
    let spec = json!({
        "role": ROLE, "hostName": host.name, "ansibleHost": host.address,
        "deployStrategy": { "deploy": is_metadata },
    });
    ns.create::<Node>("n0", spec).await?;
    let awaited = if is_metadata { "Ready" } else { "InputReady" };
    ns.good::<Node>("n0", &[awaited], RUN).await?;
    Ok(host)
}

/// Creates what the services read: the demo's, but for the fault.
async fn inputs(ns: &Namespace, fault: &Fault) -> Result<()> {
    let southbound = match fault.name {
        "ovn-southbound-away" => AWAY,
        "ovn-wrong-authority" | "ovn-certificate-expired" => SOUTHBOUND,
        _ => OPEN,
    };
    let remote = format!("ovn-remote: {southbound}\n");
    ns.config_map("ovncontroller-config", &[("ovsdb-config", &remote)]).await?;
    let mut agent = format!("[ovn]\novn_sb_connection = {OPEN}\n");
    if fault.name == "metadata-agent-dead" {
        agent += "[DEFAULT]\nmetadata_workers = many\n";
    }
    let name = "neutron-ovn-metadata-agent-neutron-config";
    ns.secret(name, &[("10-neutron-metadata.conf", &agent)]).await?;
    let name = "nova-metadata-neutron-config";
    let demo = Namespace::existing(&ns.client, "openstack");
    let data = demo.api::<Secret>().get(name).await?.data.unwrap_or_default();
    let text = data.get("05-nova-metadata.conf").context("nova's part of the agent's options")?;
    let mut nova = String::from_utf8(text.0.clone())?;
    if fault.name == "metadata-secret-wrong" {
        nova += "\n[DEFAULT]\nmetadata_proxy_shared_secret = another\n";
    }
    ns.secret(name, &[("05-nova-metadata.conf", &nova)]).await
}

/// Returns the role of a host, with the images of the demo.
async fn role(ns: &Namespace, host: &Host, fault: &Fault, has_certificate: bool) -> Result<Value> {
    let demo = Namespace::existing(&ns.client, "openstack");
    let of_demo = demo.api::<Role>().get(crate::ROLE).await?.spec.node_template;
    let of_demo = of_demo.context("the role has a template")?.ansible_vars;
    let image = |name: &str| of_demo.get(name).cloned().with_context(|| format!("no {name}"));
    let is_nowhere = fault.name == "ovn-tunnel-address";
    Ok(json!({
        "preProvisioned": true,
        "services": ["ovn"],
        "deployStrategy": { "deploy": true, "maxUnavailable": "100%" },
        "nodeTemplate": {
            "ansibleSSHPrivateKeySecret": SSH_SECRET,
            "ansibleUser": "cloud-admin",
            "ansibleVars": {
                "edpm_ovn_controller_agent_image": image("edpm_ovn_controller_agent_image")?,
                "edpm_neutron_metadata_agent_image": image("edpm_neutron_metadata_agent_image")?,
                "edpm_ovn_datapath_type": "netdev",
                "edpm_ovn_connection_retries": 10,
                "edpm_ovn_tls_enabled": has_certificate,
                "tenant_ip": if is_nowhere { NOWHERE } else { host.address.as_str() },
                "deploy_edpm_openstack_run_firewall": false,
            },
        },
    }))
}

/// Has the service fail that the fault is about.
async fn inject(ns: &Namespace, fault: &Fault) -> Result<()> {
    if fault.name.starts_with("metadata") {
        let services = json!({ "spec": { "services": ["ovn", "neutron-metadata"] } });
        ns.merge::<Role>(ROLE, services).await?;
    } else {
        ns.merge::<Node>("n0", json!({ "spec": { "deployStrategy": { "deploy": true } } })).await?;
    }
    let has_failed = |it: &Node| {
        let services = it.status.as_ref().map(|it| it.services.as_slice()).unwrap_or_default();
        services.iter().any(|it| it.state == RunState::Failed)
    };
    ns.wait::<Node>("n0", "failed", RUN, has_failed).await.map(drop)
}
