//! Checks of what the chart lets the operators' accounts create as Jobs and Secrets; the simulated
//! cluster's API server evaluates the policies.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::invariants::{of_kind, text};
use super::{annotation_warnings, rendered};

/// The operators that create Jobs, with the label of these: a test compares it with the code, which
/// only tests link.
const LABELS: [(&str, (&str, &str)); 2] = [
    ("ansibleee-operator", ("app", "openstackansibleee")),
    ("nova-operator", ("nova.openstack.org/host-discovery", "true")),
];

/// Returns the policies about Jobs that bindings enforce, each with the name of its operator.
fn enforced(values: &[&str]) -> Result<Vec<(String, Value)>> {
    policies(values, "jobs")
}

/// Returns the policies about a resource that bindings enforce, each with the name of its operator.
fn policies(values: &[&str], resource: &str) -> Result<Vec<(String, Value)>> {
    let objects = rendered(values)?;
    // The policy that only warns users has a check of its own.
    let bounds = |it: &&Value| !annotation_warnings::is_of(it);
    let n_policies = of_kind(&objects, "ValidatingAdmissionPolicy").filter(bounds).count();
    let mut found = Vec::new();
    for binding in of_kind(&objects, "ValidatingAdmissionPolicyBinding").filter(bounds) {
        ensure!(binding["spec"]["validationActions"] == json!(["Deny"]), "{binding}");
        ensure!(binding["spec"]["matchResources"].is_null(), "{binding}");
        let name = text(binding, "/spec/policyName");
        let policy = of_kind(&objects, "ValidatingAdmissionPolicy")
            .find(|it| it["metadata"]["name"] == name)
            .with_context(|| format!("no policy {name}"))?;
        ensure!(policy["spec"]["failurePolicy"] == "Fail", "{policy}");
        let of_release = name.strip_prefix("edpm.edpm-system.").and_then(|it| it.rsplit_once('-'));
        let (operator, about) = of_release.with_context(|| name.to_owned())?;
        let account = format!("== 'system:serviceaccount:edpm-system:{operator}'");
        let who = text(policy, "/spec/matchConditions/0/expression");
        ensure!(who.ends_with(&account), "{operator}: {who}");
        let spec = policy["spec"].clone();
        let resources = &spec["matchConstraints"]["resourceRules"][0]["resources"];
        ensure!(*resources == json!([about]), "{policy}");
        found.push((about.to_owned(), (operator.to_owned(), spec)));
    }
    ensure!(n_policies == found.len(), "{n_policies} policies, {} bindings", found.len());
    found.retain(|it| it.0 == resource);
    Ok(found.into_iter().map(|it| it.1).collect())
}

/// Returns the names of the operators whose Jobs are bounded.
fn bounded(values: &[&str]) -> Result<Vec<String>> {
    Ok(enforced(values)?.into_iter().map(|it| it.0).collect())
}

/// Checks that each operator that creates Jobs is bounded where it has the right in all namespaces.
pub(super) fn of_operators() -> Result<()> {
    for (operator, policy) in enforced(&[])? {
        let (_, (label, value)) =
            LABELS.into_iter().find(|it| it.0 == operator).context(operator.clone())?;
        let rules = policy["validations"].to_string();
        let wanted = format!("labels[?'{label}'].orValue('') == '{value}'");
        ensure!(rules.matches(&wanted).count() == 2, "{operator}: {rules}");
    }
    let all = LABELS.map(|it| it.0);
    ensure!(bounded(&[])? == all, "{:?}", bounded(&[])?);
    ensure!(
        bounded(&["nova.api.enabled=false"])? == all[..1],
        "nova-operator creates no Jobs then"
    );
    let of_secrets = policies(&[], "secrets")?;
    let operators: Vec<&str> = of_secrets.iter().map(|it| it.0.as_str()).collect();
    ensure!(operators == ["dataplane-operator", "nova-operator"], "{operators:?}");
    for off in ["watchNamespaces={a}", "operatorPolicies.enabled=false"] {
        ensure!(bounded(&[off])?.is_empty() && policies(&[off], "secrets")?.is_empty(), "{off}");
    }
    Ok(())
}

/// Checks that accounts and namespaces are those of the values.
pub(super) fn of_values() -> Result<()> {
    let rules = |values: &[&str]| -> Result<Vec<String>> {
        Ok(enforced(values)?.iter().map(|it| it.1["validations"].to_string()).collect())
    };
    let accounts = |quoted: &str| format!("serviceAccountName in {quoted}");
    let named = rules(&["ansibleee.allowedServiceAccounts={runner,other}"])?;
    let quoted = r#"[\"runner\",\"other\"]"#;
    ensure!(named[0].contains(&accounts(quoted)), "{}", named[0]);
    ensure!(named[1].contains(&accounts("[]")), "nova-operator's Jobs have none: {}", named[1]);
    let any = rules(&["ansibleee.allowedServiceAccounts={*}"])?;
    ensure!(!any[0].contains("serviceAccountName") && any[0].contains("hostPath"), "{}", any[0]);
    for rule in rules(&["operatorPolicies.excludedNamespaces={vault,rook}"])? {
        ensure!(rule.contains(r#"request.namespace in [\"vault\",\"rook\"]"#), "{rule}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ansibleee_operator::run::build::APP;
    use ansibleee_operator::run::pod_spec_rules::CAPABILITIES;
    use nova_operator::shared_caches::discovery_jobs::LABEL;
    use serde_json::json;

    use super::LABELS;
    use crate::paths;

    #[test]
    fn the_labels_of_the_policies_are_those_of_the_operators_jobs() {
        assert_eq!(LABELS.map(|it| it.1), [APP, (LABEL, "true")]);
    }

    #[test]
    fn the_policies_allow_the_capabilities_that_ansibleee_operator_takes() {
        let path = "charts/edpm-operators/templates/operator-policies.yaml";
        let text = std::fs::read_to_string(paths::repo().join(path)).unwrap();
        assert!(text.contains(&json!(CAPABILITIES).to_string()), "{text}");
    }
}
