//! Checks of the policies that warn of annotations that no operator reads, and of the deletion of a node
//! whose host stays; the simulated cluster's API server evaluates them.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::invariants::{of_kind, text};
use super::rendered;

/// The name of the policy about annotations and its binding, and of the one about deleted nodes.
const NAMES: [&str; 2] = ["edpm.edpm-system.annotations", "edpm.edpm-system.deleted-nodes"];

/// Whether an object is one of these policies or their bindings.
pub(super) fn is_of(object: &Value) -> bool {
    NAMES.contains(&text(object, "/metadata/name"))
}

/// Returns the policy of that name and its binding.
fn found(values: &[&str], name: &str) -> Result<(Value, Value)> {
    let objects = rendered(values)?;
    let one = |kind: &str| {
        let mut all = of_kind(&objects, kind).filter(|it| text(it, "/metadata/name") == name);
        all.next().cloned().with_context(|| format!("no {kind} {name} with {values:?}"))
    };
    Ok((one("ValidatingAdmissionPolicy")?, one("ValidatingAdmissionPolicyBinding")?))
}

/// Checks that the policies warn users alone, in the namespaces of the release, and that they can be
/// left out.
pub(super) fn of_users() -> Result<()> {
    for name in NAMES {
        for watched in [&[][..], &["watchNamespaces={a,b}", "operatorPolicies.enabled=false"]] {
            warns_users(watched, name)?;
        }
    }
    let without = rendered(&["annotationWarnings.enabled=false"])?;
    ensure!(!without.iter().any(is_of), "{NAMES:?} are made although they are switched off");
    Ok(())
}

fn warns_users(watched: &[&str], name: &str) -> Result<()> {
    let (policy, binding) = found(watched, name)?;
    ensure!(policy["spec"]["failurePolicy"] == "Ignore", "{policy}");
    ensure!(binding["spec"]["policyName"] == name, "{binding}");
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
    Ok(())
}
