//! Network attachments without Multus: the definition of the kind, and objects that no controller
//! acts on.

use anyhow::Result;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams};
use kube::{Api, Client};
use serde_json::json;

use crate::{Namespace, neighbours};

const GROUP: &str = "k8s.cni.cncf.io";
const PLURAL: &str = "network-attachment-definitions";

/// Creates the CRD and waits until it is served. It stays, because the operator continues to watch
/// the kind.
pub async fn serve(client: &Client) -> Result<()> {
    let names = json!({
        "kind": "NetworkAttachmentDefinition", "listKind": "NetworkAttachmentDefinitionList",
        "plural": PLURAL, "singular": "network-attachment-definition",
    });
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let object = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{PLURAL}.{GROUP}") },
        "spec": { "group": GROUP, "names": names, "scope": "Namespaced", "versions": [{
            "name": "v1", "served": true, "storage": true,
            "schema": { "openAPIV3Schema": schema },
        }] },
    });
    neighbours::apply(client, &object).await
}

/// Creates an attachment.
pub async fn create(ns: &Namespace, name: &str) -> Result<()> {
    let (resource, api) = api(ns);
    let object = DynamicObject::new(name, &resource).data(json!({ "spec": {} }));
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}

/// Deletes an attachment.
pub async fn delete(ns: &Namespace, name: &str) -> Result<()> {
    api(ns).1.delete(name, &DeleteParams::default()).await?;
    Ok(())
}

fn api(ns: &Namespace) -> (ApiResource, Api<DynamicObject>) {
    let kind = GroupVersionKind::gvk(GROUP, "v1", "NetworkAttachmentDefinition");
    let resource = ApiResource::from_gvk_with_plural(&kind, PLURAL);
    let api = Api::namespaced_with(ns.client.clone(), &ns.name, &resource);
    (resource, api)
}
