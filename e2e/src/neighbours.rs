//! Simulates the operators for addresses, names and certificates: their CRDs, and the statuses that
//! they would write.

use anyhow::{Context as _, Result};
use api::cert_manager::{Certificate, Issuer};
use api::infra::{DnsData, DnsMasq, IpSet, NetConfig};
use api::yaml;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::{Kind, Namespace, SOON};

const DEFINITIONS: [&str; 2] = [
    include_str!("../crds/network.openstack.org.yaml"),
    include_str!("../crds/cert-manager.io.yaml"),
];

/// Creates the CRDs. They stay, because the operator continues to watch the kinds.
pub async fn serve(client: &Client) -> Result<()> {
    for text in DEFINITIONS {
        define(client, text).await?;
    }
    Ok(())
}

/// Creates the CRDs in a YAML text, and waits until they are served.
pub(crate) async fn define(client: &Client, text: &str) -> Result<()> {
    for object in yaml::documents::<Value>(text)? {
        apply(client, &object).await?;
    }
    Ok(())
}

/// Creates a CRD, and waits until it is served.
pub(crate) async fn apply(client: &Client, object: &Value) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = object["metadata"]["name"].as_str().context("no name")?;
    api.patch(name, &PatchParams::apply("e2e").force(), &Patch::Apply(object)).await?;
    let established = await_condition(api, name, conditions::is_crd_established());
    tokio::time::timeout(SOON, established).await.context("a kind is not served")??;
    Ok(())
}

/// Creates the objects that node sets of a namespace share: networks, a DNS server that is ready,
/// and an issuer.
pub async fn prepare(ns: &Namespace) -> Result<()> {
    let networks = json!({ "networks": [{ "name": "ctlplane" }] });
    ns.create::<NetConfig>("netconfig", networks).await?;
    let spec = json!({ "dnsDataLabelSelectorValue": "dnsdata" });
    ns.create::<DnsMasq>("dnsmasq", spec).await?;
    let addresses = json!({ "dnsAddresses": ["192.0.2.80"], "dnsClusterAddresses": [] });
    answer::<DnsMasq>(ns, "dnsmasq", addresses).await?;
    let labels = json!({ "labels": { "osp-rootca-issuer-internal": "" } });
    ns.create_with::<Issuer>("internal", json!({}), labels).await.map(drop)
}

/// Reserves the fixed IP that a host requests, else `address`.
pub async fn reserve(ns: &Namespace, host: &str, address: &str) -> Result<()> {
    let asked = ns.api::<IpSet>().get(host).await?;
    let fixed = asked.spec.networks.first().and_then(|it| it.fixed_ip.as_deref());
    let reservation = json!({
        "network": "ctlplane", "subnet": "subnet1", "address": fixed.unwrap_or(address),
        "cidr": "192.168.122.0/24", "mtu": 1500, "dnsDomain": "ctl.example.org",
    });
    answer::<IpSet>(ns, host, json!({ "reservations": [reservation] })).await
}

/// Marks the names of a node set as ready in the DNS server.
pub async fn name(ns: &Namespace, node_set: &str) -> Result<()> {
    answer::<DnsData>(ns, node_set, json!({})).await
}

/// Issues a certificate; all files of its Secret contain `text`.
pub async fn issue(ns: &Namespace, certificate: &str, text: &str) -> Result<()> {
    let asked = ns.api::<Certificate>().get(certificate).await?;
    let secret: Secret = serde_json::from_value(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": asked.spec.secret_name,
            "labels": asked.spec.secret_template.context("no labels for its Secret")?.labels,
        },
        "stringData": { "ca.crt": text, "tls.crt": text, "tls.key": text },
    }))?;
    let (api, params) = (ns.api::<Secret>(), PatchParams::apply("e2e").force());
    if api.get_opt(&secret.name_any()).await?.is_some() {
        api.patch(&secret.name_any(), &params, &Patch::Apply(&secret)).await?;
    } else {
        api.create(&PostParams::default(), &secret).await?;
    }
    answer::<Certificate>(ns, certificate, json!({})).await
}

/// Writes a status with a true `Ready` condition.
async fn answer<K: Kind>(ns: &Namespace, name: &str, mut status: Value) -> Result<()> {
    status["conditions"] = json!([{ "type": "Ready", "status": "True" }]);
    ns.merge_status::<K>(name, status).await
}
