//! Checks of the chart's network policies as objects; no network here enforces them.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::invariants::{of_kind, text};
use super::rendered;

const METRICS: &str = "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.name=monitoring";
const EGRESS: &str = "networkPolicy.egress[0].ports[0].port=6443";
const ON: &str = "networkPolicy.enabled=true";

/// Returns the policies with the operator that each selects.
fn policies(values: &[&str]) -> Result<Vec<(String, Value)>> {
    let objects = rendered(values)?;
    let mut found = Vec::new();
    for policy in of_kind(&objects, "NetworkPolicy") {
        let name = text(policy, "/metadata/name");
        let selected = &policy["spec"]["podSelector"]["matchLabels"];
        let picked: Vec<&str> = of_kind(&objects, "Deployment")
            .filter(|it| it["spec"]["selector"]["matchLabels"] == *selected)
            .map(|it| text(it, "/metadata/name"))
            .collect();
        ensure!(picked == [name], "{name} selects {picked:?}");
        found.push((name.to_owned(), policy["spec"].clone()));
    }
    Ok(found)
}

/// Whether an operator serves webhooks.
fn serves(operator: &str) -> bool {
    operator != "ansibleee-operator"
}

/// Checks the policies with and without each value.
pub(super) fn of_operators() -> Result<()> {
    ensure!(policies(&[METRICS, EGRESS])?.is_empty(), "policies that nobody asked for");
    let webhook = json!({ "ports": [{ "port": "webhook", "protocol": "TCP" }] });
    for (name, spec) in policies(&[ON])? {
        ensure!(spec["policyTypes"] == json!(["Ingress"]), "{name}: {spec}");
        let expected = if serves(&name) { json!([webhook]) } else { Value::Null };
        ensure!(spec["ingress"] == expected, "{name}: {spec}");
        ensure!(spec["egress"].is_null(), "{name}: {spec}");
    }
    let all = policies(&[ON, METRICS, EGRESS])?;
    ensure!(all.len() == 3, "{} policies", all.len());
    let metrics = json!({
        "from": [{ "namespaceSelector": { "matchLabels": { "name": "monitoring" } } }],
        "ports": [{ "port": "admin", "protocol": "TCP" }],
    });
    for (name, spec) in &all {
        let mut expected = vec![metrics.clone()];
        if serves(name) {
            expected.insert(0, webhook.clone());
        }
        ensure!(spec["ingress"] == json!(expected), "{name}: {spec}");
        ensure!(spec["policyTypes"] == json!(["Ingress", "Egress"]), "{name}: {spec}");
        ensure!(spec["egress"] == json!([{ "ports": [{ "port": 6443 }] }]), "{name}: {spec}");
    }
    let closed = policies(&[ON, "webhooks.enabled=false"])?;
    ensure!(closed.iter().all(|(_, spec)| spec["ingress"].is_null()), "{closed:?}");
    Ok(())
}
