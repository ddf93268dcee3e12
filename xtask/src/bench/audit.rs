//! The operators' requests to the API server, read from its audit log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::reads::Reads;
use super::status_age::StatusWrites;
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
    /// When statuses were written.
    pub(super) statuses: StatusWrites,
}

impl Audit {
    /// Returns the audit log of a cluster.
    pub(crate) fn of(env: &lab::Env) -> Self {
        Self::at(&env.audit_log)
    }

    /// Returns the audit log in this file.
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
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
    pub(super) fn count(&mut self, event: &Value) {
        // Watches are logged at their start and at their end.
        let stage = if event["verb"] == "watch" { "ResponseStarted" } else { "ResponseComplete" };
        let user = event["user"]["username"].as_str().unwrap_or_default();
        let prefix = format!("system:serviceaccount:{OPERATORS}:");
        let operator = user.strip_prefix(&prefix);
        self.reads.count(operator, event);
        self.statuses.count(operator, event);
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

    /// Returns the requests of an operator by verb and resource.
    pub(super) fn of(&self, operator: &str) -> BTreeMap<String, u64> {
        self.counts.get(operator).cloned().unwrap_or_default()
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

/// Returns how many of these requests depend on work and not on time: all but those about Leases.
pub(super) fn n_requests(counts: &BTreeMap<String, u64>) -> u64 {
    sum(counts, |_, resource| resource != "leases")
}

/// Returns how many of these requests write, except those about Leases and Events.
pub(super) fn n_writes(counts: &BTreeMap<String, u64>) -> u64 {
    const WRITES: [&str; 5] = ["create", "delete", "deletecollection", "patch", "update"];
    sum(counts, |verb, resource| {
        WRITES.contains(&verb) && !["events", "leases"].contains(&resource)
    })
}

fn sum(counts: &BTreeMap<String, u64>, is_wanted: impl Fn(&str, &str) -> bool) -> u64 {
    let of = |request: &str| request.split_once(' ').is_some_and(|it| is_wanted(it.0, it.1));
    counts.iter().filter(|(request, _)| of(request)).map(|(_, n)| n).sum()
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
        assert_eq!(requests.lists(), [""; 0]);
        assert_eq!(requests.unexplained_reads().len(), 1);
        requests.count(&event(nova, "list", "ResponseComplete"));
        assert_eq!(requests.lists(), ["nova-operator: 1 × list secrets"]);
    }

    #[test]
    fn leases_are_no_work_and_events_no_writes_that_count() {
        let counts =
            [("create jobs", 2), ("get secrets", 3), ("patch events", 5), ("update leases", 7)];
        let mut counts = BTreeMap::from(counts.map(|(it, n)| (it.to_owned(), n)));
        assert_eq!((n_requests(&counts), n_writes(&counts)), (10, 2));
        counts.insert("patch openstackansibleees/status".into(), 11);
        counts.insert("watch openstackansibleees".into(), 13);
        assert_eq!((n_requests(&counts), n_writes(&counts)), (34, 13));
    }

    #[test]
    fn only_what_is_between_two_positions_of_the_log_is_read() {
        let path = std::env::temp_dir().join(format!("audit-{}", std::process::id()));
        let audit = Audit::at(&path);
        let line = |verb: &str| {
            event(
                &format!("system:serviceaccount:{OPERATORS}:nova-operator"),
                verb,
                "ResponseComplete",
            )
            .to_string()
                + "\n"
        };
        std::fs::write(&path, line("get") + "no event\n").unwrap();
        let from = audit.position().unwrap();
        std::fs::write(&path, line("get") + "no event\n" + &line("patch") + &line("patch"))
            .unwrap();
        let to = audit.position().unwrap();
        std::fs::write(
            &path,
            line("get") + "no event\n" + &line("patch") + &line("patch") + &line("delete"),
        )
        .unwrap();
        let of = |from, to| audit.requests("bench", from, to).unwrap().of("nova-operator");
        assert_eq!(of(from, to), BTreeMap::from([("patch secrets".to_owned(), 2)]));
        assert_eq!(n_requests(&of(0, audit.position().unwrap())), 4);
        std::fs::write(&path, "").unwrap();
        assert!(audit.requests("bench", from, to).unwrap_err().to_string().contains("rotated"));
        std::fs::remove_file(&path).unwrap();
    }
}
