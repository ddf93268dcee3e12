//! A role with `tlsEnabled` in a cluster with cert-manager, which the test plays: certificates reach
//! its hosts and their computes, and renewed ones do by themselves.

use anyhow::{Context as _, Result};
use api::cert_manager::{Certificate, Issuer};
use api::dataplane::{Node, Role, Service};
use api::nova::ExternalCompute;
use e2e::journey::{ROLE, RUN, ready, role};
use e2e::{Namespace, SOON, holds, neighbours};
use serde_json::json;
use simulated_cluster::{Host, Visit};

use crate::computes::{self, CELL, DEPLOYED, in_cell, is_settled, of_nova, settled};
use crate::deployment::at_work;
use crate::node_set_networks::certified_services;
use crate::world::World;

/// Simulates a play that writes what the runner's pod has of the host's certificate.
const PLAYBOOK: &str = "- hosts: all\n  tasks: []\n";

/// Creates a role in the cell, whose service `agent` has a certificate that `certs` brings.
async fn certified_role(ns: &Namespace, host: &Host) -> Result<()> {
    let labels = json!({ "osp-rootca-issuer-internal": "", "osp-rootca-issuer-libvirt": "" });
    ns.create_with::<Issuer>("hosts", json!({}), json!({ "labels": labels })).await?;
    let cert = json!({ "contents": ["dnsnames", "ips"], "networks": ["ctlplane"] });
    certified_services(ns, &cert).await?;
    computes::access(ns, &[host]).await?;
    let mut spec = role();
    spec["tlsEnabled"] = json!(true);
    spec["services"] = json!(["certs", "agent"]);
    ns.create_with::<Role>(ROLE, spec, in_cell(CELL)).await.map(drop)
}

/// Returns what the runs of a service had as the host's certificate of a service's type, and whether
/// plays knew that it has one.
fn had(host: &Host, service: &str, type_: &str) -> Vec<String> {
    let file = |it: &Visit| {
        let name = it.variables["canonical_hostname"].as_str()?;
        let path = format!("/var/lib/openstack/certs/{type_}/default/{name}-tls.crt");
        let is_told = it.variables["edpm_tls_certs_enabled"].as_bool()?;
        Some(format!("{} {is_told}", it.files.get(&path)?))
    };
    let visits = host.visits();
    let runs = visits.iter().filter(|it| it.is_done && it.service == service);
    runs.map(|it| file(it).unwrap_or_default()).collect()
}

/// Waits until a node was deployed with another certificate than before.
async fn renewed(ns: &Namespace, host: &Host, secret: &str) -> Result<()> {
    let digest = |it: &Node| it.status.as_ref()?.deployed_inputs.get(secret).cloned();
    let before = digest(&ns.api::<Node>().get(&host.name).await?).context("no input")?;
    neighbours::issue(ns, secret.trim_start_matches("Secret cert-"), "two").await?;
    let is_new =
        |it: &Node| digest(it).is_some_and(|it| it != before) && holds(it.conditions(), "UpToDate");
    ns.wait::<Node>(&host.name, "deployed with it", RUN, is_new).await.map(drop)
}

#[tokio::test]
async fn hosts_of_a_role_and_their_computes_get_certificates_and_renewed_ones_by_themselves()
-> Result<()> {
    let ns = World::new("role-certificates").await?;
    let host = ns.host("e2e-certified", "192.168.122.207");
    neighbours::serve(&ns.client).await?;
    let _broker = computes::cell(&ns, ns.sim).await?;
    certified_role(&ns, &host).await?;
    computes::join(&ns, &host, None).await?;

    let certificate = format!("agent-default-{}", host.name);
    let words = [certificate.as_str(), "is not ready"];
    ns.reports::<Node>(&host.name, "InputReady", "Issuing", &words, RUN).await?;
    let asked = ns.api::<Certificate>().get(&certificate).await?.spec;
    assert_eq!(asked.ip_addresses.as_slice(), std::slice::from_ref(&host.address));
    assert_eq!(asked.dns_names.as_slice(), std::slice::from_ref(&host.name));
    assert_eq!(had(&host, "certs", "agent"), [""; 0], "nothing runs without it");
    neighbours::issue(&ns, &certificate, "one").await?;
    ready(&ns, &host.name).await?;
    assert_eq!(had(&host, "certs", "agent"), ["one true"]);

    let of_libvirt = format!("compute-libvirt-default-{}", host.name);
    ns.reports::<ExternalCompute>(&host.name, "InputReady", "Issuing", &[&of_libvirt], DEPLOYED)
        .await?;
    assert_eq!(of_nova(&host), [""; 0]);
    ns.wait::<Certificate>(&of_libvirt, "asked for", SOON, |_| true).await?;
    neighbours::issue(&ns, &of_libvirt, "one").await?;
    settled(&ns, &host).await?;
    assert_eq!(had(&host, "libvirt", "libvirt"), ["one true"]);
    assert_eq!(of_nova(&host), ["libvirt", "nova", "nova-registered"]);

    // A renewed one is deployed by what brings it, and by nothing else.
    renewed(&ns, &host, &format!("Secret cert-{certificate}")).await?;
    assert_eq!(had(&host, "certs", "agent"), ["one true", "two true"]);
    assert_eq!(host.visits().iter().filter(|it| it.service == "agent").count(), 1);
    neighbours::issue(&ns, &of_libvirt, "two").await?;
    let is_new = |it: &ExternalCompute| {
        had(&host, "libvirt", "libvirt") == ["one true", "two true"] && is_settled(it)
    };
    ns.wait::<ExternalCompute>(&host.name, "deployed with it", DEPLOYED, is_new).await?;
    let after = ["libvirt", "nova", "nova-registered", "libvirt", "nova-registered"];
    assert_eq!(of_nova(&host), after);
    ns.done().await
}

#[tokio::test]
async fn certificates_that_were_not_signed_yet_go_when_tls_is_switched_off() -> Result<()> {
    let ns = World::new("role-certificates-unsigned").await?;
    let host = ns.host("e2e-unsigned", "192.168.122.209");
    neighbours::serve(&ns.client).await?;
    let _broker = computes::cell(&ns, ns.sim).await?;
    ns.create::<Service>("first", json!({ "playbookContents": PLAYBOOK })).await?;
    certified_role(&ns, &host).await?;
    let services = json!({ "spec": { "services": ["first", "certs", "agent"] } });
    ns.merge::<Role>(ROLE, services).await?;
    host.hold("first");
    computes::join(&ns, &host, None).await?;
    let tls = |is_enabled: bool| json!({ "spec": { "tlsEnabled": is_enabled } });

    // Those of the role, which stay while one of its runs is open.
    let certificate = format!("agent-default-{}", host.name);
    at_work(&ns, "first").await?;
    ns.wait::<Certificate>(&certificate, "asked for", SOON, |_| true).await?;
    ns.merge::<Role>(ROLE, tls(false)).await?;
    let is_without = |it: &Node| it.status.as_ref().is_some_and(|it| it.tls.is_none());
    ns.wait::<Node>(&host.name, "without certificates", SOON, is_without).await?;
    ns.api::<Certificate>().get(&certificate).await?;
    host.release();
    ns.gone::<Certificate>(&certificate, RUN).await?;

    // That of libvirt.
    ns.merge::<Role>(ROLE, tls(true)).await?;
    ns.wait::<Certificate>(&certificate, "asked for again", RUN, |_| true).await?;
    neighbours::issue(&ns, &certificate, "one").await?;
    let of_libvirt = format!("compute-libvirt-default-{}", host.name);
    ns.wait::<Certificate>(&of_libvirt, "asked for", DEPLOYED, |_| true).await?;
    ns.merge::<Role>(ROLE, tls(false)).await?;
    ns.gone::<Certificate>(&of_libvirt, DEPLOYED).await?;
    ns.done().await
}
