//! Checks of the policy that warns of annotations that no operator reads; the simulated cluster's API
//! server evaluates it.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::invariants::{of_kind, text};
use super::rendered;

/// The name of the policy and its binding.
const NAME: &str = "edpm.edpm-system.annotations";

/// Whether an object is this policy or its binding.
pub(super) fn is_of(object: &Value) -> bool {
    text(object, "/metadata/name") == NAME
}

/// Returns the policy and its binding.
fn found(values: &[&str]) -> Result<(Value, Value)> {
    let objects = rendered(values)?;
    let one = |kind: &str| {
        let mut all = of_kind(&objects, kind).filter(|it| is_of(it));
        all.next().cloned().with_context(|| format!("no {kind} {NAME} with {values:?}"))
    };
    Ok((one("ValidatingAdmissionPolicy")?, one("ValidatingAdmissionPolicyBinding")?))
}

/// Checks that the policy warns users alone, in the namespaces of the release, and that it can be
/// left out.
pub(super) fn of_users() -> Result<()> {
    for watched in [&[][..], &["watchNamespaces={a,b}", "operatorPolicies.enabled=false"]] {
        let (policy, binding) = found(watched)?;
        ensure!(policy["spec"]["failurePolicy"] == "Ignore", "{policy}");
        ensure!(binding["spec"]["policyName"] == NAME, "{binding}");
        ensure!(binding["spec"]["validationActions"] == json!(["Warn"]), "{binding}");
        let who = text(&policy, "/spec/matchConditions/0/expression");
        ensure!(who.starts_with("!(request.userInfo.username in"), "{who}");
        for operator in ["ansibleee-operator", "dataplane-operator", "nova-operator"] {
            let account = format!("\"system:serviceaccount:edpm-system:{operator}\"");
            ensure!(who.contains(&account), "{who}");
        }
        let selector = &binding["spec"]["matchResources"]["namespaceSelector"];
        let namespaces = &selector["matchExpressions"][0]["values"];
        let expected = if watched.is_empty() { json!(null) } else { json!(["a", "b"]) };
        ensure!(*namespaces == expected, "{binding}");
    }
    let without = rendered(&["annotationWarnings.enabled=false"])?;
    ensure!(!without.iter().any(is_of), "{NAME} is made although it is switched off");
    Ok(())
}
