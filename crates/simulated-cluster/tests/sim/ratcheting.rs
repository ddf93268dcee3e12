//! Limits added to a CRD later: the API server enforces them, and objects stored before can still
//! be changed in other fields.

use e2e::SOON;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use api::definitions;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::{interval, timeout};

use crate::world::World;

/// An API group that no operator watches.
const GROUP: &str = "ratcheting.example.org";

/// Returns the CRD of roles in that group, unchanged or without a schema.
fn definition(with_schema: bool) -> Result<Value> {
    let mut all = definitions::all().into_iter();
    let role = all.find(|it| it.spec.names.kind == "OpenStackDataPlaneRole").context("no role")?;
    let mut role = serde_json::to_value(role)?;
    role["apiVersion"] = json!("apiextensions.k8s.io/v1");
    role["kind"] = json!("CustomResourceDefinition");
    role["metadata"] = json!({ "name": format!("openstackdataplaneroles.{GROUP}") });
    role["spec"]["group"] = json!(GROUP);
    for names in ["shortNames", "categories"] {
        role["spec"]["names"][names] = json!([]);
    }
    if !with_schema {
        let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        role["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = any;
    }
    Ok(role)
}

async fn define(client: &Client, definition: &Value) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = definition["metadata"]["name"].as_str().context("no name")?;
    api.patch(name, &PatchParams::apply("sim").force(), &Patch::Apply(definition)).await?;
    timeout(SOON, await_condition(api, name, conditions::is_crd_established())).await??;
    Ok(())
}

fn role(name: &str, spec: &Value) -> Result<DynamicObject> {
    let object = json!({
        "apiVersion": format!("{GROUP}/v1beta1"),
        "kind": "OpenStackDataPlaneRole",
        "metadata": { "name": name },
        "spec": spec,
    });
    Ok(serde_json::from_value(object)?)
}

/// Values beyond the limits, each with its place in a spec.
fn beyond() -> [(&'static str, Value); 4] {
    let long = "x".repeat(200_000);
    let mounts = json!([{ "volumes": [{
        "name": "a", "projected": { "defaultMode": 3_000_000_000_i64, "sources": [] },
    }], "mounts": [] }]);
    [
        ("env", json!([{ "name": "LONG", "value": long }])),
        ("nodeTemplate", json!({ "extraMounts": mounts })),
        ("deployStrategy", json!({ "maxUnavailable": 3_000_000_000_i64 })),
        ("networkAttachments", json!((0..40).map(|it| format!("n{it}")).collect::<Vec<_>>())),
    ]
}

/// Waits until the API server validates by the schema; returns false when it accepts the object
/// until then.
async fn is_refused(api: &Api<DynamicObject>, object: &DynamicObject) -> Result<bool> {
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let refused = async {
        let mut pause = interval(Duration::from_millis(100));
        while !matches!(api.create(&params, object).await, Err(kube::Error::Api(it)) if it.code == 422)
        {
            pause.tick().await;
        }
    };
    Ok(timeout(SOON, refused).await.is_ok())
}

#[tokio::test]
async fn what_was_stored_beyond_a_later_limit_can_still_be_changed_elsewhere() -> Result<()> {
    let ns = World::new("ratcheting").await?;
    let kind = GroupVersionKind::gvk(GROUP, "v1beta1", "OpenStackDataPlaneRole");
    let resource = ApiResource::from_gvk_with_plural(&kind, "openstackdataplaneroles");
    let api: Api<DynamicObject> = Api::namespaced_with(ns.client.clone(), &ns.name, &resource);
    define(&ns.client, &definition(false)?).await?;
    for (field, value) in beyond() {
        let name = field.to_lowercase();
        api.create(&PostParams::default(), &role(&name, &json!({ field: value }))?).await?;
    }
    define(&ns.client, &definition(true)?).await?;
    for (field, value) in beyond() {
        let name = field.to_lowercase();
        let fresh = role("fresh", &json!({ field: value }))?;
        ensure!(is_refused(&api, &fresh).await?, "{field} is taken anew");
        let merge = |it: Value| Patch::Merge(it);
        let elsewhere = merge(json!({ "spec": { "services": ["own"] } }));
        let changed = api.patch(&name, &PatchParams::default(), &elsewhere).await;
        let changed = changed.with_context(|| format!("spec.services beside {field}"))?;
        ensure!(!changed.data["spec"][field].is_null(), "{field} is gone");
        let status = merge(json!({ "status": { "nodes": 1 } }));
        let told = api.patch_status(&name, &PatchParams::default(), &status).await;
        told.with_context(|| format!("the status beside {field}"))?;
        let corrected = merge(json!({ "spec": { field: null } }));
        api.patch(&name, &PatchParams::default(), &corrected).await?;
    }
    ns.done().await
}
