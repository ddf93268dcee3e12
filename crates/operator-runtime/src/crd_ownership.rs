//! Ownership of a kind's CRD: two operators must never reconcile the same objects.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use kube::core::PartialObjectMeta;
use kube::{Api, Client, Resource, ResourceExt};

use crate::error::{During as _, Result};

/// The label on the CRDs that this project installs.
pub const LABEL: &str = "edpm.openstack.org/managed-by";

/// Returns whether this project reconciles objects of the kind: its CRD has [`LABEL`], the user
/// claimed the kind, or there is no CRD yet.
///
/// A foreign CRD is logged, once per call.
///
/// # Errors
/// Any failure to read the CRD: without it, the kind is not reconciled, as it may belong to another
/// operator.
pub async fn is_ours<K>(client: &Client, claimed: &[String]) -> Result<bool>
where
    K: Resource<DynamicType = ()>,
{
    let kind = K::kind(&());
    if claimed.iter().any(|it| *it == kind) {
        return Ok(true);
    }
    let name = name_of::<K>();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let found = definitions.get_metadata_opt(&name).await;
    let found = found.during(format!("get customresourcedefinitions/{name}"))?;
    let Some(foreign) = found.filter(|it| !it.labels().contains_key(LABEL)) else {
        return Ok(true);
    };
    tracing::warn!(
        %kind,
        owner = owner(&foreign),
        "the definition belongs to another operator, so objects of the kind are left alone: claim \
         the kind (--claim-kinds) where no other operator reconciles them"
    );
    Ok(false)
}

/// Returns whether the definition of a kind has a field of `spec` in a version: that of an earlier
/// release drops the field from each object without a word.
///
/// # Errors
/// Any failure to read the CRD.
pub async fn has_spec_field<K>(client: &Client, field: &str) -> Result<bool>
where
    K: Resource<DynamicType = ()>,
{
    let name = name_of::<K>();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let found = definitions.get_opt(&name).await;
    let found = found.during(format!("get customresourcedefinitions/{name}"))?;
    let schemas = found.into_iter().flat_map(|it| it.spec.versions).filter_map(|it| it.schema);
    let has_field = |schema: JSONSchemaProps| {
        let spec = schema.properties?.remove("spec")?;
        Some(spec.properties?.contains_key(field))
    };
    Ok(schemas.filter_map(|it| it.open_api_v3_schema).any(|it| has_field(it) == Some(true)))
}

fn name_of<K: Resource<DynamicType = ()>>() -> String {
    format!("{}.{}", K::plural(&()), K::group(&()))
}

/// Returns the owner of a CRD as far as its metadata names one.
fn owner(definition: &PartialObjectMeta<CustomResourceDefinition>) -> &str {
    let release = definition.annotations().get("meta.helm.sh/release-name");
    let label = || definition.labels().get("app.kubernetes.io/managed-by");
    let writer = || definition.managed_fields().first()?.manager.as_ref();
    release.or_else(label).or_else(writer).map_or("unknown", String::as_str)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::batch::v1::Job;
    use serde_json::{Value, json};
    use testkit::fake_api::{FakeApi, failure};

    use super::*;
    use crate::api::tests::client;

    const GET: &str = "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/jobs.batch";

    fn definition(labels: &Value) -> (u16, Value) {
        let object = json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": { "name": "jobs.batch", "labels": labels },
        });
        (200, object)
    }

    #[tokio::test]
    async fn a_definition_with_the_label_or_none_at_all_is_ours_and_any_other_is_not() {
        let labelled = definition(&json!({ LABEL: "edpm-operators" }));
        let others = definition(&json!({ "app.kubernetes.io/managed-by": "olm" }));
        for (answer, expected) in
            [(labelled, true), (others, false), (failure(404, "NotFound"), true)]
        {
            let server = FakeApi::answering([answer]);
            assert_eq!(is_ours::<Job>(&client(&server), &[]).await.unwrap(), expected);
            assert_eq!(server.asked(), [GET]);
        }
    }

    #[tokio::test]
    async fn a_claimed_kind_is_ours_and_nobody_is_asked() {
        let server = FakeApi::answering([]);
        let claimed = ["Job".to_owned()];
        assert!(is_ours::<Job>(&client(&server), &claimed).await.unwrap());
        assert_eq!(server.asked(), [""; 0]);
    }

    #[tokio::test]
    async fn a_definition_that_cannot_be_read_is_nobodys() {
        let server = FakeApi::answering([failure(403, "Forbidden")]);
        let error = is_ours::<Job>(&client(&server), &[]).await.unwrap_err();
        assert_eq!(error.reason(), "Forbidden");
    }

    #[tokio::test]
    async fn a_field_is_known_where_a_version_of_the_definition_has_it_in_the_spec() {
        let with = |property: &str| {
            let schema = json!({ "type": "object", "properties": { "spec": {
                "type": "object", "properties": { property: { "type": "string" } } } } });
            let names = json!({ "kind": "Job", "plural": "jobs" });
            let version = json!({ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema } });
            let spec = json!({ "group": "batch", "names": names, "scope": "Namespaced",
                "versions": [version] });
            let object = json!({ "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition", "metadata": { "name": "jobs.batch" },
                "spec": spec });
            (200, object)
        };
        for (answer, expected) in
            [(with("nodeSet"), true), (with("role"), false), (failure(404, "NotFound"), false)]
        {
            let server = FakeApi::answering([answer]);
            let found = has_spec_field::<Job>(&client(&server), "nodeSet").await;
            assert_eq!(found.unwrap(), expected);
            assert_eq!(server.asked(), [GET]);
        }
    }
}
