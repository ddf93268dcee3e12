//! Checks of what the chart grants for nova's API, and of the readiness gate that depends on it.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::invariants::{of_kind, text};
use super::{IMAGE, env_of, refused, rendered};

/// The resources on which nova-operator has a right only where it reads nova's API, with a verb.
const RIGHTS: [(&str, &str); 8] = [
    ("openstackdataplanehostreadinesses", "create"),
    ("openstackdataplanehostreadinesses", "delete"),
    ("openstackdataplanehostreadinesses", "list"),
    ("openstackdataplanehostreadinesses", "patch"),
    ("openstackdataplanehostreadinesses", "watch"),
    ("openstackdataplanenodesets", "watch"),
    ("openstackdataplanenodesets/status", "patch"),
    ("openstackdataplaneroles/status", "patch"),
];

/// The variable with the readiness gates that default services list, and its value with the switch.
const GATES: &str = "DEFAULT_SERVICE_GATES";
const GATE: &str = "nova=nova.openstack.org/ServiceUp";

/// Checks that each of these rights follows the switch, for all namespaces and for some.
pub(super) fn rights() -> Result<()> {
    for (kind, namespaces) in [("ClusterRole", None), ("Role", Some("watchNamespaces={a}"))] {
        for is_read in [true, false] {
            let switch = format!("nova.api.enabled={is_read}");
            let values: Vec<&str> = namespaces.into_iter().chain([switch.as_str()]).collect();
            let objects = rendered(&values)?;
            for (resource, verb) in RIGHTS {
                let is_granted = of_kind(&objects, kind)
                    .filter(|it| text(it, "/metadata/name").ends_with(".nova-operator"))
                    .any(|role| grants(role, resource, verb));
                ensure!(is_granted == is_read, "{kind} {resource} {verb}, API read: {is_read}");
            }
        }
    }
    Ok(())
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

fn grants(role: &Value, resource: &str, verb: &str) -> bool {
    let has =
        |list: &Value, word: &str| list.as_array().is_some_and(|it| it.contains(&json!(word)));
    let mut rules = role["rules"].as_array().into_iter().flatten();
    rules.any(|it| has(&it["resources"], resource) && has(&it["verbs"], verb))
}

#[cfg(test)]
mod tests {
    use dataplane_operator::default_services::DefaultServices;
    use nova_config::conditions::NODE_SERVICE_UP;
    use operator_core::hash;

    use super::GATE;

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
