//! Checks of the chart's webhooks: what they may block, and how their certificate is made.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::invariants::{of_kind, text, webhooks};
use super::{env_of, rendered};

/// The operators that serve webhooks.
const SERVING: [&str; 2] = ["nova-operator", "dataplane-operator"];

/// Returns the webhooks of a configuration.
pub(super) fn hooks(configuration: &Value) -> impl Iterator<Item = &Value> {
    configuration["webhooks"].as_array().into_iter().flatten()
}

/// Whether a webhook about deletions holds up none, and is called for few.
fn is_warning(hook: &Value) -> bool {
    let asks = text(hook, "/matchConditions/0/expression");
    hook["failurePolicy"] == "Ignore" && asks.contains("oldObject.spec.?customServiceConfig")
}

/// Checks that only updates of cells and roles may be blocked.
pub(super) fn blocking() -> Result<()> {
    let objects = rendered(&[])?;
    let mut blocking = Vec::new();
    for hook in webhooks(&objects).flat_map(hooks) {
        let rule = &hook["rules"][0];
        ensure!(hook["timeoutSeconds"] == 5 && hook["sideEffects"] == "None", "{hook}");
        ensure!(hook["rules"].as_array().is_some_and(|it| it.len() == 1), "{hook}");
        let is_of_deletions = rule["operations"].to_string().contains("DELETE");
        ensure!(!is_of_deletions || is_warning(hook), "{hook}");
        ensure!(!rule["resources"].to_string().contains('/'), "a status is asked about: {hook}");
        if hook["failurePolicy"] == "Ignore" {
            continue;
        }
        let asks = text(hook, "/matchConditions/0/expression");
        ensure!(
            asks.contains("oldObject.metadata.annotations['nova.openstack.org/cell']"),
            "{hook}"
        );
        ensure!(rule["operations"] == json!(["UPDATE"]), "{hook}");
        blocking.push((text(rule, "/resources/0"), asks.contains("oldObject.spec.role")));
    }
    let expected = [("openstackdataplanenodes", true), ("openstackdataplaneroles", false)];
    ensure!(blocking == expected, "{blocking:?}");
    Ok(())
}

/// Checks that nothing of the webhooks is rendered when they are disabled.
pub(super) fn none() -> Result<()> {
    let objects = rendered(&["webhooks.enabled=false"])?;
    ensure!(webhooks(&objects).next().is_none(), "a configuration is left");
    for kind in ["Service", "Secret"] {
        ensure!(of_kind(&objects, kind).next().is_none(), "a {kind} is left");
    }
    let rights = of_kind(&objects, "ClusterRole").map(|it| text(it, "/metadata/name"));
    ensure!(!rights.into_iter().any(|it| it.ends_with("-webhook")), "a right is left");
    for operator in SERVING {
        let enabled = env_of(&objects, operator, "ENABLE_WEBHOOKS")?;
        ensure!(enabled == "false", "{operator}: {enabled}");
    }
    Ok(())
}

/// Checks that the operator writes no certificate when cert-manager makes it.
pub(super) fn cert_manager() -> Result<()> {
    let objects = rendered(&["webhooks.certificates=cert-manager"])?;
    let names = |kind: &str| -> Vec<String> {
        of_kind(&objects, kind).map(|it| text(it, "/metadata/name").to_owned()).collect()
    };
    let services = SERVING.map(|it| format!("{it}-webhook"));
    ensure!(names("Service") == services && names("Secret").is_empty(), "{:?}", names("Secret"));
    let issuers = names("Issuer");
    let mut signed = Vec::new();
    for it in of_kind(&objects, "Certificate") {
        let issuer = text(it, "/spec/issuerRef/name");
        ensure!(issuers.iter().any(|it| it == issuer), "no Issuer {issuer}");
        signed.push(text(it, "/spec/secretName"));
    }
    let wanted: Vec<String> =
        services.iter().flat_map(|it| [format!("{it}-ca"), format!("{it}-tls")]).collect();
    ensure!(signed == wanted, "{signed:?}");
    for service in &services {
        let leaf = of_kind(&objects, "Certificate").find(|it| it["metadata"]["name"] == **service);
        let hosts = leaf.map(|it| it["spec"]["dnsNames"].clone());
        ensure!(hosts == Some(json!([format!("{service}.edpm-system.svc")])), "{hosts:?}");
    }
    for configuration in webhooks(&objects) {
        let from = text(configuration, "/metadata/annotations/cert-manager.io~1inject-ca-from");
        let service = from.strip_prefix("edpm-system/").unwrap_or_default();
        let operator = service.strip_suffix("-webhook").unwrap_or_default();
        let name = text(configuration, "/metadata/name");
        ensure!(SERVING.contains(&operator) && name.ends_with(operator), "{name}: {from}");
    }
    let bound = of_kind(&objects, "Role").chain(of_kind(&objects, "ClusterRole"));
    let rules = bound.flat_map(|it| it["rules"].as_array().into_iter().flatten());
    let mut n_rules = 0;
    for rule in rules {
        let names = rule["resourceNames"].to_string();
        if names.contains("edpm-system.") || names.contains("webhook-tls") {
            n_rules += 1;
            ensure!(rule["verbs"] == json!(["list", "watch"]), "{rule}");
        }
    }
    ensure!(n_rules == 4, "{n_rules} rules speak of the webhook's certificate");
    let maker = env_of(&objects, "nova-operator", "WEBHOOK_CERTIFICATES")?;
    ensure!(maker == "cert-manager", "{maker}");
    Ok(())
}

/// Checks that the operator gets the CAs of the API server's client certificate if they are
/// configured.
pub(super) fn client_authorities() -> Result<()> {
    const NAME: &str = "WEBHOOK_CLIENT_AUTHORITIES";
    let named = rendered(&["webhooks.clientAuthorities=api-server"])?;
    let found: Vec<&Value> = of_kind(&named, "Deployment")
        .filter_map(|it| it["spec"]["template"]["spec"]["containers"][0]["env"].as_array())
        .flatten()
        .filter(|it| it["name"] == NAME)
        .collect();
    let from = json!({"configMapKeyRef": {"name": "api-server", "key": "ca.crt"}});
    let is_given = found.iter().all(|it| it["valueFrom"] == from);
    ensure!(found.len() == SERVING.len() && is_given, "{found:?}");
    let objects = rendered(&[])?;
    ensure!(!json!(objects).to_string().contains(NAME), "it is set where nothing is named");
    Ok(())
}
