//! What an audit found on a host, read strictly: somebody on a host may have written it.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::ansibleee::{AnsibleEe, HostOutcome, HostResult};
use api::conditions::{one_line, printable};
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::reasons::INVALID_PLAYBOOK;
use serde::Deserialize;

use crate::shared_caches::audit_runs::{is_after_deployment, is_open};

/// Maximum length of one difference, in bytes.
const LIMIT: usize = 600;

/// The kinds of differences, each with its causes, as the role `edpm_audit` reports them.
const DIFFERENCES: [(&str, &[&str]); 6] = [
    ("container", &["missing", "not running", "image"]),
    ("directory", &["other files"]),
    ("file", &["missing", "content", "owner", "mode"]),
    ("rule", &["not loaded"]),
    ("rules", &["not loaded"]),
    ("unit", &["inactive", "disabled"]),
];

/// What an audit found on one host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// Nothing differs.
    InSync,
    /// Something differs.
    Differs(Differences),
    /// The run has no result of the host.
    NoResult(HostOutcome),
    /// Ansible could not read the playbooks: a runner image of an earlier release has none for audits.
    PlaybookUnreadable,
    /// The report cannot be read.
    Unreadable,
}

/// What differs on a host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Differences {
    /// How many differences there are.
    pub total: usize,
    /// The first ones, as `file /a/b: content`.
    pub named: Vec<String>,
}

/// The result of the last audit of a host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LastAudit {
    /// UID of the run.
    pub uid: String,
    /// Name of the run.
    pub name: String,
    /// When the run was created: what was deployed later is no part of it.
    pub created: Timestamp,
    /// Whether it followed a deployment that mended what the one before had found.
    pub is_after_deployment: bool,
    /// What it found.
    pub verdict: Verdict,
}

/// The report of a run, as the playbook gives it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    audit: BTreeMap<String, (usize, Vec<String>)>,
}

/// Returns the newest audit of a host among those that have ended; `None` without one.
pub fn last(audits: &[Arc<AnsibleEe>], host: &str) -> Option<LastAudit> {
    let is_of_host = |it: &AnsibleEe| it.spec.hosts.iter().any(|it| it.name == host);
    let ended = audits.iter().filter(|it| !is_open(it) && is_of_host(it));
    let created = |it: &AnsibleEe| it.creation_timestamp().map(|it| it.0).unwrap_or_default();
    let newest = ended.max_by_key(|it| (created(it), it.name_any()))?;
    Some(LastAudit {
        uid: newest.uid().unwrap_or_default(),
        name: newest.name_any(),
        created: created(newest),
        is_after_deployment: is_after_deployment(newest),
        verdict: verdict(newest, host),
    })
}

/// Returns what an audit that has ended found on a host.
pub fn verdict(run: &AnsibleEe, host: &str) -> Verdict {
    let Some(status) = &run.status else { return Verdict::NoResult(HostOutcome::Unknown) };
    if status.reason.as_deref() == Some(INVALID_PLAYBOOK.word) {
        return Verdict::PlaybookUnreadable;
    }
    let is_its = |it: &&HostResult| it.name == host;
    let outcome = status.hosts.iter().find(is_its).map_or(HostOutcome::Unknown, |it| it.result);
    if outcome != HostOutcome::Ok {
        return Verdict::NoResult(outcome);
    }
    read(status.report.as_deref().unwrap_or_default(), host)
}

/// Returns what a report says of a host that the audit came to its end on.
pub fn read(report: &str, host: &str) -> Verdict {
    let Ok(mut report) = serde_json::from_str::<Report>(report) else { return Verdict::Unreadable };
    let Some((total, named)) = report.audit.remove(host) else { return Verdict::InSync };
    let is_sound = total > 0 && named.len() <= total;
    match named.iter().map(|it| difference(it)).collect::<Option<_>>() {
        Some(named) if is_sound => Verdict::Differs(Differences { total, named }),
        Some(_) | None => Verdict::Unreadable,
    }
}

/// Returns a difference on one line; `None` for what a playbook does not report. Users name the rules
/// of the firewall, with any spaces between the words.
fn difference(text: &str) -> Option<String> {
    let words = text.split([' ', '\t']).filter(|it| !it.is_empty());
    let line = words.collect::<Vec<_>>().join(" ");
    let (what, cause) = line.rsplit_once(": ")?;
    let (kind, name) = what.split_once(' ')?;
    let is_known = |(known, causes): &(&str, &[&str])| *known == kind && causes.contains(&cause);
    let is_plain = text.trim() == text
        && !name.trim().is_empty()
        && one_line(&printable(&line), LIMIT) == line;
    (is_plain && DIFFERENCES.iter().any(is_known)).then_some(line)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(report: &Value) -> Verdict {
        read(&report.to_string(), "n0")
    }

    fn differs(total: usize, named: &[&str]) -> Verdict {
        let named = named.iter().map(|it| (*it).to_owned()).collect();
        Verdict::Differs(Differences { total, named })
    }

    #[test]
    fn a_host_that_the_report_leaves_out_is_in_sync() {
        assert_eq!(of(&json!({ "audit": {} })), Verdict::InSync);
        assert_eq!(of(&json!({ "audit": { "n1": [1, ["unit a: inactive"]] } })), Verdict::InSync);
    }

    #[test]
    fn differences_are_read_with_their_number() {
        let named = ["file /a/01-nova.conf: content", "container nova_compute: not running"];
        assert_eq!(of(&json!({ "audit": { "n0": [3, named] } })), differs(3, &named));
        let rule = "rule 005 Allow: all networks.: not loaded";
        assert_eq!(of(&json!({ "audit": { "n0": [1, [rule]] } })), differs(1, &[rule]));
        let spaced = "rule 005  Allow:\tall networks.: not loaded";
        assert_eq!(of(&json!({ "audit": { "n0": [1, [spaced]] } })), differs(1, &[rule]));
        assert_eq!(of(&json!({ "audit": { "n0": [1, []] } })), differs(1, &[]));
    }

    #[test]
    fn a_run_whose_playbooks_cannot_be_read_says_nothing_of_its_hosts() {
        let verdict_of = |reason: &str| {
            let run = json!({
                "apiVersion": "ansibleee.openstack.org/v1beta1",
                "kind": "OpenStackAnsibleEE",
                "metadata": { "name": "a" },
                "spec": {},
                "status": {
                    "JobStatus": "Failed", "reason": reason,
                    "hosts": [{ "name": "n0", "result": "NotReached" }],
                },
            });
            verdict(&serde_json::from_value(run).unwrap(), "n0")
        };
        assert_eq!(verdict_of("InvalidPlaybook"), Verdict::PlaybookUnreadable);
        assert_eq!(verdict_of("DeadlineExceeded"), Verdict::NoResult(HostOutcome::NotReached));
    }

    #[test]
    fn anything_else_is_no_report() {
        for text in [
            "file /a: gone",
            "disk /a: content",
            "file : content",
            "file /a content",
            "file /a\u{1b}[2J: content",
            "file /a\n/b: content",
            "file /a: content ",
        ] {
            assert_eq!(
                of(&json!({ "audit": { "n0": [1, [text]] } })),
                Verdict::Unreadable,
                "{text}"
            );
        }
        let long = format!("file /{}: content", "a".repeat(LIMIT));
        for report in [
            json!({ "audit": { "n0": [1, [long]] } }),
            json!({ "audit": { "n0": [0, []] } }),
            json!({ "audit": { "n0": [1, ["unit a: inactive", "unit b: inactive"]] } }),
            json!({ "audit": { "n0": "x" } }),
            json!({ "audit": {}, "more": 1 }),
            json!({}),
        ] {
            assert_eq!(of(&report), Verdict::Unreadable, "{report}");
        }
        assert_eq!(read("", "n0"), Verdict::Unreadable);
    }
}
