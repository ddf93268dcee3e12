//! Guests on hosts of a node set, which have no certificates: they move over ssh.

use anyhow::{Context as _, Result, ensure};
use api::dataplane::{Deployment, Node, NodeSet, Role};
use api::nova::ExternalCompute;
use e2e::demo::{DEPLOYMENT, Demo};
use e2e::guests::{Guest, HOSTS, until};
use e2e::journey::SSH_SECRET;
use e2e::{Host, Namespace, cells};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use crate::outlives::new_containers;
use crate::removal::is_seen_on_host;
use crate::{COMPUTE, DRAIN, DRAINED, ROLE, Stage, stage};

const SET: &str = "guests";
/// Where its hosts find OVN's southbound database without a certificate.
const SOUTHBOUND: &str = "tcp:10.96.10.17:6643";
const SERVICES: [&str; 11] = [
    "bootstrap",
    "configure-network",
    "validate-network",
    "install-os",
    "configure-os",
    "ssh-known-hosts",
    "run-os",
    "ovn",
    "neutron-metadata",
    "libvirt",
    "nova",
];
/// For hosts without KVM.
const OPTIONS: &str = "[DEFAULT]\ndebug = True\n[libvirt]\nvirt_type = qemu\ncpu_mode = custom\n\
    cpu_models = Nehalem\n";

/// Copies the demo's cell, and what the services read of the control plane.
async fn inputs(ns: &Namespace, host: &Host) -> Result<()> {
    cells::create_secrets(ns).await?;
    cells::create(ns).await?;
    // The same key opens both hosts, whose own keys are learned.
    let key = host.ssh_secret()?.into_iter().find(|it| it.0 == "ssh-privatekey");
    let (name, key) = key.context("a host has a key")?;
    ns.secret(SSH_SECRET, &[(name, &key)]).await?;
    let demo = Namespace::existing(&ns.client, "openstack");
    for name in ["combined-ca-bundle", "nova-metadata-neutron-config", "nova-migration-ssh-key"] {
        let data = demo.api::<Secret>().get(name).await?.data.unwrap_or_default();
        let text = |it: ByteString| String::from_utf8(it.0).context("a Secret of texts");
        let data: Vec<(String, String)> =
            data.into_iter().map(|(key, value)| Ok((key, text(value)?))).collect::<Result<_>>()?;
        let pairs: Vec<(&str, &str)> = data.iter().map(|it| (&*it.0, &*it.1)).collect();
        ns.secret(name, &pairs).await?;
    }
    let agent = format!("[ovn]\novn_sb_connection = {SOUTHBOUND}\n");
    let name = "neutron-ovn-metadata-agent-neutron-config";
    ns.secret(name, &[("10-neutron-metadata.conf", &agent)]).await?;
    ns.secret("libvirt-secret", &[("LibvirtPassword", "not-used-by-guests")]).await?;
    let remote = format!("ovn-remote: {SOUTHBOUND}\n");
    ns.config_map("ovncontroller-config", &[("ovsdb-config", &remote)]).await?;
    ns.config_map("nova-extra-config", &[("25-nova-qemu.conf", OPTIONS)]).await
}

/// Returns the node set of these hosts, with the images of the demo.
async fn spec(demo: &Demo, hosts: &[&Host]) -> Result<Value> {
    let compute = demo.ns.api::<ExternalCompute>().get(HOSTS[0]).await?.spec;
    let role = demo.ns.api::<Role>().get(ROLE).await?.spec;
    let of_role = role.node_template.context("the role has a template")?.ansible_vars;
    let node = |it: &&Host| {
        let vars = json!({
            "canonical_hostname": it.name, "ctlplane_ip": it.address,
            "tenant_ip": it.tenant_address(),
        });
        let ansible = json!({ "ansibleHost": it.address, "ansibleVars": vars });
        (it.name.clone(), json!({ "hostName": it.name, "ansible": ansible }))
    };
    let of_role =
        |name: &str| of_role.get(name).cloned().with_context(|| format!("the role has no {name}"));
    let vars = json!({
        "edpm_nova_compute_image": compute.nova_compute_container_image,
        "edpm_nova_libvirt_image": compute.nova_libvirt_container_image,
        "edpm_ovn_controller_agent_image": of_role("edpm_ovn_controller_agent_image")?,
        "edpm_neutron_metadata_agent_image": of_role("edpm_neutron_metadata_agent_image")?,
        "edpm_ovn_datapath_type": "netdev",
    });
    Ok(json!({
        "preProvisioned": true,
        "tlsEnabled": false,
        "services": SERVICES,
        "nodeTemplate": {
            "ansibleSSHPrivateKeySecret": SSH_SECRET,
            "ansible": { "ansibleUser": "cloud-admin", "ansibleVars": vars },
        },
        "nodes": hosts.iter().map(node).collect::<serde_json::Map<_, _>>(),
    }))
}

/// Deploys the hosts once, and has nova map them.
async fn deployed(demo: &Demo, ns: &Namespace, hosts: &[&Host]) -> Result<()> {
    ns.create::<NodeSet>(SET, spec(demo, hosts).await?).await?;
    ns.create::<Deployment>("first", json!({ "nodeSets": [SET] })).await?;
    ns.good::<Deployment>("first", &["Ready"], DEPLOYMENT * 2).await?;
    demo.discover_hosts().await?;
    for host in hosts {
        let mapped = demo.hypervisor(&host.name).await?;
        ensure!(mapped.is_some(), "nova does not list {}", host.name);
    }
    Ok(())
}

/// Lets nova schedule nothing to the role's hosts of the cell, or gives them back.
async fn reserve(demo: &Demo, drain: Option<&str>) -> Result<()> {
    let status = if drain.is_some() { "disabled" } else { "enabled" };
    for host in HOSTS {
        demo.annotate(host, json!({ DRAIN: drain })).await?;
        until(&format!("the service of {host} is {status}"), DEPLOYMENT, async || {
            let service = demo.service(host).await?.context("it has a service")?;
            ensure!(service.0 == status, "{service:?}");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// Deploys again what guests are served by.
async fn deployed_again(ns: &Namespace) -> Result<()> {
    let services = ["ovn", "neutron-metadata", "libvirt", "nova"];
    let spec = json!({ "nodeSets": [SET], "servicesOverride": services });
    ns.create::<Deployment>("second", spec).await?;
    ns.good::<Deployment>("second", &["Ready"], DEPLOYMENT).await.map(drop)
}

/// Drains the first host, makes its containers anew beneath the guest that has come back, and takes it out
/// of the node set.
async fn lived(demo: &Demo, ns: &Namespace, [first, second]: [&Host; 2]) -> Result<()> {
    let mut guest = Guest::on(demo, "t-set", &first.name).await?;
    ns.annotate::<Node>(&first.name, DRAIN, "migrate").await?;
    ns.good::<Node>(&first.name, &[DRAINED], DEPLOYMENT).await?;
    assert_eq!(guest.host(demo).await?, second.name);
    guest.lives(demo).await?;
    ns.annotate::<Node>(&first.name, DRAIN, Value::Null).await?;
    let is_quiet = |it: &Node| it.conditions().iter().all(|it| it.type_ != DRAINED);
    ns.wait::<Node>(&first.name, "given back", DEPLOYMENT, is_quiet).await?;

    guest.migrate(demo, &first.name).await?;
    guest.lives(demo).await?;
    new_containers(demo, &first.name, &mut guest, async || deployed_again(ns).await).await?;
    let leaves = json!({ "spec": { "nodes": { &first.name: null } } });
    ns.merge::<NodeSet>(SET, leaves).await?;
    let (held, words) = ("ServersOnHost", ["1 server and"]);
    ns.reports::<Node>(&first.name, COMPUTE, held, &words, DEPLOYMENT).await?;
    is_seen_on_host(demo, ns, &guest, &first.name).await?;
    ns.reports::<Node>(&first.name, COMPUTE, held, &words, DEPLOYMENT).await?;
    guest.migrate(demo, &second.name).await?;
    ns.gone::<Node>(&first.name, DEPLOYMENT).await?;
    assert_eq!(demo.service(&first.name).await?, None);
    assert!(demo.agents(&first.name).await?.is_empty(), "its agents are left");
    assert!(!demo.chassis().await?.contains(&first.name), "its chassis is left");
    guest.lives(demo).await?;
    demo.guest(&["delete", &guest.name]).await.map(drop)
}

#[tokio::test]
async fn guests_of_a_node_set_outlive_new_containers_and_leave_a_host_that_goes() -> Result<()> {
    let Stage { demo, _lock } = stage().await?;
    let ns = Namespace::new("guests").await?;
    let first = Host::start(&ns.client, "e2e-guests-a", "192.168.122.120").await?;
    let second = first.start_beside("e2e-guests-b", "192.168.122.121").await?;
    let hosts = [&first, &second];
    for host in hosts {
        host.ssh("sudo systemctl start edpm-tenant.service").await?;
    }
    inputs(&ns, &first).await?;
    deployed(&demo, &ns, &hosts).await?;
    reserve(&demo, Some("wait")).await?;
    let lived = lived(&demo, &ns, hosts).await;
    reserve(&demo, None).await?;
    lived?;
    ns.removed::<NodeSet>(SET, DEPLOYMENT).await?;
    for host in hosts {
        host.stop().await?;
    }
    ns.done().await
}
