//! The operators' requests to the API server, read from its audit log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::reads::Reads;
use crate::demo::OPERATORS;
use crate::lab;

/// The audit log of the lab's API server.
pub(crate) struct Audit {
    path: PathBuf,
}

/// The operators' requests to the API server.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Requests {
    /// Operator → `verb resource` → count.
    counts: BTreeMap<String, BTreeMap<String, u64>>,
    /// Reads of single objects.
    pub(super) reads: Reads,
}

impl Audit {
    /// Returns the audit log of a cluster.
    pub(crate) fn of(env: &lab::Env) -> Self {
        Self { path: env.audit_log.clone() }
    }

    /// Returns the current length of the log in bytes.
    pub(crate) fn position(&self) -> Result<u64> {
        let metadata = std::fs::metadata(&self.path);
        Ok(metadata.with_context(|| format!("no audit log at {}", self.path.display()))?.len())
    }

    /// Returns the operators' requests between two positions, without those about other namespaces,
    /// so that the result does not depend on other objects in the cluster.
    pub(crate) fn requests(&self, namespace: &str, from: u64, to: u64) -> Result<Requests> {
        if to < from || std::fs::metadata(&self.path)?.len() < to {
            bail!("{} was rotated meanwhile: measure again", self.path.display());
        }
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut requests = Requests::default();
        let mut read = from;
        for line in BufReader::new(file).lines() {
            let line = line?;
            read += line.len() as u64 + 1;
            if read > to {
                break;
            }
            let event: Option<Value> = serde_json::from_str(&line).ok();
            if let Some(event) = event.filter(|it| concerns(it, namespace)) {
                requests.count(&event);
            }
        }
        Ok(requests)
    }
}

/// Whether a request is about this namespace, about none, or about the operators' own.
fn concerns(event: &Value, namespace: &str) -> bool {
    let about = event["objectRef"]["namespace"].as_str();
    about.is_none_or(|it| it.is_empty() || [namespace, OPERATORS].contains(&it))
}

impl Requests {
    fn count(&mut self, event: &Value) {
        // Watches are logged at their start and at their end.
        let stage = if event["verb"] == "watch" { "ResponseStarted" } else { "ResponseComplete" };
        let user = event["user"]["username"].as_str().unwrap_or_default();
        let prefix = format!("system:serviceaccount:{OPERATORS}:");
        let operator = user.strip_prefix(&prefix);
        self.reads.count(operator, event);
        let Some(operator) = operator.filter(|_| event["stage"] == stage) else {
            return;
        };
        let reference = &event["objectRef"];
        let text = |name: &str| reference[name].as_str().unwrap_or_default();
        let mut resource = text("resource").to_owned();
        if !text("subresource").is_empty() {
            resource = format!("{resource}/{}", text("subresource"));
        }
        let verb = event["verb"].as_str().unwrap_or_default();
        let of_operator = self.counts.entry(operator.to_owned()).or_default();
        *of_operator.entry(format!("{verb} {resource}")).or_default() += 1;
    }

    /// Returns the counts as JSON.
    pub(crate) fn as_json(&self) -> Value {
        json!(self.counts)
    }

    /// Returns all requests except Lease renewals and watches; none of them may happen at rest.
    pub(crate) fn unexpected_at_rest(&self) -> Vec<String> {
        self.find(|request| !request.starts_with("watch ") && request != "update leases")
            .map(|it| format!("at rest: {it}"))
            .collect()
    }

    /// Returns reads of single objects that no rule allows.
    pub(crate) fn unexplained_reads(&self) -> Vec<String> {
        self.reads.unexplained()
    }

    /// Counts writes except those of Leases and Events, which depend on time.
    pub(crate) fn n_writes(&self) -> u64 {
        const WRITES: [&str; 5] = ["create", "delete", "deletecollection", "patch", "update"];
        let is_write = |request: &str| {
            let (verb, resource) = request.split_once(' ').unwrap_or((request, ""));
            WRITES.contains(&verb) && !["events", "leases"].contains(&resource)
        };
        let all = self.counts.values().flatten();
        all.filter(|(request, _)| is_write(request)).map(|(_, n)| n).sum()
    }

    /// Returns lists, none of which may happen after the start.
    pub(crate) fn lists(&self) -> Vec<String> {
        self.find(|request| request.starts_with("list ")).collect()
    }

    fn find(&self, wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = String> {
        self.counts.iter().flat_map(move |(operator, requests)| {
            let found = requests.iter().filter(|(request, _)| wanted(request));
            found.map(|(request, n)| format!("{operator}: {n} × {request}")).collect::<Vec<_>>()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(user: &str, verb: &str, stage: &str) -> Value {
        json!({
            "stage": stage,
            "verb": verb,
            "user": { "username": user },
            "objectRef": { "resource": "secrets" },
        })
    }

    #[test]
    fn requests_about_other_namespaces_do_not_count() {
        let about = |it: &Value| concerns(&json!({ "objectRef": { "namespace": it } }), "bench");
        assert!(about(&json!("bench")) && about(&json!(OPERATORS)) && about(&Value::Null));
        assert!(!about(&json!("openstack")));
    }

    #[test]
    fn only_the_operators_own_answered_requests_count() {
        let mut requests = Requests::default();
        let nova = "system:serviceaccount:edpm-system:nova-operator";
        requests.count(&event(nova, "get", "ResponseComplete"));
        requests.count(&event(nova, "watch", "ResponseStarted"));
        requests.count(&event(nova, "watch", "ResponseComplete"));
        requests.count(&event("admin", "get", "ResponseComplete"));
        assert_eq!(
            requests.as_json(),
            json!({ "nova-operator": { "get secrets": 1, "watch secrets": 1 } })
        );
        assert_eq!(requests.unexpected_at_rest(), ["at rest: nova-operator: 1 × get secrets"]);
        assert_eq!((requests.lists(), requests.n_writes()), (Vec::new(), 0));
        requests.count(&event(nova, "patch", "ResponseComplete"));
        assert_eq!(requests.n_writes(), 1);
        assert_eq!(requests.unexplained_reads().len(), 1);
        requests.count(&event(nova, "list", "ResponseComplete"));
        assert_eq!(requests.lists(), ["nova-operator: 1 × list secrets"]);
    }
}
