//! The installation matches the chart: its webhooks, and the permissions of its operators, which a policy
//! bounds where RBAC cannot.

use anyhow::{Context as _, Result, bail};
use api::ansibleee::AnsibleEe;
use api::nova::ExternalCompute;
use e2e::{Kind, SOON};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ListParams, PostParams};
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
    assert_eq!(n_webhooks, 9);

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
    let token: Secret = serde_json::from_value(json!({
        "metadata": {
            "name": "token",
            "annotations": { "kubernetes.io/service-account.name": "default" },
        },
        "type": "kubernetes.io/service-account-token",
    }))?;
    for operator in [Operator::DataPlane, Operator::Nova] {
        let secrets = as_operator::<Secret>(ns.sim, operator, &ns.name).await?;
        let refused = secrets.create(&PostParams::default(), &token).await.unwrap_err().to_string();
        assert!(refused.contains("no Secrets for the token of a service account"), "{refused}");
    }
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

/// A Job as ansibleee-operator creates one, with other values at some places.
fn job(changes: &[(&str, Value)]) -> Result<Job> {
    let labels = json!({ "labels": { "app": "openstackansibleee" } });
    let mut job = json!({
        "metadata": { "name": "forged", "labels": labels["labels"] },
        "spec": { "template": { "metadata": labels, "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "initContainers": [{ "name": "first", "image": "x", "securityContext": {} }],
            "containers": [{ "name": "run", "image": "x", "securityContext": {} }],
            "volumes": [{ "name": "v", "emptyDir": {} }],
        } } },
    });
    for (place, value) in changes {
        let (parent, field) = place.rsplit_once('/').context("no pointer")?;
        let parent = job.pointer_mut(parent).with_context(|| format!("no {parent}"))?;
        parent[field] = value.clone();
    }
    Ok(serde_json::from_value(job)?)
}

#[tokio::test]
async fn ansibleee_operator_may_create_no_job_but_those_of_its_runs() -> Result<()> {
    const POD: &str = "/spec/template/spec";
    let ns = World::new("jobs").await?;
    // The policy is in force when a run of the operator has ended: the API server has read it since.
    let host = ns.host("jobs-a", "192.0.2.128");
    let spec = json!({
        "playbookContents": "- hosts: all\n  tasks: []\n",
        "inventory": r#"{"all": {"hosts": {"jobs-a": {"ansible_connection": "local"}}}}"#,
        "backoffLimit": 0,
        "hosts": [{ "name": "jobs-a", "address": "192.0.2.128:22" }],
    });
    ns.create::<AnsibleEe>("real", spec).await?;
    ns.reports::<AnsibleEe>("real", "Ready", "Ready", &[], SOON).await?;
    assert_eq!(host.visits().len(), 1);

    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let jobs = as_operator::<Job>(ns.sim, Operator::AnsibleEe, &ns.name).await?;
    jobs.create(&dry, &job(&[])?).await?;
    let refused = async |jobs: &Api<Job>, changes: &[(&str, Value)], words: &str| match jobs
        .create(&dry, &job(changes)?)
        .await
    {
        Err(kube::Error::Api(status)) if status.message.contains(words) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("{changes:?}")),
        Ok(_) => bail!("{changes:?} passed"),
    };
    let system = as_operator::<Job>(ns.sim, Operator::AnsibleEe, "kube-system").await?;
    refused(&system, &[], "creates no Jobs in this namespace").await?;
    let (of_node, token) = ("of the Kubernetes node", "without a service account's token");
    let at = |field: &str| format!("{POD}/{field}");
    let added = json!({ "add": ["SYS_MODULE"] });
    let projected = json!({ "sources": [{ "serviceAccountToken": { "path": "token" } }] });
    for (place, value, words) in [
        // Without labels of its own, a Job gets those of its pod.
        ("/metadata/labels".to_owned(), json!({ "app": "other" }), "with the label app"),
        ("/spec/template/metadata/labels".to_owned(), json!({}), "with the label app"),
        (at("serviceAccountName"), json!("default"), token),
        // The API server takes the field of before for the name.
        (at("serviceAccount"), json!("default"), token),
        (at("automountServiceAccountToken"), Value::Null, token),
        (at("volumes"), json!([{ "name": "v", "projected": projected }]), token),
        (at("volumes"), json!([{ "name": "v", "hostPath": { "path": "/" } }]), of_node),
        // Nobody gets a privileged container from this API server.
        (at("containers/0/securityContext/capabilities"), added.clone(), of_node),
        (at("initContainers/0/securityContext/capabilities"), added, of_node),
        (at("hostNetwork"), json!(true), of_node),
        (at("hostPID"), json!(true), of_node),
        (at("hostIPC"), json!(true), of_node),
    ] {
        refused(&jobs, &[(place.as_str(), value)], words).await?;
    }
    // Others are not bounded by it.
    let of_all: Api<Job> = Api::namespaced(ns.client.clone(), "kube-system");
    of_all.create(&dry, &job(&[(at("hostPID").as_str(), json!(true))])?).await?;
    ns.done().await
}
