//! Hosts on Metal3 machines, from empty ones and back; the test plays Metal3.

use std::time::Duration;

use anyhow::{Context as _, Result};
use api::baremetal::BaremetalSet;
use api::metal3::BareMetalHost;
use e2e::{Namespace, SOON, metal3, says};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::json;

use crate::world::World;

const SET: &str = "metal";
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGzp0V5eeyEtRfB9K6gGXv6ooeyTVhGqvHLVIWNQ5vJv";
const IMAGE: &str = "https://images.example.org/edpm.qcow2";
const CHECKSUM: &str = "https://images.example.org/edpm.qcow2.sha256";
/// The operator looks once a minute for a kind that was missing.
const FOUND: Duration = Duration::from_mins(10);
/// A foreign finalizer that keeps the set.
const NEEDED: &str = "example.org/needed";
const PROVISIONED: &str = "OpenStackBaremetalSetBmhProvisioningReady";

/// Creates a set of two hosts.
async fn set(ns: &Namespace) -> Result<()> {
    ns.secret("keys", &[("authorized_keys", KEY)]).await?;
    let spec = json!({
        "provisioner": "metal3",
        "bmhNamespace": ns.name,
        "bmhLabelSelector": { "rack": "one" },
        "hardwareReqs": { "memReqs": { "gbReq": { "gb": 32 } } },
        "osImageDeploymentType": "PassThrough",
        "osContainerImageUrl": IMAGE,
        "osImageChecksum": CHECKSUM,
        "deploymentSSHSecret": "keys",
        "ctlplaneInterface": "eth0",
        "ctlplaneGateway": "192.0.2.1",
        "baremetalHosts": {
            "a": { "ctlPlaneIP": "192.0.2.10/24" }, "b": { "ctlPlaneIP": "192.0.2.11/24" },
        },
    });
    ns.create::<BaremetalSet>(SET, spec).await.map(drop)
}

/// Waits until a machine is requested, and returns it.
async fn asked(ns: &Namespace, name: &str) -> Result<BareMetalHost> {
    let is_asked = |it: &BareMetalHost| it.spec.image.is_some() && it.spec.consumer_ref.is_some();
    ns.wait::<BareMetalHost>(name, "asked for", FOUND, is_asked).await
}

/// Waits until a machine being released still belongs to the set, then removes its system.
async fn taken_back(ns: &Namespace, name: &str) -> Result<()> {
    let is_back = |it: &BareMetalHost| {
        it.spec.image.is_none() && !it.spec.online && it.spec.user_data.is_none()
    };
    ns.wait::<BareMetalHost>(name, "taken back", SOON, is_back).await?;
    metal3::comes_to(ns, name, "deprovisioning", false).await?;
    let is_seen = |it: &BaremetalSet| {
        let hosts = it.status.iter().flat_map(|it| it.baremetal_hosts.values());
        hosts
            .into_iter()
            .any(|it| it.bmh_ref.ends_with(name) && it.provisioning_state == "deprovisioning")
    };
    ns.wait::<BaremetalSet>(SET, "aware of the deprovisioning", SOON, is_seen).await?;
    let machine = ns.api::<BareMetalHost>().get(name).await?;
    assert!(machine.spec.consumer_ref.is_some(), "nobody takes a machine that is half erased");
    metal3::comes_to(ns, name, "available", false).await?;
    let is_free =
        |it: &BareMetalHost| it.spec.consumer_ref.is_none() && it.labels().keys().eq(["rack"]);
    ns.wait::<BareMetalHost>(name, "free", SOON, is_free).await.map(drop)
}

/// Adds or removes the foreign finalizer of the set.
async fn held(ns: &Namespace, is_held: bool) -> Result<()> {
    let set = ns.api::<BaremetalSet>().get(SET).await?;
    let others = set.finalizers().iter().map(String::as_str).filter(|it| *it != NEEDED);
    let finalizers: Vec<&str> = others.chain(is_held.then_some(NEEDED)).collect();
    // Fails on a concurrent write.
    let version = set.resource_version();
    let change = json!({ "metadata": { "finalizers": finalizers, "resourceVersion": version } });
    ns.merge::<BaremetalSet>(SET, change).await.map(drop)
}

/// Returns the Secrets that were created for hosts of a set.
async fn secrets(ns: &Namespace) -> Result<Vec<Secret>> {
    let labels = ListParams::default().labels("openstackbaremetalset.openstack.org/name=metal");
    Ok(ns.api::<Secret>().list(&labels).await?.items)
}

#[tokio::test]
async fn machines_of_metal3_become_hosts_and_are_given_back_without_leaving_a_secret() -> Result<()>
{
    let ns = World::new("metal3").await?;
    metal3::serve(&ns.client).await?;
    set(&ns).await?;
    let none = "there is no BareMetalHost";
    ns.reports::<BaremetalSet>(SET, PROVISIONED, "NoMachine", &[none], FOUND).await?;
    for name in ["m0", "m1"] {
        metal3::available(&ns, name, json!({ "rack": "one" })).await?;
    }
    metal3::available(&ns, "m2", json!({ "rack": "two" })).await?;

    for (name, host) in [("m0", "a"), ("m1", "b")] {
        let machine = asked(&ns, name).await?;
        assert_eq!(machine.labels()["metal-osbms-hostname"], host);
        let image = machine.spec.image.clone().context("no image")?;
        assert_eq!((image.url.as_str(), image.checksum.as_deref()), (IMAGE, Some(CHECKSUM)));
        let secret =
            machine.spec.user_data.clone().and_then(|it| it.name).context("no userData")?;
        assert_eq!(secret, format!("metal-cloudinit-userdata-{host}"));
        let secret = ns.api::<Secret>().get(&secret).await?;
        assert_eq!(Some(&secret.owner_references()[0].uid), machine.metadata.uid.as_ref());
        assert!(secret.data.context("no data")?.contains_key("userData"));
        metal3::comes_to(&ns, name, "provisioning", false).await?;
    }
    let words = "Image provisioning failed: no such image";
    metal3::fails(&ns, "m0", "provisioning error", words).await?;
    let is_told = |it: &BaremetalSet| {
        let told = it.status.as_ref().and_then(|it| it.baremetal_hosts.get("a"));
        says(it.conditions(), PROVISIONED, "MachineFailed", &["provisioning error", words])
            && told.and_then(|it| it.error.as_ref()).is_some_and(|it| it.contains(words))
    };
    ns.wait::<BaremetalSet>(SET, "in error, in Metal3's words", SOON, is_told).await?;
    for name in ["m0", "m1"] {
        metal3::comes_to(&ns, name, "provisioned", true).await?;
    }
    ns.good::<BaremetalSet>(SET, &["Ready"], SOON).await?;
    assert_eq!(secrets(&ns).await?.len(), 6);

    let change = json!({ "spec": { "baremetalHosts": { "a": null } } });
    ns.merge::<BaremetalSet>(SET, change).await?;
    taken_back(&ns, "m0").await?;
    for part in ["userdata", "networkdata", "metadata"] {
        ns.gone::<Secret>(&format!("metal-cloudinit-{part}-a"), SOON).await?;
    }
    assert_eq!(secrets(&ns).await?.len(), 3);

    held(&ns, true).await?;
    ns.remove::<BaremetalSet>(SET).await?;
    ns.reports::<BaremetalSet>(SET, PROVISIONED, "DeletionWaits", &[NEEDED], SOON).await?;
    let machine = ns.api::<BareMetalHost>().get("m1").await?;
    assert!(machine.spec.image.is_some() && machine.spec.consumer_ref.is_some());
    assert!(machine.spec.online, "somebody still needs it");
    held(&ns, false).await?;
    taken_back(&ns, "m1").await?;
    ns.gone::<BaremetalSet>(SET, SOON).await?;
    assert_eq!(secrets(&ns).await?.len(), 0);
    ns.done().await
}
