//! Invariants of the chart's objects, whatever the values.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// Returns the objects of a kind.
pub(super) fn of_kind<'a>(objects: &'a [Value], kind: &str) -> impl Iterator<Item = &'a Value> {
    objects.iter().filter(move |it| it["kind"] == kind)
}

/// Returns all webhook configurations.
pub(super) fn webhooks(objects: &[Value]) -> impl Iterator<Item = &Value> {
    of_kind(objects, "MutatingWebhookConfiguration")
        .chain(of_kind(objects, "ValidatingWebhookConfiguration"))
}

/// Returns the text at a JSON pointer; empty when there is none.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Checks that every rule is explicit, every pod restricted and every binding complete.
pub(super) fn check(objects: &[Value]) -> Result<()> {
    for role in of_kind(objects, "Role").chain(of_kind(objects, "ClusterRole")) {
        explicit(role)?;
    }
    for deployment in of_kind(objects, "Deployment") {
        restricted(deployment)?;
        cared_for(deployment)?;
    }
    for binding in of_kind(objects, "RoleBinding").chain(of_kind(objects, "ClusterRoleBinding")) {
        complete(objects, binding)?;
    }
    Ok(())
}

fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// Checks that a role has rules, without wildcards or empty parts.
fn explicit(role: &Value) -> Result<()> {
    let rules = role["rules"].as_array().cloned().unwrap_or_default();
    ensure!(!rules.is_empty(), "{} has no rules", name(role));
    for rule in rules {
        for part in ["apiGroups", "resources", "verbs"] {
            let words = rule[part].as_array().cloned().unwrap_or_default();
            ensure!(!words.is_empty(), "{}: a rule without {part}", name(role));
            ensure!(!words.contains(&json!("*")), "{}: {part} has a wildcard", name(role));
        }
    }
    Ok(())
}

/// Checks the restricted Pod Security Standard, and a read-only root file system.
fn restricted(deployment: &Value) -> Result<()> {
    let of = name(deployment);
    let pod = &deployment["spec"]["template"]["spec"];
    ensure!(pod["securityContext"]["runAsNonRoot"] == true, "{of}: runAsNonRoot");
    ensure!(pod["securityContext"]["runAsUser"] != 0, "{of}: runs as root");
    let profile = &pod["securityContext"]["seccompProfile"]["type"];
    ensure!(profile == "RuntimeDefault", "{of}: seccompProfile");
    for shared in ["hostNetwork", "hostPID", "hostIPC"] {
        ensure!(pod[shared].is_null(), "{of}: {shared}");
    }
    ensure!(pod["volumes"].is_null(), "{of}: an operator needs no volume");
    for container in pod["containers"].as_array().into_iter().flatten() {
        let context = &container["securityContext"];
        ensure!(context["allowPrivilegeEscalation"] == false, "{of}: allowPrivilegeEscalation");
        ensure!(context["readOnlyRootFilesystem"] == true, "{of}: readOnlyRootFilesystem");
        ensure!(context["capabilities"] == json!({ "drop": ["ALL"] }), "{of}: capabilities");
        ensure!(context["privileged"].is_null(), "{of}: privileged");
    }
    Ok(())
}

/// Checks probes, resources, and a rollout during which one operator is always available.
fn cared_for(deployment: &Value) -> Result<()> {
    let of = name(deployment);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
        ensure!(container[probe]["httpGet"]["path"] == path, "{of}: {probe}");
    }
    for resource in ["/requests/cpu", "/requests/memory", "/limits/memory"] {
        ensure!(!text(&container["resources"], resource).is_empty(), "{of}: {resource}");
    }
    let rollout = &deployment["spec"]["strategy"]["rollingUpdate"];
    ensure!(*rollout == json!({ "maxSurge": 1, "maxUnavailable": 0 }), "{of}: {rollout}");
    Ok(())
}

/// Checks that a binding's role and account are objects of the chart.
fn complete(objects: &[Value], binding: &Value) -> Result<()> {
    let namespace = &binding["metadata"]["namespace"];
    let is_role = |it: &&Value| {
        it["kind"] == binding["roleRef"]["kind"]
            && it["metadata"]["name"] == binding["roleRef"]["name"]
            && it["metadata"]["namespace"] == *namespace
    };
    ensure!(objects.iter().any(|it| is_role(&it)), "{} binds no role", name(binding));
    let account = &binding["subjects"][0]["name"];
    let has_account =
        of_kind(objects, "ServiceAccount").any(|it| it["metadata"]["name"] == *account);
    ensure!(has_account, "{} has no account", name(binding));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment() -> Value {
        let container = json!({
            "livenessProbe": { "httpGet": { "path": "/healthz" } },
            "readinessProbe": { "httpGet": { "path": "/readyz" } },
            "resources": {
                "requests": { "cpu": "1m", "memory": "1Mi" }, "limits": { "memory": "1Mi" },
            },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            },
        });
        let security = json!({
            "runAsNonRoot": true, "runAsUser": 1, "seccompProfile": { "type": "RuntimeDefault" },
        });
        json!({
            "kind": "Deployment",
            "metadata": { "name": "x" },
            "spec": {
                "strategy": { "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } },
                "template": { "spec": { "securityContext": security, "containers": [container] } },
            },
        })
    }

    #[test]
    fn each_breach_of_the_restricted_profile_is_named() {
        check(&[deployment()]).unwrap();
        let pod = "/spec/template/spec";
        let container = "/spec/template/spec/containers/0/securityContext";
        for (place, field, value) in [
            (format!("{pod}/securityContext"), "runAsNonRoot", json!(false)),
            (format!("{pod}/securityContext"), "runAsUser", json!(0)),
            (format!("{pod}/securityContext"), "seccompProfile", json!(null)),
            (pod.to_owned(), "hostNetwork", json!(true)),
            (pod.to_owned(), "volumes", json!([{ "name": "v", "hostPath": { "path": "/" } }])),
            (container.to_owned(), "allowPrivilegeEscalation", json!(true)),
            (container.to_owned(), "readOnlyRootFilesystem", json!(null)),
            (container.to_owned(), "capabilities", json!({ "add": ["NET_ADMIN"] })),
            (container.to_owned(), "privileged", json!(true)),
            (format!("{pod}/containers/0"), "readinessProbe", json!(null)),
            (format!("{pod}/containers/0"), "resources", json!({})),
        ] {
            let mut broken = deployment();
            broken.pointer_mut(&place).unwrap()[field] = value;
            assert!(check(&[broken]).is_err(), "{place}/{field} was accepted");
        }
    }

    #[test]
    fn wildcards_and_dangling_bindings_are_refused() {
        let role = |verb: &str| {
            let rule = json!({ "apiGroups": [""], "resources": ["pods"], "verbs": [verb] });
            json!({ "kind": "Role", "metadata": { "name": "r" }, "rules": [rule] })
        };
        check(&[role("get")]).unwrap();
        assert!(check(&[role("*")]).is_err());
        let binding = json!({
            "kind": "RoleBinding",
            "metadata": { "name": "b" },
            "roleRef": { "kind": "Role", "name": "r" },
            "subjects": [{ "name": "a" }],
        });
        let account = json!({ "kind": "ServiceAccount", "metadata": { "name": "a" } });
        check(&[role("get"), account.clone(), binding.clone()]).unwrap();
        assert!(check(&[account, binding.clone()]).is_err(), "no role");
        assert!(check(&[role("get"), binding]).is_err(), "no account");
    }
}
