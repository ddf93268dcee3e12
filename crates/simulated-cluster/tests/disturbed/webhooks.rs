//! Admission as the chart has it: what its webhooks ask, and what they block while nobody answers.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use common::api::dataplane::{Node, Role, Service};
use common::api::nova::ExternalCompute;
use e2e::{Kind, Namespace};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Namespace as CoreNamespace;
use kube::api::DeleteParams;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use simulated_cluster::Operator;

use crate::own::Own;

const SOON: Duration = Duration::from_mins(1);
const CELL: &str = "nova.openstack.org/cell";
const ALLOW_REMOVAL: &str = "nova.openstack.org/allow-removal";

/// What a user does with the cell annotation.
fn cell(cell: &str) -> Value {
    json!({ "metadata": { "annotations": { CELL: cell } } })
}

/// A node of the role `compute` at an address that nobody has.
async fn node(ns: &Namespace, name: &str, cell: Option<&str>) -> Result<()> {
    let spec = json!({ "role": "compute", "hostName": name, "ansibleHost": "192.168.123.254" });
    let annotations = cell.map(|it| json!({ CELL: it })).unwrap_or_default();
    ns.create_with::<Node>(name, spec, json!({ "annotations": annotations })).await.map(drop)
}

/// Makes a change that must be refused with all of these words.
async fn refused<K: Kind>(ns: &Namespace, name: &str, change: Value, words: &[&str]) -> Result<()> {
    let text = change.to_string();
    let Err(error) = ns.merge::<K>(name, change).await else { bail!("{name}: {text} passed") };
    let error = format!("{error:#}");
    for word in words {
        assert!(error.contains(word), "{text}: {word} is not in: {error}");
    }
    Ok(())
}

#[tokio::test]
async fn with_the_operator_down_only_changes_of_cell_and_role_are_refused() -> Result<()> {
    let own = Own::start("cell-down").await?;
    let service = json!({ "playbookContents": "- hosts: all\n  tasks: []\n" });
    own.create::<Service>("noop", service).await?;
    let role = json!({
        "preProvisioned": true,
        "services": ["noop"],
        "deployStrategy": { "deploy": false },
        "nodeTemplate": { "ansibleSSHPrivateKeySecret": "key", "ansibleUser": "cloud-admin" },
    });
    let in_cell = json!({ "annotations": { CELL: "nova-cell1" } });
    own.create_with::<Role>("compute", role, in_cell).await?;
    node(&own, "n0", None).await?;
    let is_there = |it: &ExternalCompute| it.spec.cell_name == "nova-cell1";
    own.wait::<ExternalCompute>("n0", "in nova-cell1", SOON, is_there).await?;
    own.sim.operators.kill(Operator::Nova)?;

    let down = ["failed calling webhook", "cell.openstackdataplane"];
    refused::<Node>(&own, "n0", cell("nova-cell2"), &down).await?;
    refused::<Node>(&own, "n0", json!({ "spec": { "role": "other" } }), &down).await?;
    refused::<Role>(&own, "compute", cell("nova-cell2"), &down).await?;
    for change in [
        json!({ "metadata": { "finalizers": ["example.org/held"] } }),
        json!({ "metadata": { "annotations": { ALLOW_REMOVAL: "true" } } }),
        json!({ "spec": { "ansibleHost": "192.168.123.253" } }),
        json!({ "metadata": { "finalizers": null } }),
    ] {
        own.merge::<Node>("n0", change).await?;
    }
    own.merge::<Role>("compute", json!({ "metadata": { "labels": { "rack": "7" } } })).await?;
    node(&own, "n1", Some("nova-cell1")).await?;
    own.api::<Node>().delete("n1", &DeleteParams::default()).await?;
    let options = json!({ "spec": { "customServiceConfig": "[DEFAULT]\ndebug = True\n" } });
    own.merge::<ExternalCompute>("n0", options).await?;

    // Who comes back lets the namespace go.
    own.sim.operators.start(Operator::Nova)?;
    let namespaces: Api<CoreNamespace> = Api::all(own.client.clone());
    let uid = namespaces.get(&own.name).await?.metadata.uid.unwrap_or_default();
    namespaces.delete(&own.name, &DeleteParams::default()).await?;
    let gone = await_condition(namespaces, &own.name, conditions::is_deleted(&uid));
    let waited = tokio::time::timeout(Duration::from_mins(2), gone).await;
    waited.with_context(|| format!("namespace {} does not go", own.name))??;
    Ok(())
}

/// The webhooks of a configuration without the way to them, and without what the API server fills in.
fn rules(webhooks: &Value) -> Vec<Value> {
    let fields =
        ["name", "rules", "matchConditions", "failurePolicy", "sideEffects", "timeoutSeconds"];
    let more = ["matchPolicy", "admissionReviewVersions", "reinvocationPolicy"];
    let of = |it: &Value| {
        let kept = fields.iter().chain(&more).map(|name| ((*name).to_owned(), it[*name].clone()));
        Value::Object(kept.collect())
    };
    webhooks.as_array().into_iter().flatten().map(of).collect()
}

#[tokio::test]
async fn the_webhooks_ask_what_the_chart_says_and_trust_the_operators_own_certificate() -> Result<()>
{
    let own = Own::start("webhooks").await?;
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(own.client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(own.client.clone());
    let mut n_webhooks = 0;
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        for rendered in own.sim.rendered(kind) {
            let name = rendered["metadata"]["name"].as_str().context("no name")?;
            let live = match kind {
                "MutatingWebhookConfiguration" => json!(mutating.get(name).await?.webhooks),
                _ => json!(validating.get(name).await?.webhooks),
            };
            let (found, expected) = (rules(&live), rules(&rendered["webhooks"]));
            assert_eq!(found, expected, "{name}");
            for webhook in live.as_array().into_iter().flatten() {
                let config = &webhook["clientConfig"];
                assert!(config["url"].is_string() && config["caBundle"].is_string(), "{config}");
            }
            n_webhooks += found.len();
        }
    }
    assert_eq!(n_webhooks, 6);
    // They are asked: what cannot be read is refused, and a compute gets its images.
    let spec = json!({ "dataplaneNodeName": "n0", "cellName": "nova-cell1" });
    let made = own.create::<ExternalCompute>("n0", spec).await?;
    let image = made.spec.nova_compute_container_image.as_deref();
    assert_eq!(image, Some("simulated/nova-compute:1"), "{}", made.name_any());
    let bad = json!({ "spec": { "customServiceConfig": "no section = x\n[" } });
    refused::<ExternalCompute>(&own, "n0", bad, &["spec.customServiceConfig"]).await
}

#[tokio::test]
async fn without_the_release_every_object_stays_and_no_write_is_blocked() -> Result<()> {
    let own = Own::start("released").await?;
    let spec = json!({ "dataplaneNodeName": "n0", "cellName": "nova-cell1" });
    own.create::<ExternalCompute>("n0", spec).await?;
    let bad = json!({ "spec": { "customServiceConfig": "no section = x\n[" } });
    refused::<ExternalCompute>(&own, "n0", bad, &["spec.customServiceConfig"]).await?;

    for operator in Operator::ALL {
        own.sim.operators.kill(operator)?;
    }
    // Helm takes away all but the definitions, which the chart marks as kept.
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(own.client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(own.client.clone());
    for rendered in own.sim.rendered("MutatingWebhookConfiguration") {
        let name = rendered["metadata"]["name"].as_str().context("no name")?;
        mutating.delete(name, &DeleteParams::default()).await?;
    }
    for rendered in own.sim.rendered("ValidatingWebhookConfiguration") {
        let name = rendered["metadata"]["name"].as_str().context("no name")?;
        validating.delete(name, &DeleteParams::default()).await?;
    }
    assert_eq!(own.list::<ExternalCompute>().await?.len(), 1);
    let good = json!({ "spec": { "customServiceConfig": "[DEFAULT]\ndebug = True\n" } });
    own.merge::<ExternalCompute>("n0", good).await.map(drop)
}
