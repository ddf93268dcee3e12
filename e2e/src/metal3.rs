//! Simulates Metal3 for a test: its CRD, machines, and the statuses that it would write.

use anyhow::Result;
use api::metal3::BareMetalHost;
use kube::Client;
use serde_json::{Value, json};

use crate::{Namespace, neighbours};

const DEFINITION: &str = include_str!("../crds/metal3.io.yaml");

/// Creates the CRD. It stays, because the operator continues to watch the kind.
pub async fn serve(client: &Client) -> Result<()> {
    neighbours::define(client, DEFINITION).await
}

/// Creates a machine that can be provisioned.
pub async fn available(ns: &Namespace, name: &str, labels: Value) -> Result<()> {
    let metadata = json!({ "labels": labels });
    ns.create_with::<BareMetalHost>(name, json!({ "online": false }), metadata).await?;
    let hardware = json!({
        "cpu": { "arch": "x86_64", "count": 8, "clockMegahertz": 2400 },
        "ramMebibytes": 32768,
        "storage": [{ "sizeBytes": 480_000_000_000_i64, "rotational": false }],
    });
    ns.merge_status::<BareMetalHost>(name, json!({ "hardware": hardware })).await?;
    comes_to(ns, name, "available", false).await
}

/// Sets the provisioning state of a machine, without an error.
pub async fn comes_to(ns: &Namespace, name: &str, state: &str, powered_on: bool) -> Result<()> {
    let mut status = json!({
        "provisioning": { "state": state, "ID": "" }, "operationalStatus": "OK",
        "errorType": "", "errorMessage": "", "errorCount": 0, "poweredOn": powered_on,
    });
    if state == "provisioning" {
        status["operationHistory"]["provision"]["start"] = json!("2026-01-01T00:00:00Z");
    }
    ns.merge_status::<BareMetalHost>(name, status).await
}

/// Sets an error of a machine.
pub async fn fails(ns: &Namespace, name: &str, type_: &str, message: &str) -> Result<()> {
    let status = json!({
        "operationalStatus": "error", "errorType": type_, "errorMessage": message, "errorCount": 1,
    });
    ns.merge_status::<BareMetalHost>(name, status).await
}
