//! Computes that go: what is done on their hosts, what is told, and what keeps whom for how long.
//!
//! The hosts have a unit of nova-compute's name that does nothing else. That a compute has run is
//! written into its status by the test, which is what the operator itself does before a first run.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use common::api::ansibleee::AnsibleEe;
use common::api::dataplane::{Node, Role};
use common::api::nova::{Cell, ExternalCompute, Leftover};
use common::conditions::Condition;
use e2e::cells::{self, CELL};
use e2e::journey::{self, ready};
use e2e::{Host, Namespace, operator, run, says};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace as CoreNamespace};
use kube::api::{DeleteParams, PropagationPolicy};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::RwLock;

/// How long a compute may take to go when its host answers.
const GOES: Duration = Duration::from_mins(2);
/// How long when it does not: three attempts with their pauses.
const GIVEN_UP: Duration = Duration::from_mins(5);
const SOON: Duration = Duration::from_secs(30);
const UNIT: &str = "edpm_nova_compute.service";

/// Tests that stop nova-operator take it alone.
static OPERATOR: RwLock<()> = RwLock::const_new(());

fn annotations(name: &str, value: impl Into<Value>) -> Value {
    json!({ "metadata": { "annotations": { name: value.into() } } })
}

/// A ready node whose host runs something under nova-compute's unit, with a compute that has run.
async fn world(test: &str, address: &str) -> Result<(Namespace, Host)> {
    let ns = Namespace::new(test).await?;
    let host = Host::start(&ns.client, &format!("e2e-{test}"), address).await?;
    journey::ssh_secret(&ns, &host).await?;
    journey::deploy(&ns, &[&host]).await?;
    ready(&ns, &host.name).await?;
    let unit = format!(
        "printf '[Service]\\nExecStart=/bin/sleep infinity\\nRestart=always\\n[Install]\\n\
         WantedBy=multi-user.target\\n' | sudo tee /etc/systemd/system/{UNIT} >/dev/null && \
         sudo systemctl daemon-reload && sudo systemctl enable --now {UNIT}"
    );
    host.ssh(&unit).await?;
    assert_eq!(states(&host).await?, "enabled active");
    cells::create_unusable(&ns).await?;
    ns.merge::<Node>(&host.name, annotations("nova.openstack.org/cell", CELL)).await?;
    has_run(&ns, &host.name).await?;
    Ok((ns, host))
}

/// Records that the node's compute has run, and waits until all that its end needs is there.
async fn has_run(ns: &Namespace, name: &str) -> Result<()> {
    cells::wait_until_reachable(ns, name, SOON).await?;
    cells::record_run(ns, name).await?;
    ns.wait::<Cell>(CELL, "held", SOON, |it| it.finalizers().len() == 1).await?;
    let is_held_by_both = |it: &Node| it.finalizers().len() == 2;
    ns.wait::<Node>(name, "held by both operators", SOON, is_held_by_both).await.map(drop)
}

/// Whether the unit starts with the host, and whether it runs.
async fn states(host: &Host) -> Result<String> {
    let command = format!(
        "echo $(systemctl is-enabled {UNIT}) $(systemctl show --property=ActiveState --value {UNIT})"
    );
    Ok(host.ssh(&command).await?.trim().to_owned())
}

async fn delete(ns: &Namespace, node: &str, how: PropagationPolicy) -> Result<()> {
    let params = DeleteParams { propagation_policy: Some(how), ..DeleteParams::default() };
    ns.api::<Node>().delete(node, &params).await?;
    Ok(())
}

/// What the cell remembers.
async fn leftovers(ns: &Namespace) -> Result<Vec<Leftover>> {
    let status = ns.api::<Cell>().get(CELL).await?.status;
    Ok(status.map(|it| it.leftovers).unwrap_or_default())
}

/// Waits until the node is gone, and asserts that nothing else is left of it in the cluster.
async fn gone(ns: &Namespace, node: &str, within: Duration) -> Result<()> {
    ns.gone::<Node>(node, within).await?;
    assert!(ns.api::<ExternalCompute>().get_opt(node).await?.is_none(), "its compute goes first");
    ns.gone::<ConfigMap>(&format!("dataplanenode-{node}"), SOON).await?;
    for it in ns.list::<AnsibleEe>().await? {
        if it.name_any().starts_with(&format!("nova-cleanup-{node}-")) {
            ns.gone::<AnsibleEe>(&it.name_any(), SOON).await?;
        }
    }
    Ok(())
}

async fn node_says(ns: &Namespace, node: &str, reason: &str, words: &[&str]) -> Result<()> {
    let of = |it: &Node| -> Vec<Condition> {
        it.status.as_ref().map(|it| it.conditions.clone()).unwrap_or_default()
    };
    let is_said = |it: &Node| says(&of(it), "nova.openstack.org/Compute", reason, words);
    ns.wait::<Node>(node, &format!("{reason} with {words:?}"), GOES, is_said).await.map(drop)
}

#[tokio::test]
async fn a_deleted_node_stops_nova_compute_on_its_host_and_leaves_word_in_its_cell() -> Result<()> {
    let _operator = OPERATOR.read().await;
    let policies = [
        ("removal-back", "192.168.122.180", PropagationPolicy::Background),
        ("removal-fore", "192.168.122.181", PropagationPolicy::Foreground),
    ];
    for (test, address, policy) in policies {
        let (ns, host) = world(test, address).await?;
        delete(&ns, &host.name, policy).await?;
        gone(&ns, &host.name, GOES).await?;
        assert_eq!(states(&host).await?, "disabled inactive");
        let [left] = &leftovers(&ns).await?[..] else { bail!("the cell does not remember it") };
        assert_eq!((left.host_name.as_str(), left.stopped), (host.name.as_str(), true));
        ns.event("NovaExternalCompute", &host.name, "HostCleaned").await?;
        ns.event("OpenStackDataPlaneNode", &host.name, "LeftInNova").await?;
        ns.event("NovaCell", CELL, "LeftInNova").await?;
        host.stop().await?;
        ns.done().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_compute_that_goes_alone_leaves_its_node_in_service_and_may_come_back() -> Result<()> {
    let _operator = OPERATOR.read().await;
    let (ns, host) = world("removal-alone", "192.168.122.182").await?;
    let mut away = annotations("nova.openstack.org/cell", "");
    away["metadata"]["annotations"]["nova.openstack.org/allow-removal"] = json!("true");
    ns.merge::<Node>(&host.name, away).await?;
    ns.gone::<ExternalCompute>(&host.name, GOES).await?;
    assert_eq!(states(&host).await?, "disabled inactive");
    let is_free = |it: &Node| it.finalizers() == ["dataplane.openstack.org/inventory"];
    ns.wait::<Node>(&host.name, "released by nova-operator", SOON, is_free).await?;
    ready(&ns, &host.name).await?;

    ns.merge::<Node>(&host.name, annotations("nova.openstack.org/cell", CELL)).await?;
    has_run(&ns, &host.name).await?;
    host.ssh(&format!("sudo systemctl enable --now {UNIT}")).await?;
    let first = ns.api::<ExternalCompute>().get(&host.name).await?;
    ns.api::<ExternalCompute>().delete(&host.name, &DeleteParams::default()).await?;
    let is_another =
        |it: &ExternalCompute| it.uid() != first.uid() && it.metadata.deletion_timestamp.is_none();
    ns.wait::<ExternalCompute>(&host.name, "made again", GOES, is_another).await?;
    assert_eq!(states(&host).await?, "disabled inactive");
    host.stop().await?;
    ns.done().await
}

#[tokio::test]
async fn a_dead_host_keeps_its_node_for_a_few_minutes_or_until_a_human_says_so() -> Result<()> {
    let _operator = OPERATOR.read().await;
    let (ns, host) = world("removal-dead", "192.168.122.183").await?;
    let other = "e2e-skipped";
    journey::node(&ns, other, "192.168.123.254").await?;
    ns.merge::<Node>(other, annotations("nova.openstack.org/cell", CELL)).await?;
    has_run(&ns, other).await?;
    host.stop().await?;
    for node in [host.name.as_str(), other] {
        delete(&ns, node, PropagationPolicy::Background).await?;
    }
    let words = ["could not be stopped", "nova.openstack.org/skip-cleanup=true"];
    node_says(&ns, other, "HostUnreachable", &words).await?;
    ns.merge::<Node>(other, annotations("nova.openstack.org/skip-cleanup", "true")).await?;
    gone(&ns, other, SOON).await?;
    ns.event("NovaExternalCompute", other, "CleanupSkipped").await?;
    gone(&ns, &host.name, GIVEN_UP).await?;
    ns.event("NovaExternalCompute", &host.name, "HostNotCleaned").await?;
    let left = leftovers(&ns).await?;
    assert_eq!(left.iter().filter(|it| !it.stopped).count(), 2, "{left:?}");
    ns.done().await
}

#[tokio::test]
async fn a_cell_stays_while_it_has_computes_and_a_namespace_goes_at_once() -> Result<()> {
    let _operator = OPERATOR.read().await;
    let (ns, host) = world("removal-space", "192.168.122.184").await?;
    host.stop().await?;
    ns.api::<Cell>().delete(CELL, &DeleteParams::default()).await?;
    let of = |it: &Cell| it.status.as_ref().map(|it| it.conditions.clone()).unwrap_or_default();
    let words = ["1 do: ", host.name.as_str()];
    let is_held = |it: &Cell| says(&of(it), "Released", "CellInUse", &words);
    ns.wait::<Cell>(CELL, "held", SOON, is_held).await?;
    ns.event("NovaCell", CELL, "CellInUse").await?;

    let namespaces: Api<CoreNamespace> = Api::all(ns.client.clone());
    let uid = namespaces.get(&ns.name).await?.metadata.uid.unwrap_or_default();
    namespaces.delete(&ns.name, &DeleteParams::default()).await?;
    let gone = await_condition(namespaces, &ns.name, conditions::is_deleted(&uid));
    let waited = tokio::time::timeout(Duration::from_secs(90), gone).await;
    waited.with_context(|| format!("namespace {} does not go", ns.name))??;
    Ok(())
}

#[tokio::test]
async fn an_operator_that_was_down_meanwhile_cleans_up_when_it_is_back() -> Result<()> {
    let _operator = OPERATOR.write().await;
    let (ns, host) = world("removal-down", "192.168.122.185").await?;
    let stopped = operator::stop(&ns.client, "nova-operator").await?;
    delete(&ns, &host.name, PropagationPolicy::Background).await?;
    // dataplane-operator counts the node no more, and waits for the other one to let it go.
    let has_looked = |it: &Role| it.status.as_ref().is_some_and(|it| it.nodes == 0);
    ns.wait::<Role>(journey::ROLE, "without nodes", SOON, has_looked).await?;
    assert_eq!(ns.api::<Node>().get(&host.name).await?.finalizers().len(), 2);
    let inventory = format!("dataplanenode-{}", host.name);
    assert!(ns.api::<ConfigMap>().get_opt(&inventory).await?.is_some());
    assert_eq!(states(&host).await?, "enabled active");
    stopped.kill().await?.is_back().await?;
    gone(&ns, &host.name, GOES).await?;
    assert_eq!(states(&host).await?, "disabled inactive");
    host.stop().await?;
    ns.done().await
}

/// The command in the docs that takes our finalizers off, for one namespace.
fn release_command(ns: &Namespace) -> Result<String> {
    let docs = include_str!("../../docs/install.md");
    let blocks = docs.split("```sh\n").skip(1).filter_map(|it| it.split("```").next());
    let block = blocks.into_iter().find(|it| it.contains("finalizers"));
    let block = block.context("docs/install.md has no command that releases finalizers")?;
    assert!(block.contains(" -A "), "{block}");
    Ok(block.replace(" -A ", &format!(" -n {} ", ns.name)))
}

/// Gives the command until node and compute are gone: an object that changes meanwhile is left for the next
/// time.
async fn released(ns: &Namespace, node: &str) -> Result<()> {
    let command = release_command(ns)?;
    let mut said = String::new();
    for _ in 0..3 {
        said = match run("sh", &["-c", &command]).await {
            Ok(text) => text,
            Err(error) => format!("{error:#}"),
        };
        let a_moment = Duration::from_secs(10);
        if ns.gone::<Node>(node, a_moment).await.is_ok()
            && ns.gone::<ExternalCompute>(node, a_moment).await.is_ok()
        {
            return Ok(());
        }
    }
    bail!("{node} is still there: {said}")
}

#[tokio::test]
async fn what_an_uninstalled_operator_holds_is_released_by_the_documented_command() -> Result<()> {
    let _operator = OPERATOR.write().await;
    let (ns, host) = world("removal-docs", "192.168.122.186").await?;
    let held = json!({ "metadata": { "finalizers": ["example.org/held"] } });
    ns.merge::<Role>(journey::ROLE, held).await?;
    let is_held_by_both = |it: &Role| it.finalizers().len() == 2;
    ns.wait::<Role>(journey::ROLE, "held once more", SOON, is_held_by_both).await?;
    let stopped = operator::stop(&ns.client, "nova-operator").await?;
    delete(&ns, &host.name, PropagationPolicy::Background).await?;
    let released = released(&ns, &host.name).await;
    stopped.kill().await?.is_back().await?;
    released?;
    let role = ns.api::<Role>().get(journey::ROLE).await?;
    let theirs = "example.org/held".to_owned();
    assert!(role.finalizers().contains(&theirs), "others' finalizers are theirs");
    ns.merge::<Role>(journey::ROLE, json!({ "metadata": { "finalizers": null } })).await?;
    assert_eq!(states(&host).await?, "enabled active", "nobody touched the host");
    host.stop().await?;
    ns.done().await
}
