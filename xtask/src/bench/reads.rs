//! The single objects that operators read while they work; each read must be on a list.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A read that is allowed, with its cause.
struct Allowed {
    operator: &'static str,
    resource: &'static str,
    cause: Cause,
}

/// The event that allows a read, once per event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Cause {
    /// The operator's create request returned `AlreadyExists`, so it compares owner and identity of
    /// the existing object: a run happens once.
    AlreadyExists,
    /// Another client wrote the object. Watches carry only metadata of Secrets and ConfigMaps, so
    /// the operator that hashes the content reads it.
    ContentChanged,
}

impl Cause {
    fn words(self) -> &'static str {
        match self {
            Self::AlreadyExists => {
                "its creation met AlreadyExists; identity and owner are compared"
            }
            Self::ContentChanged => "its content changed and is hashed by this operator",
        }
    }
}

/// Every read that is allowed after the start; caches serve everything else.
const ALLOWED: [Allowed; 8] = [
    allowed("ansibleee-operator", "jobs", Cause::AlreadyExists),
    allowed("ansibleee-operator", "configmaps", Cause::AlreadyExists),
    allowed("dataplane-operator", "openstackansibleees", Cause::AlreadyExists),
    allowed("nova-operator", "openstackansibleees", Cause::AlreadyExists),
    allowed("dataplane-operator", "configmaps", Cause::ContentChanged),
    allowed("dataplane-operator", "secrets", Cause::ContentChanged),
    allowed("nova-operator", "configmaps", Cause::ContentChanged),
    allowed("nova-operator", "secrets", Cause::ContentChanged),
];

const fn allowed(operator: &'static str, resource: &'static str, cause: Cause) -> Allowed {
    Allowed { operator, resource, cause }
}

/// A resource, and `namespace/name`.
type Object = (String, String);

/// The reads of single objects between two positions of the audit log, and the events that may
/// explain them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Reads {
    /// Operator and object → number of reads.
    gets: BTreeMap<(String, Object), u64>,
    /// Operator and object → number of create requests that found an existing object.
    refused: BTreeMap<(String, Object), u64>,
    /// Object → number of writes by operator; all other clients count as one writer without a name.
    written: BTreeMap<Object, BTreeMap<String, u64>>,
}

impl Reads {
    /// Counts a completed request of an operator, or of another client.
    pub(super) fn count(&mut self, operator: Option<&str>, event: &Value) {
        let reference = &event["objectRef"];
        let text = |name: &str| reference[name].as_str().unwrap_or_default().to_owned();
        let is_whole = text("subresource").is_empty();
        if event["stage"] != "ResponseComplete" || !is_whole {
            return;
        }
        let object = (text("resource"), format!("{}/{}", text("namespace"), text("name")));
        let code = event["responseStatus"]["code"].as_u64().unwrap_or_default();
        let verb = event["verb"].as_str().unwrap_or_default();
        match (verb, operator) {
            ("get", Some(operator)) => {
                *self.gets.entry((operator.to_owned(), object)).or_default() += 1;
            }
            ("create", Some(operator)) if code == 409 => {
                *self.refused.entry((operator.to_owned(), object)).or_default() += 1;
            }
            ("create" | "update" | "patch", _) if (200..300).contains(&code) => {
                let writers = self.written.entry(object).or_default();
                *writers.entry(operator.unwrap_or_default().to_owned()).or_default() += 1;
            }
            _ => {}
        }
    }

    /// Returns each read with its cause; an empty list when nothing was read.
    pub(super) fn as_json(&self) -> Value {
        let item = |((operator, object), n): (&(String, Object), &u64)| {
            let why = self.cause(operator, object, *n).map_or("not allowed", Cause::words);
            json!({ "operator": operator, "get": format!("{} {}", object.0, object.1), "times": n,
                    "because": why })
        };
        self.gets.iter().map(item).collect()
    }

    /// Returns the reads that no rule allows.
    pub(super) fn unexplained(&self) -> Vec<String> {
        let is_wrong = |((operator, object), n): &(&(String, Object), &u64)| {
            self.cause(operator, object, **n).is_none()
        };
        let words = |((operator, object), n): (&(String, Object), &u64)| {
            format!("{operator}: {n} × get {} {}, which nothing allows", object.0, object.1)
        };
        self.gets.iter().filter(is_wrong).map(words).collect()
    }

    /// Returns the cause that allows this number of reads, or `None`.
    fn cause(&self, operator: &str, object: &Object, n: u64) -> Option<Cause> {
        let happened = |cause| match cause {
            Cause::AlreadyExists => {
                self.refused.get(&(operator.to_owned(), object.clone())).copied().unwrap_or(0)
            }
            // Its own writes need no read.
            Cause::ContentChanged => {
                let writers = self.written.get(object).into_iter().flatten();
                writers.filter(|(it, _)| *it != operator).map(|(_, n)| n).sum()
            }
        };
        ALLOWED
            .iter()
            .filter(|it| it.operator == operator && it.resource == object.0)
            .map(|it| it.cause)
            .find(|it| happened(*it) >= n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOVA: Option<&str> = Some("nova-operator");
    const RUNS: Option<&str> = Some("ansibleee-operator");

    fn event(verb: &str, resource: &str, code: u64) -> Value {
        json!({
            "stage": "ResponseComplete",
            "verb": verb,
            "objectRef": { "resource": resource, "namespace": "openstack", "name": "x" },
            "responseStatus": { "code": code },
        })
    }

    fn reads(events: &[(Option<&str>, Value)]) -> Reads {
        let mut reads = Reads::default();
        for (operator, event) in events {
            reads.count(*operator, event);
        }
        reads
    }

    #[test]
    fn a_read_without_a_cause_is_a_fault() {
        let found = reads(&[(NOVA, event("get", "secrets", 200))]);
        let expected = "nova-operator: 1 × get secrets openstack/x, which nothing allows";
        assert_eq!(found.unexplained(), [expected]);
        assert_eq!(found.as_json()[0]["because"], "not allowed");
    }

    #[test]
    fn a_changed_content_is_read_once_by_whoever_hashes_it() {
        let written = (None, event("update", "secrets", 200));
        let read = (NOVA, event("get", "secrets", 200));
        let found = reads(&[written.clone(), read.clone()]);
        assert_eq!(found.unexplained(), [""; 0]);
        let item = &found.as_json()[0];
        assert_eq!((&item["get"], &item["times"]), (&json!("secrets openstack/x"), &json!(1)));
        assert_eq!(item["because"], Cause::ContentChanged.words());
        assert_eq!(reads(&[written.clone(), read.clone(), read]).unexplained().len(), 1);
        let own = (NOVA, event("patch", "secrets", 200));
        let read = (NOVA, event("get", "secrets", 200));
        assert_eq!(reads(&[own, read]).unexplained().len(), 1, "what it wrote itself it knows");
        // An operator that must not read Secrets at all, and one that never hashes this kind.
        let by_runs = (RUNS, event("get", "secrets", 200));
        assert_eq!(reads(&[written, by_runs]).unexplained().len(), 1);
        let node = |verb| event(verb, "openstackdataplanenodes", 200);
        assert_eq!(reads(&[(None, node("patch")), (NOVA, node("get"))]).unexplained().len(), 1);
    }

    #[test]
    fn a_write_that_failed_or_of_a_status_changes_no_content() {
        let read = (NOVA, event("get", "secrets", 200));
        assert_eq!(
            reads(&[(None, event("update", "secrets", 409)), read.clone()]).unexplained().len(),
            1
        );
        let mut status = event("patch", "secrets", 200);
        status["objectRef"]["subresource"] = json!("status");
        assert_eq!(reads(&[(None, status), read]).unexplained().len(), 1);
    }

    #[test]
    fn an_existing_job_is_read_after_a_creation_that_met_it() {
        let refused = (RUNS, event("create", "jobs", 409));
        let read = (RUNS, event("get", "jobs", 200));
        let found = reads(&[refused.clone(), read.clone()]);
        assert_eq!(found.unexplained(), [""; 0]);
        assert_eq!(found.as_json()[0]["because"], Cause::AlreadyExists.words());
        let created = (RUNS, event("create", "jobs", 201));
        assert_eq!(reads(&[created, read.clone()]).unexplained().len(), 1);
        // An error of another operator does not allow a read.
        let others = (NOVA, event("create", "jobs", 409));
        assert_eq!(reads(&[others, read]).unexplained().len(), 1);
    }
}
