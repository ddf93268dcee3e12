//! Checks of what the chart grants for nova's API, and of the readiness gate that depends on it.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::invariants::{of_kind, text};
use super::{IMAGE, env_of, refused, rendered};

/// The resources on which nova-operator has a right only where it reads nova's API, with the verbs;
/// a test compares them with the table of the operator, which only tests link.
const RIGHTS: [(&str, &[&str]); 2] =
    [("jobs", &["create", "delete", "get", "list", "watch"]), ("pods", &["list"])];

/// The variable with the readiness gates that default services list, and its value with the switch.
const GATES: &str = "DEFAULT_SERVICE_GATES";
const GATE: &str = "nova=nova.openstack.org/ServiceUp";

/// Checks that these rights, and no others, follow the switch, for all namespaces and for some.
pub(super) fn rights() -> Result<()> {
    let optional = RIGHTS.iter().flat_map(|(resource, verbs)| rights_on(resource, verbs)).collect();
    for (kind, namespaces) in [("ClusterRole", None), ("Role", Some("watchNamespaces={a}"))] {
        let granted = |is_read: bool| -> Result<BTreeSet<Right>> {
            let switch = format!("nova.api.enabled={is_read}");
            let values: Vec<&str> = namespaces.into_iter().chain([switch.as_str()]).collect();
            Ok(granted(&rendered(&values)?, kind))
        };
        let (with, without) = (granted(true)?, granted(false)?);
        let found: BTreeSet<Right> = with.difference(&without).cloned().collect();
        ensure!(found == optional, "{kind}: {found:?} follow the switch, not {optional:?}");
        ensure!(without.is_subset(&with), "{kind}: the switch takes a right away");
    }
    Ok(())
}

/// A resource and a verb.
type Right = (String, String);

fn rights_on(resource: &str, verbs: &[&str]) -> Vec<Right> {
    verbs.iter().map(|verb| (resource.to_owned(), (*verb).to_owned())).collect()
}

/// Returns what the roles of nova-operator of this kind grant.
fn granted(objects: &[Value], kind: &str) -> BTreeSet<Right> {
    let of_operator = of_kind(objects, kind)
        .filter(|it| text(it, "/metadata/name").ends_with(".nova-operator"))
        .flat_map(|it| it["rules"].as_array().into_iter().flatten());
    let of_rule = |rule: &Value| -> Vec<Right> {
        let (resources, verbs) = (words(&rule["resources"]), words(&rule["verbs"]));
        resources.iter().flat_map(|it| rights_on(it, &verbs)).collect()
    };
    of_operator.flat_map(of_rule).collect()
}

fn words(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Checks that dataplane-operator gets the gate where it is switched on, and that it is refused where
/// nova's API is not read.
pub(super) fn readiness() -> Result<()> {
    let listed = |values: &[&str]| env_of(&rendered(values)?, "dataplane-operator", GATES);
    let found = listed(&["nova.nodeSetReadiness=true"])?;
    ensure!(found == GATE, "{found}");
    for off in [&[][..], &["nova.nodeSetReadiness=false", "nova.api.enabled=false"]] {
        let error = listed(off).err().map(|it| it.to_string()).unwrap_or_default();
        ensure!(error == format!("dataplane-operator has no {GATES}"), "{off:?}: {error}");
    }
    let unread = [IMAGE, "nova.nodeSetReadiness=true", "nova.api.enabled=false"];
    refused(&unread, "nova.nodeSetReadiness needs nova.api.enabled")
}

#[cfg(test)]
mod tests {
    use dataplane_operator::default_services::DefaultServices;
    use nova_config::conditions::NODE_SERVICE_UP;
    use nova_operator::operator::NOVA_API_RULES;
    use operator_core::hash;

    use super::{GATE, RIGHTS};
    use crate::paths;

    /// How SECURITY.md names the resources.
    const NAMES: [(&str, &str); 2] = [("jobs", "Jobs"), ("pods", "Pods")];

    #[test]
    fn the_rights_that_follow_the_switch_are_those_of_the_operator() {
        let of_rule = |rule: &operator_core::rbac::Rule| {
            let verbs = rule.verbs;
            rule.resources.iter().map(|it| (*it, verbs)).collect::<Vec<_>>()
        };
        let mut expected: Vec<(&str, &[&str])> = NOVA_API_RULES.iter().flat_map(of_rule).collect();
        expected.sort_unstable();
        assert_eq!(RIGHTS.to_vec(), expected);
    }

    /// The verbs stand behind the name, up to the next name or the operator.
    #[test]
    fn security_lists_each_of_them_with_all_its_verbs() {
        let security = std::fs::read_to_string(paths::repo().join("SECURITY.md")).unwrap();
        let rights: Vec<&str> = security
            .lines()
            .filter_map(|it| it.strip_prefix("| ")?.split(" | ").next())
            .filter(|it| it.contains("(nova-operator, ") && it.contains("`nova.api.enabled`"))
            .collect();
        for (resource, verbs) in RIGHTS {
            let name = NAMES.iter().find(|it| it.0 == resource).unwrap().1;
            let quoted: Vec<String> = verbs.iter().map(|it| format!("`{it}`")).collect();
            let wanted = format!("{name}: ");
            let listed = rights.iter().filter_map(|it| it.split_once(&wanted)).map(|it| {
                let mut verbs: Vec<&str> =
                    it.1.split([';', '(']).next().unwrap().trim().split(", ").collect();
                verbs.sort_unstable();
                verbs
            });
            assert_eq!(listed.collect::<Vec<_>>(), [quoted], "{resource}");
        }
    }

    #[test]
    fn the_gate_of_the_chart_is_the_one_that_nova_operator_reports() {
        let gated = DefaultServices::with_gates(&[GATE.parse().unwrap()]);
        let listed = &gated.find("nova").unwrap().spec.readiness_gates;
        let types: Vec<&str> = listed.iter().map(|it| it.condition_type.as_str()).collect();
        assert_eq!(types, [NODE_SERVICE_UP]);
    }

    /// Another hash in the annotation of the service would write it anew at an upgrade.
    #[test]
    fn without_the_switch_the_service_has_the_hash_that_it_always_had() {
        let shipped = DefaultServices::default();
        assert_eq!(hash::short(&shipped.find("nova").unwrap().spec), "f861bee9ac");
    }
}
