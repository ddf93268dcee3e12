//! The key with which guests move over ssh: it reaches a host with the deployments of its compute.

use anyhow::Result;
use api::dataplane::Service;
use api::nova::ExternalCompute;
use e2e::SOON;
use e2e::journey::SERVICE;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;
use simulated_cluster::{Host, PRIVATE_KEY};

use crate::computes::{self, CELL, DEPLOYED, is_settled, settled};
use crate::world::World;

const SECRET: &str = "nova-migration-ssh-key";
const WARNINGS: &str = "ConfigWarnings";

/// Returns the public key that each run of nova-compute had; empty where it had none.
fn had(host: &Host) -> Vec<String> {
    let path = "/var/lib/openstack/configs/nova/ssh-publickey";
    let visits = host.visits();
    let runs = visits.iter().filter(|it| it.is_done && it.service == "nova");
    runs.map(|it| it.files.get(path).cloned().unwrap_or_default()).collect()
}

#[tokio::test]
async fn a_key_reaches_a_deployed_host_on_request_and_another_one_by_itself() -> Result<()> {
    let (ns, host) = World::with_host("migration-key", "e2e-keyed", "192.168.122.208").await?;
    let _broker = computes::cell(&ns, ns.sim).await?;
    computes::deploy(&ns, &[&host]).await?;
    settled(&ns, &host).await?;

    ns.secret(SECRET, &[("ssh-privatekey", PRIVATE_KEY), ("ssh-publickey", "one")]).await?;
    let words = [SECRET, "nova.openstack.org/redeploy"];
    ns.reports::<ExternalCompute>(&host.name, "UpToDate", "OperatorChanged", &words, SOON).await?;
    assert_eq!(had(&host), [""], "nothing runs because of it");

    ns.annotate::<ExternalCompute>(&host.name, "nova.openstack.org/redeploy", "1").await?;
    let has_it = |it: &ExternalCompute| had(&host) == ["", "one"] && is_settled(it);
    ns.wait::<ExternalCompute>(&host.name, "deployed with it", DEPLOYED, has_it).await?;

    ns.merge::<Secret>(SECRET, json!({ "stringData": { "ssh-publickey": "two" } })).await?;
    let has_other = |it: &ExternalCompute| had(&host) == ["", "one", "two"] && is_settled(it);
    ns.wait::<ExternalCompute>(&host.name, "deployed with another", DEPLOYED, has_other).await?;
    ns.done().await
}

#[tokio::test]
async fn a_host_with_a_key_is_told_that_no_service_makes_it_trust_others() -> Result<()> {
    let (ns, host) = World::with_host("known-hosts", "e2e-trusting", "192.168.122.210").await?;
    let _broker = computes::cell(&ns, ns.sim).await?;
    ns.secret(SECRET, &[("ssh-privatekey", PRIVATE_KEY), ("ssh-publickey", "one")]).await?;
    computes::admit(&ns, &[&host], CELL).await?;
    computes::join(&ns, &host, None).await?;
    let words = ["no service of type ssh-known-hosts is in spec.services"];
    let reason = "GuestsCannotMove";
    ns.reports::<ExternalCompute>(&host.name, WARNINGS, reason, &words, SOON).await?;
    let listed = json!({ "spec": { "edpmServiceType": "ssh-known-hosts" } });
    ns.merge::<Service>(SERVICE, listed).await?;
    ns.reports::<ExternalCompute>(&host.name, WARNINGS, "NoWarnings", &[], SOON).await?;
    ns.done().await
}
