//! A node set in a cluster with address management, DNS and certificates; the test plays the
//! operators that provide them.

use std::time::Duration;

use anyhow::{Context as _, Result};
use api::ansibleee::AnsibleEe;
use api::cert_manager::Certificate;
use api::dataplane::{Deployment, NodeSet, Service};
use api::infra::{DnsData, IpSet};
use e2e::journey::RUN;
use e2e::{Namespace, SOON, holds, logins, neighbours, says};
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use serde_json::{Value, json};
use simulated_cluster::{Host, Visit};

use crate::journey;
use crate::world::World;

const SET: &str = "edpm";
/// The operator looks once a minute for kinds that were missing.
const FOUND: Duration = Duration::from_mins(10);
/// The Secret with the hosts' certificates.
const BUNDLE: &str = "edpm-agent-default-certs-0";

/// Simulates a play that writes what the runner's pod has of the host's certificate, and whether
/// plays receive it.
const PLAYBOOK: &str = "- hosts: all\n  tasks: []\n";

/// Returns what the plays have written on a host.
fn trace(host: &Host) -> Vec<String> {
    let written = |it: &Visit| {
        let name = it.variables["canonical_hostname"].as_str()?;
        let file = format!("/var/lib/openstack/certs/agent/default/{name}-tls.crt");
        let is_told = it.variables["edpm_tls_certs_enabled"].as_bool()?;
        let told = if is_told { "True" } else { "False" };
        Some(format!("{} {told}", it.files.get(&file)?))
    };
    let visits = host.visits();
    let certs = visits.iter().filter(|it| it.is_done && it.service == "certs");
    certs.map(|it| written(it).unwrap_or_default()).collect()
}

const CERTIFICATES: &str = "NodeSetCertificatesReady";

/// Waits until the node set reports that something is missing.
async fn waits(ns: &Namespace, type_: &str, reason: &str, words: &[&str]) -> Result<()> {
    let is_told = |it: &NodeSet| {
        says(it.conditions(), type_, reason, words)
            && says(it.conditions(), "SetupReady", "NotServedYet", &[type_])
    };
    ns.wait::<NodeSet>(SET, &format!("{type_} is {reason}"), FOUND, is_told).await.map(drop)
}

/// Deploys, and waits until the node set reports that its current inputs are on the host.
async fn deploy(ns: &Namespace, name: &str, overriding: &[&str]) -> Result<()> {
    let spec = json!({ "nodeSets": [SET], "servicesOverride": overriding });
    ns.create::<Deployment>(name, spec).await?;
    ns.good::<NodeSet>(SET, &["Ready", "UpToDate"], RUN).await.map(drop)
}

/// Creates a service `agent` with this certificate, and the service that brings it.
pub(crate) async fn certified_services(ns: &Namespace, cert: &Value) -> Result<()> {
    let agent = json!({ "playbookContents": PLAYBOOK, "tlsCerts": { "default": cert } });
    ns.create::<Service>("agent", agent).await?;
    let certs = json!({ "playbookContents": PLAYBOOK, "addCertMounts": true });
    ns.create::<Service>("certs", certs).await.map(drop)
}

/// Creates a node set of one host whose service `agent` has certificates.
async fn node_set(ns: &Namespace, host: &Host) -> Result<()> {
    let cert = json!({ "contents": ["dnsnames", "ips"] });
    certified_services(ns, &cert).await?;
    let mut spec = journey::node_set(&[host], &["certs", "agent"]);
    spec["tlsEnabled"] = Value::Null;
    let networks = json!([{ "name": "ctlplane", "subnetName": "subnet1" }]);
    spec["nodeTemplate"]["networks"] = networks;
    ns.create::<NodeSet>(SET, spec).await.map(drop)
}

/// Plays the other operators until the node set can be deployed.
async fn serve(ns: &Namespace, host: &Host, certificate: &str) -> Result<()> {
    waits(ns, "NodeSetIPReservationReady", "Reserving", &[&host.name]).await?;
    let asked = ns.wait::<IpSet>(&host.name, "asked for", SOON, |_| true).await?;
    let fixed = asked.spec.networks.first().and_then(|it| it.fixed_ip.as_deref());
    assert_eq!(fixed, Some(host.address.as_str()), "the human's address is not lost");
    neighbours::reserve(ns, &host.name, &host.address).await?;

    waits(ns, "NodeSetDNSDataReady", "Naming", &[]).await?;
    let asked = ns.wait::<DnsData>(SET, "asked for", SOON, |_| true).await?;
    assert_eq!(asked.spec.hosts[0].hostnames, [format!("{}.ctl.example.org", host.name)]);
    neighbours::name(ns, SET).await?;

    // Services that need no certificates may already be deployed.
    ns.reports::<NodeSet>(SET, CERTIFICATES, "Issuing", &[certificate], FOUND).await?;
    let asked = ns.wait::<Certificate>(certificate, "asked for", SOON, |_| true).await?;
    assert_eq!(asked.spec.ip_addresses.as_slice(), std::slice::from_ref(&host.address));

    // One that is not signed yet goes when certificates are switched off.
    ns.merge::<NodeSet>(SET, json!({ "spec": { "tlsEnabled": false } })).await?;
    ns.gone::<Certificate>(certificate, SOON).await?;
    ns.merge::<NodeSet>(SET, json!({ "spec": { "tlsEnabled": null } })).await?;
    ns.wait::<Certificate>(certificate, "asked for again", SOON, |_| true).await?;
    neighbours::issue(ns, certificate, "one").await?;
    ns.good::<NodeSet>(SET, &["SetupReady", CERTIFICATES], SOON).await.map(drop)
}

#[tokio::test]
async fn hosts_get_addresses_names_and_certificates_from_those_who_serve_them() -> Result<()> {
    let ns = World::new("node-set-networks").await?;
    let host = ns.host("e2e-networks", "192.168.122.204");
    journey::ssh_secret(&ns, &host).await?;
    neighbours::serve(&ns.client).await?;
    neighbours::prepare(&ns).await?;
    node_set(&ns, &host).await?;
    let certificate = format!("agent-default-{}", host.name);
    serve(&ns, &host, &certificate).await?;
    let status = ns.api::<NodeSet>().get(SET).await?.status.context("no status")?;
    assert_eq!(status.all_ips[&host.name]["ctlplane"], host.address);
    assert_eq!(status.ctlplane_search_domain.as_deref(), Some("ctl.example.org"));
    assert_eq!(status.certificates[0].secrets, [BUNDLE]);
    assert_eq!(trace(&host), [""; 0], "nothing runs by itself");

    deploy(&ns, "first", &[]).await?;
    assert_eq!(trace(&host), ["one True"]);
    let labels = ListParams::default().labels("openstackdataplaneservice=certs");
    let runs = ns.api::<AnsibleEe>().list(&labels).await?;
    let run = runs.items.first().context("no run of certs")?;
    let mounts = run.spec.extra_mounts.iter().flat_map(|it| &it.mounts);
    let paths: Vec<&str> = mounts.map(|it| it.mount_path.as_str()).collect();
    assert!(paths.contains(&"/var/lib/openstack/certs/agent/default"), "{paths:?}");

    let hashes = ns.api::<NodeSet>().get(SET).await?.status.context("no status")?.secret_hashes;
    assert!(hashes.contains_key(BUNDLE) && logins::are_hashes_in_sync(&ns).await?, "{hashes:?}");

    // A renewed certificate is named, and deployed on request.
    neighbours::issue(&ns, &certificate, "two").await?;
    let is_told = |it: &NodeSet| {
        says(it.conditions(), "UpToDate", "InputsChanged", &[BUNDLE])
            && holds(it.conditions(), "Ready")
    };
    ns.wait::<NodeSet>(SET, "out of date", SOON, is_told).await?;
    assert_eq!(trace(&host), ["one True"]);
    assert!(!logins::are_hashes_in_sync(&ns).await?, "the host has the former certificate");
    deploy(&ns, "second", &["certs"]).await?;
    assert_eq!(trace(&host), ["one True", "two True"]);
    assert!(logins::are_hashes_in_sync(&ns).await?);

    // Deleting it deletes everything.
    ns.removed::<NodeSet>(SET, SOON).await?;
    ns.gone::<IpSet>(&host.name, RUN).await?;
    ns.gone::<DnsData>(SET, RUN).await?;
    ns.gone::<Certificate>(&certificate, SOON).await?;
    ns.gone::<Secret>(&format!("cert-{certificate}"), SOON).await?;
    ns.gone::<Secret>(BUNDLE, RUN).await?;
    ns.done().await
}
