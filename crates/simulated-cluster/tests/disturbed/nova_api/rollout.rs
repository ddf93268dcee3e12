//! A rollout that drains each host before it changes it, with an operator that is killed meanwhile.

use anyhow::Result;
use api::dataplane::{Node, Role};
use api::nova::ExternalCompute;
use e2e::journey::ROLE;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::json;
use simulated_cluster::{Host, Operator};

use super::{READ, disabled, is_up, reaches, start};
use crate::computes;
use crate::own::Own;

const DRAIN_BEFORE: &str = "nova.openstack.org/drain-before";
/// What disables or enables a service.
const WRITE: &str = "PUT /v2.1/os-services/";
/// What a change of the options of nova-compute runs on a host.
const CHANGE: [&str; 2] = ["nova", "nova-registered"];

/// The options of the computes after the change.
const OPTIONS: &str = "[libvirt]\ncpu_mode = none\n";

/// Returns what ran on a host after its first `n` runs.
fn since(host: &Host, n: usize) -> Vec<String> {
    computes::of_nova(host).split_off(n)
}

/// Waits until a compute is ready with its present inputs and no drain of its host is reported.
async fn is_given_back(own: &Own, host: &Host) -> Result<()> {
    let is_there = |it: &ExternalCompute| {
        computes::is_settled(it) && it.conditions().iter().all(|it| it.type_ != "Drained")
    };
    own.wait(&host.name, "deployed and given back", computes::DEPLOYED, is_there).await.map(drop)
}

/// Lets the role drain its hosts before it changes them, one at a time.
async fn drain_before(own: &Own, hosts: &[&Host]) -> Result<()> {
    let role = json!({
        "metadata": { "annotations": { DRAIN_BEFORE: "true" } },
        "spec": { "deployStrategy": { "maxUnavailable": 1 } },
    });
    own.merge::<Role>(ROLE, role).await?;
    let one = Some(IntOrString::Int(1));
    let is_there =
        |it: &Node| it.status.as_ref().is_some_and(|status| status.max_unavailable == one);
    for host in hosts {
        own.wait(&host.name, "limited", READ, is_there).await?;
    }
    Ok(())
}

#[tokio::test]
async fn each_host_is_drained_changed_and_given_back_before_the_next_one() -> Result<()> {
    let own = start("api-rollout").await?;
    let (first, second) = own.hosts("first", "192.0.2.10", "second", "192.0.2.11");
    let _broker = computes::cell(&own, &own.sim).await?;
    computes::deploy(&own, &[&first, &second]).await?;
    for host in [&first, &second] {
        is_up(&own, host).await?;
    }
    let deployed = [&first, &second].map(|it| computes::of_nova(it).len());
    drain_before(&own, &[&first, &second]).await?;
    let nova = &own.sim.nova;
    let server = nova.boot("one", &first.name)?;
    nova.set_vm_state(&server, "paused")?;

    computes::configure(&own, &first, OPTIONS).await?;
    reaches(&own, &first, "Ready", "WaitingForDrain").await?;
    reaches(&own, &first, "Drained", "ServersStuck").await?;
    computes::configure(&own, &second, OPTIONS).await?;
    let (changed, words) = ("InputsChanged", ["It waits for its turn"]);
    own.reports::<ExternalCompute>(&second.name, "UpToDate", changed, &words, READ).await?;
    own.replace(&[Operator::Nova]).await?;
    nova.wait_for_requests("GET /v2.1/servers", 1).await?;
    for (host, n) in [&first, &second].into_iter().zip(deployed) {
        assert_eq!(since(host, n), [""; 0], "nothing runs under a server");
    }
    let marked = Some("nova.openstack.org/drain: rollout".to_owned());
    assert_eq!((disabled(&own, &first.name)?, disabled(&own, &second.name)?), (marked, None));

    nova.delete_server(&server);
    is_given_back(&own, &first).await?;
    is_given_back(&own, &second).await?;
    for (host, n) in [&first, &second].into_iter().zip(deployed) {
        assert_eq!(since(host, n), CHANGE, "{}", host.name);
    }
    assert_one_by_one(&own, &[&first, &second])?;
    assert_eq!((disabled(&own, &first.name)?, disabled(&own, &second.name)?), (None, None));
    own.done()
}

/// Asserts that each service was disabled and enabled once, that of the second host after that of
/// the first.
pub(super) fn assert_one_by_one(own: &Own, hosts: &[&Host]) -> Result<()> {
    let services = own.sim.nova.ask("GET", "/v2.1/os-services", None)?;
    let id_of = |host: &&Host| {
        let mut all = services["services"].as_array().into_iter().flatten();
        let found = all.find(|it| it["host"] == host.name.as_str());
        found.and_then(|it| it["id"].as_str()).map(str::to_owned)
    };
    let ids: Vec<String> = hosts.iter().filter_map(id_of).collect();
    let write = |id: &String| format!("{WRITE}{id}");
    let expected: Vec<String> = ids.iter().flat_map(|it| [write(it), write(it)]).collect();
    let requests = own.sim.nova.requests().into_iter().map(|it| it.line);
    let writes: Vec<String> = requests.filter(|it| it.starts_with(WRITE)).collect();
    assert_eq!(writes, expected);
    Ok(())
}
