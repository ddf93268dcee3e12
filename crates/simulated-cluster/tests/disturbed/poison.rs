//! Objects that their CRDs accept and no operator can deserialize: they block no other object, are
//! reported where their authors look, and are reconciled again once corrected.

use anyhow::{Context as _, Result, ensure};
use api::dataplane::{Node, Role};
use e2e::journey::role;
use e2e::{run, says};
use serde_json::{Value, json};
use simulated_cluster::Operator;

use crate::own::{Own, PATIENCE};

const ALL: [Operator; 3] = [Operator::AnsibleEe, Operator::DataPlane, Operator::Nova];

/// A value that nests deeper than the operators' JSON parsers accept.
fn deep() -> Value {
    nested(130)
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!("x"), |inner, _| json!({ "a": inner }))
}

/// The node's or role's free-form variables; `null` removes the deep one.
fn variables(kind: &str, value: &Value) -> Value {
    let variables = json!({ "ansibleVars": { "deep": value } });
    match kind {
        "openstackdataplanerole" => json!({ "spec": { "nodeTemplate": variables } }),
        _ => json!({ "spec": { "node": variables } }),
    }
}

/// Runs kubectl in the test's cluster and namespace: its parser accepts what the operators' does
/// not.
async fn kubectl(own: &Own, arguments: &[&str]) -> Result<String> {
    let program = own.sim.bin.join("kubectl");
    let kubeconfig = format!("--kubeconfig={}", own.sim.kubeconfig.display());
    let all = [&[kubeconfig.as_str(), "-n", &own.name], arguments].concat();
    run(program.to_str().context("a path in UTF-8")?, &all).await
}

async fn patch(own: &Own, kind: &str, name: &str, value: &Value) -> Result<()> {
    let patch = variables(kind, value).to_string();
    kubectl(own, &["patch", kind, name, "--type=merge", "-p", &patch]).await.map(drop)
}

/// Waits until `Ready` reports that the object cannot be read, with the beginning of the path.
async fn told(own: &Own, kind: &str, name: &str, path: &str) -> Result<()> {
    let ready = "{.status.conditions[?(@.type==\"Ready\")].reason}";
    let until = format!("--for=jsonpath={ready}=Unreadable");
    kubectl(own, &["wait", kind, name, &until, "--timeout=600s"]).await?;
    let message = "jsonpath={.status.conditions[?(@.type==\"Ready\")].message}";
    let message = kubectl(own, &["get", kind, name, "-o", message]).await?;
    ensure!(message.starts_with(path), "{message}");
    ensure!(message.contains("is nested deeper than 64 levels"), "{message}");
    Ok(())
}

#[tokio::test]
async fn objects_that_cannot_be_read_hold_nobody_else_and_are_taken_up_when_corrected() -> Result<()>
{
    let (own, host) = Own::deployed("poison").await?;
    own.create::<Role>("poison", role()).await?;
    patch(&own, "openstackdataplanerole", "poison", &deep()).await?;
    let manifest = json!({
        "apiVersion": "ansibleee.openstack.org/v1beta1",
        "kind": "OpenStackAnsibleEE",
        "metadata": { "namespace": own.name, "name": "poison" },
        "spec": { "playbookContents": "- hosts: all\n", "extraVars": { "deep": deep() } },
    });
    let file = std::env::temp_dir().join(format!("{}.json", own.name));
    std::fs::write(&file, manifest.to_string())?;
    let created = kubectl(&own, &["create", "-f", file.to_str().context("a path")?]).await;
    std::fs::remove_file(&file)?;
    created?;

    // The objects are in the operators' first lists.
    own.replace(&ALL).await?;
    let path = "spec.nodeTemplate.ansibleVars.deep";
    told(&own, "openstackdataplanerole", "poison", path).await?;
    own.event("OpenStackDataPlaneRole", "poison", "Unreadable").await?;
    told(&own, "openstackansibleee", "poison", "spec.extraVars.deep").await?;
    own.event("OpenStackAnsibleEE", "poison", "Unreadable").await?;
    let again = json!({ "spec": { "node": { "ansibleVars": { "greeting": "again" } } } });
    own.merge::<Node>(&host.name, again).await?;
    own.ends_well(&host, 2).await?;

    // A deployed host: nothing is removed from it, and nothing runs when it can be read again.
    // A deeper one is rejected by the webhook of nodes.
    patch(&own, "openstackdataplanenode", &host.name, &nested(80)).await?;
    told(&own, "openstackdataplanenode", &host.name, "spec.node.ansibleVars.deep").await?;
    own.replace(&ALL).await?;
    patch(&own, "openstackdataplanenode", &host.name, &Value::Null).await?;
    own.ends_well(&host, 2).await?;

    patch(&own, "openstackdataplanerole", "poison", &Value::Null).await?;
    let is_read = |it: &Role| {
        let conditions = it.conditions();
        !conditions.is_empty() && !says(conditions, "Ready", "Unreadable", &[])
    };
    own.wait::<Role>("poison", "its own condition", PATIENCE, is_read).await?;
    let node = own.api::<Node>().get(&host.name).await?;
    ensure!(e2e::holds(node.conditions(), "Ready"), "{:?}", node.conditions());
    own.done()
}
