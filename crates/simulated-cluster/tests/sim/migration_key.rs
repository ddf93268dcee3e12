//! The key with which guests move over ssh: it reaches a host with the deployments of its compute.

use anyhow::Result;
use api::nova::ExternalCompute;
use e2e::SOON;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;
use simulated_cluster::{Host, PRIVATE_KEY};

use crate::computes::{self, DEPLOYED, is_settled, settled};
use crate::world::World;

const SECRET: &str = "nova-migration-ssh-key";

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
