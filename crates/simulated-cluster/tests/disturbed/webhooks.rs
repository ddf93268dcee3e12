//! The chart's webhooks while they are unavailable, and after they are uninstalled: what they
//! block.

use anyhow::{Context as _, Result};
use api::dataplane::{Node, Role, Service};
use api::nova::{Cell, ExternalCompute};
use e2e::{Namespace, SOON};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;
use simulated_cluster::Operator;

use crate::idle::{CELL, cell, idle_node, idle_role, idle_service};
use crate::own::Own;

const ALLOW_REMOVAL: &str = "nova.openstack.org/allow-removal";

#[tokio::test]
async fn with_the_operator_down_only_changes_of_cell_and_role_are_refused() -> Result<()> {
    let own = Own::start("cell-down").await?;
    own.create::<Service>("noop", idle_service()).await?;
    let in_cell = json!({ "annotations": { CELL: "nova-cell1" } });
    own.create_with::<Role>("compute", idle_role(), in_cell).await?;
    idle_node(&own, "n0", None).await?;
    let is_there = |it: &ExternalCompute| it.spec.cell_name == "nova-cell1";
    own.wait::<ExternalCompute>("n0", "in nova-cell1", SOON, is_there).await?;
    own.sim.operators.kill(Operator::Nova)?;

    let down = ["failed calling webhook", "cell.openstackdataplane"];
    own.denied::<Node>("n0", cell("nova-cell2"), &down).await?;
    own.denied::<Node>("n0", json!({ "spec": { "role": "other" } }), &down).await?;
    own.denied::<Role>("compute", cell("nova-cell2"), &down).await?;
    for change in [
        json!({ "metadata": { "finalizers": ["example.org/held"] } }),
        json!({ "metadata": { "annotations": { ALLOW_REMOVAL: "true" } } }),
        json!({ "spec": { "ansibleHost": "192.168.123.253" } }),
        json!({ "metadata": { "finalizers": null } }),
    ] {
        own.merge::<Node>("n0", change).await?;
    }
    own.merge::<Role>("compute", json!({ "metadata": { "labels": { "rack": "7" } } })).await?;
    idle_node(&own, "n1", Some("nova-cell1")).await?;
    own.remove::<Node>("n1").await?;
    let options = json!({ "spec": { "customServiceConfig": "[DEFAULT]\ndebug = True\n" } });
    own.merge::<ExternalCompute>("n0", options).await?;
    for finalizers in [json!(["example.org/held"]), json!(null)] {
        let change = json!({ "metadata": { "finalizers": finalizers } });
        own.merge::<ExternalCompute>("n0", change).await?;
    }

    own.delete().await?;
    let goes = |it: &Node| it.metadata.deletion_timestamp.is_some();
    own.wait::<Node>("n0", "to go while nobody answers", SOON, goes).await?;
    // Its finalizers are removed by the operator that is started again.
    own.replace(&[Operator::Nova]).await?;
    own.deleted(SOON).await
}

/// Returns the number of webhook configurations.
async fn n_configurations(ns: &Namespace) -> Result<usize> {
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(ns.client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(ns.client.clone());
    let n_mutating = mutating.list(&ListParams::default()).await?.items.len();
    Ok(n_mutating + validating.list(&ListParams::default()).await?.items.len())
}

#[tokio::test]
async fn uninstalling_keeps_every_object_and_blocks_no_later_write() -> Result<()> {
    let own = Own::start("uninstalled").await?;
    let spec = json!({ "dataplaneNodeName": "n0", "cellName": "nova-cell1" });
    own.create::<ExternalCompute>("n0", spec).await?;
    idle_node(&own, "n1", Some("nova-cell1")).await?;
    let bad = json!({ "spec": { "customServiceConfig": "no section = x\n[" } });
    own.denied::<ExternalCompute>("n0", bad, &["spec.customServiceConfig"]).await?;

    for operator in Operator::ALL {
        own.sim.operators.kill(operator)?;
    }
    own.sim.install().await?;
    assert_eq!(n_configurations(&own).await?, 3);
    let down = ["failed calling webhook", "cell.openstackdataplane"];
    own.denied::<Node>("n1", cell("nova-cell2"), &down).await?;

    // They run when their release is uninstalled, and end after it.
    own.replace(&Operator::ALL).await?;
    own.wait::<ExternalCompute>("n1", "made for its node", SOON, |_| true).await?;
    own.sim.uninstall().await?;
    for operator in Operator::ALL {
        own.sim.operators.kill(operator)?;
    }
    assert_eq!(n_configurations(&own).await?, 0);
    assert_eq!(own.list::<ExternalCompute>().await?.len(), 2);
    assert_eq!(own.list::<Node>().await?.len(), 1);
    let good = json!({ "spec": { "customServiceConfig": "[DEFAULT]\ndebug = True\n" } });
    own.merge::<ExternalCompute>("n0", good).await?;
    own.merge::<Node>("n1", cell("nova-cell2")).await?;
    assert_eq!(own.list::<Cell>().await?.len(), 0);
    let accounts: Api<ServiceAccount> = Api::namespaced(own.client.clone(), "edpm-system");
    for operator in Operator::ALL {
        assert!(accounts.get_opt(operator.name()).await?.is_none(), "{}", operator.name());
    }
    let definitions: Api<CustomResourceDefinition> = Api::all(own.client.clone());
    let rendered = own.sim.rendered("CustomResourceDefinition");
    assert!(!rendered.is_empty());
    for it in rendered {
        let name = it["metadata"]["name"].as_str().context("no name")?;
        assert!(definitions.get_opt(name).await?.is_some(), "{name} is gone");
    }
    Ok(())
}
