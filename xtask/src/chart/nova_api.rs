//! Checks of what the chart grants for nova's API.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::invariants::{of_kind, text};
use super::rendered;

/// The resources on which nova-operator has a right only where it reads nova's API, with a verb.
const RIGHTS: [(&str, &str); 3] = [
    ("openstackdataplanenodesets", "watch"),
    ("openstackdataplanenodesets/status", "patch"),
    ("openstackdataplaneroles/status", "patch"),
];

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

fn grants(role: &Value, resource: &str, verb: &str) -> bool {
    let has =
        |list: &Value, word: &str| list.as_array().is_some_and(|it| it.contains(&json!(word)));
    let mut rules = role["rules"].as_array().into_iter().flatten();
    rules.any(|it| has(&it["resources"], resource) && has(&it["verbs"], verb))
}
