//! The status that tools compute for an object by the rules of kstatus (sigs.k8s.io/cli-utils).

use serde_json::Value;

use crate::faults::Kstatus;

/// Returns the status of an object whose kind has no rules of its own in kstatus.
pub fn kstatus(object: &Value) -> Kstatus {
    let metadata = &object["metadata"];
    if !metadata["deletionTimestamp"].is_null() {
        return Kstatus::Terminating;
    }
    let observed = &object["status"]["observedGeneration"];
    if !observed.is_null() && *observed != metadata["generation"] {
        return Kstatus::InProgress;
    }
    // The first condition that is true decides.
    for condition in conditions(object).filter(|it| it["status"] == "True") {
        match condition["type"].as_str() {
            Some("Reconciling") => return Kstatus::InProgress,
            Some("Stalled") => return Kstatus::Failed,
            _ => {}
        }
    }
    match conditions(object).find(|it| it["type"] == "Ready") {
        Some(ready) if ready["status"] != "True" => Kstatus::InProgress,
        Some(_) | None => Kstatus::Current,
    }
}

/// Whether the object's `Ready` condition is true.
pub fn is_ready(object: &Value) -> bool {
    conditions(object).any(|it| it["type"] == "Ready" && it["status"] == "True")
}

fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    object["status"]["conditions"].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_rule_that_fits_decides() {
        let holds = |type_: &str| json!({ "type": type_, "status": "True" });
        let ready = |status: &str| json!({ "type": "Ready", "status": status });
        let cases = [
            (json!([]), Kstatus::Current),
            (json!([ready("True")]), Kstatus::Current),
            (json!([ready("False")]), Kstatus::InProgress),
            (json!([ready("Unknown")]), Kstatus::InProgress),
            (json!([ready("False"), holds("Stalled")]), Kstatus::Failed),
            (json!([ready("True"), holds("Reconciling")]), Kstatus::InProgress),
            (json!([holds("Reconciling"), holds("Stalled")]), Kstatus::InProgress),
            (json!([{ "type": "Stalled", "status": "False" }]), Kstatus::Current),
        ];
        for (conditions, expected) in cases {
            let status = json!({ "observedGeneration": 2, "conditions": conditions });
            let mut object = json!({ "metadata": { "generation": 2 }, "status": status });
            assert_eq!(kstatus(&object), expected, "{object}");
            object["metadata"]["generation"] = json!(3);
            assert_eq!(kstatus(&object), Kstatus::InProgress, "{object}");
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            assert_eq!(kstatus(&object), Kstatus::Terminating, "{object}");
        }
        assert_eq!(kstatus(&json!({ "metadata": { "generation": 1 } })), Kstatus::Current);
    }
}
