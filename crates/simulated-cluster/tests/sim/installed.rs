//! The installation matches the chart: its webhooks, and the permissions of its operators.

use anyhow::{Context as _, Result, bail};
use api::ansibleee::AnsibleEe;
use api::nova::ExternalCompute;
use e2e::Kind;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use simulated_cluster::{Operator, Simulation};

use crate::world::World;

/// Returns the live webhooks of a configuration.
async fn live(client: &Client, kind: &str, name: &str) -> Result<Value> {
    if kind == "MutatingWebhookConfiguration" {
        let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
        return Ok(json!(api.get(name).await?.webhooks));
    }
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    Ok(json!(api.get(name).await?.webhooks))
}

/// Splits a webhook into its client configuration and the rest, without the fields that the API
/// server defaults for an empty selection.
fn parted(webhook: &Value) -> (Value, Value) {
    let mut webhook = webhook.clone();
    let config = webhook["clientConfig"].take();
    if let Some(fields) = webhook.as_object_mut() {
        let is_filled_in = |name: &str, it: &Value| name.ends_with("Selector") && *it == json!({});
        fields.retain(|name, it| name != "clientConfig" && !is_filled_in(name, it));
    }
    (webhook, config)
}

#[tokio::test]
async fn webhooks_are_as_the_chart_has_them() -> Result<()> {
    let ns = World::new("webhooks").await?;
    let mut n_webhooks = 0;
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        for rendered in ns.sim.rendered(kind) {
            let name = rendered["metadata"]["name"].as_str().context("no name")?;
            let found = live(&ns.client, kind, name).await?;
            let found = found.as_array().context("no webhooks")?;
            let expected = rendered["webhooks"].as_array().context("no webhooks")?;
            assert_eq!(found.len(), expected.len(), "{name}");
            for (found, expected) in found.iter().zip(expected) {
                let ((found, way), (expected, service)) = (parted(found), parted(expected));
                assert_eq!(found, expected, "{name}");
                let path = service["service"]["path"].as_str().context("no path")?;
                let url = way["url"].as_str().unwrap_or_default();
                assert!(url.starts_with("https://127.0.0.1:") && url.ends_with(path), "{way}");
                assert!(way["caBundle"].is_string(), "{way}");
                n_webhooks += 1;
            }
        }
    }
    assert_eq!(n_webhooks, 8);

    // They are called: a compute gets its images, and an unreadable object is denied.
    let spec = json!({ "dataplaneNodeName": "n0", "cellName": "nova-cell1" });
    let made = ns.create::<ExternalCompute>("n0", spec).await?;
    let image = made.spec.nova_compute_container_image;
    assert_eq!(image.as_deref(), Some("simulated/nova-compute:1"));
    let bad = json!({ "spec": { "customServiceConfig": "no section = x\n[" } });
    let Err(refusal) = ns.merge::<ExternalCompute>("n0", bad).await else { bail!("it passed") };
    let refusal = format!("{refusal:#}");
    assert!(refusal.contains("spec.customServiceConfig"), "{refusal}");
    ns.done().await
}

/// Returns the objects of a kind in a namespace, accessed as an operator.
async fn as_operator<K: Kind>(sim: &Simulation, operator: Operator, ns: &str) -> Result<Api<K>> {
    let file = Kubeconfig::read_from(sim.operators.kubeconfig(operator))?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    Ok(Api::namespaced(Client::try_from(config)?, ns))
}

/// Asserts that a request was rejected for missing permissions.
fn forbidden<T>(what: &str, outcome: Result<T, kube::Error>) -> Result<()> {
    match outcome {
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
        Err(error) => Err(error).with_context(|| what.to_owned()),
        Ok(_) => bail!("{what}: it passed"),
    }
}

#[tokio::test]
async fn an_operator_has_no_right_that_its_roles_do_not_name() -> Result<()> {
    let ns = World::new("rights").await?;
    ns.secret("s", &[("a", "b")]).await?;
    ns.config_map("c", &[("a", "b")]).await?;
    for operator in Operator::ALL {
        let runs = as_operator::<AnsibleEe>(ns.sim, operator, &ns.name).await?;
        assert!(runs.list(&ListParams::default()).await?.items.is_empty(), "{}", operator.name());
        let maps = as_operator::<ConfigMap>(ns.sim, operator, &ns.name).await?;
        match operator {
            Operator::AnsibleEe => {
                forbidden("ansibleee-operator reads a ConfigMap", maps.get("c").await)?;
            }
            Operator::DataPlane | Operator::Nova => drop(maps.get("c").await?),
        }
    }
    let secrets = as_operator::<Secret>(ns.sim, Operator::AnsibleEe, &ns.name).await?;
    forbidden("ansibleee-operator reads a Secret", secrets.get("s").await)?;
    forbidden("ansibleee-operator lists Secrets", secrets.list(&ListParams::default()).await)?;
    let secrets = as_operator::<Secret>(ns.sim, Operator::Nova, &ns.name).await?;
    secrets.get("s").await?;
    let deleted = secrets.delete("s", &DeleteParams::default()).await;
    forbidden("nova-operator deletes a Secret", deleted)?;
    for operator in [Operator::DataPlane, Operator::Nova] {
        let jobs = as_operator::<Job>(ns.sim, operator, &ns.name).await?;
        let listed = jobs.list(&ListParams::default()).await;
        forbidden(&format!("{} lists Jobs", operator.name()), listed)?;
    }
    ns.done().await
}
