//! Cells and computes for tests: a copy of the demo's cell, a cell that is never ready, and
//! computes that have run.

use std::time::Duration;

use anyhow::{Context as _, Result};
use api::ansibleee::AnsibleEe;
use api::dataplane::Node;
use api::nova::{Cell, ExternalCompute};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use serde_json::json;

use crate::{Namespace, SOON};

/// The namespace of the demo's cells.
const DEMO: &str = "openstack";

/// The name of the first cell, and of its Secret with nova's password.
pub const CELL: &str = "nova-cell1";

/// The name of its Secret with the transport URL of the message bus.
pub const BUS: &str = "nova-cell1-transport";

/// Returns the value of a key in one of the demo's Secrets.
pub async fn demo_value(ns: &Namespace, secret: &str, key: &str) -> Result<String> {
    let found = Namespace::existing(&ns.client, DEMO).api::<Secret>().get(secret).await?;
    let data = found.data.unwrap_or_default();
    let value = data.get(key).with_context(|| format!("Secret {secret} has no key {key}"))?;
    Ok(String::from_utf8(value.0.clone())?)
}

/// Creates a copy of the demo's cell in the test's namespace.
pub async fn create(ns: &Namespace) -> Result<()> {
    let demo = Namespace::existing(&ns.client, DEMO);
    let spec = serde_json::to_value(demo.api::<Cell>().get(CELL).await?.spec)?;
    ns.create::<Cell>(CELL, spec).await.map(drop)
}

/// Copies the Secrets that the cell refers to.
pub async fn create_secrets(ns: &Namespace) -> Result<()> {
    for (secret, key) in [(CELL, "ServicePassword"), (BUS, "transport_url")] {
        let value = demo_value(ns, secret, key).await?;
        ns.secret(secret, &[(key, &value)]).await?;
    }
    Ok(())
}

/// Creates a cell of that name that is never ready, because its Secrets do not exist; nova is not
/// deployed.
pub async fn create_unusable(ns: &Namespace) -> Result<()> {
    let spec = json!({
        "cellName": "cell1", "secret": "nowhere", "cellMessageBusSecretName": "nowhere",
        "keystoneAuthURL": "http://192.168.123.254:5000", "cellDatabaseHostname": "db",
        "conductorServiceTemplate": {}, "noVNCProxyServiceTemplate": {}, "serviceAccount": "nova",
    });
    ns.create::<Cell>(CELL, spec).await.map(drop)
}

/// Waits until a compute has all that its clean-up needs.
pub async fn wait_until_reachable(ns: &Namespace, compute: &str, within: Duration) -> Result<()> {
    let is_known = |it: &ExternalCompute| {
        it.spec.inventory_config_map_name.is_some()
            && it.status.as_ref().is_some_and(|it| it.address.is_some())
    };
    let what = "told how its host is reached";
    ns.wait::<ExternalCompute>(compute, what, within, is_known).await.map(drop)
}

/// Records in its status that a compute has run and registered, and that nova has listed its service, as
/// the operator does.
pub async fn record_run(ns: &Namespace, compute: &str) -> Result<()> {
    let succeeded = |service: &str| {
        json!({
            "name": service, "state": "Succeeded", "hash": "h", "deployedHash": "h", "attempt": 1,
            "since": "2026-01-01T00:00:00Z",
        })
    };
    let services = ["libvirt", "nova-registered"].map(succeeded);
    let listed = "6b1f0c7e-6f0e-4a55-9d0c-000000000001";
    let record = json!({ "services": services, "serviceID": listed });
    ns.merge_status::<ExternalCompute>(compute, record).await
}

/// Waits until the node is gone, and asserts that nothing else of it is left in the cluster.
pub async fn gone(ns: &Namespace, node: &str, within: Duration) -> Result<()> {
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
