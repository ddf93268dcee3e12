//! Strict parsing of the callback's message.
//!
//! Fields of later releases are ignored: `v` says whether the others still have this meaning.

use api::ansibleee::{HostFailure, HostOutcome, HostResult, RunHost};
use api::conditions::printable;
use serde::Deserialize;

/// The callback's message, as the pod left it.
#[derive(Debug, Deserialize)]
struct Message {
    v: u32,
    hosts: String,
    changed: Vec<i64>,
    failures: Vec<HostFailure>,
    #[serde(default)]
    more: usize,
    #[serde(default)]
    unmatched: bool,
    #[serde(default)]
    unfinished: bool,
    report: Option<String>,
    unchecked: Option<Unchecked>,
}

/// Hosts with tasks in which the host's own ssh key was not checked.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Unchecked {
    /// Some of them, by inventory name.
    pub hosts: Vec<String>,
    /// How many more there are.
    #[serde(default)]
    pub more: usize,
    /// What disabled the check, as the plugin names it.
    pub by: Vec<String>,
}

/// What a run reported about its hosts.
#[derive(Debug, Default)]
pub struct Summary {
    /// One result per host of the spec, in the spec's order.
    pub hosts: Vec<HostResult>,
    /// The failed tasks, including those on other hosts.
    pub failures: Vec<HostFailure>,
    /// How many failures did not fit.
    pub more: usize,
    /// Whether a limit matched no host, so that Ansible ended before any play.
    pub unmatched: bool,
    /// Whether the run was still active when this was written; hosts without a problem are then
    /// unknown.
    pub unfinished: bool,
    /// The playbook's own report.
    pub report: Option<String>,
    /// Where hosts' own ssh keys were not checked.
    pub unchecked: Option<Unchecked>,
}

/// Parses the callback's message about these hosts; `None` when it is malformed.
pub fn parse(text: &str, hosts: &[RunHost]) -> Option<Summary> {
    let message: Message = serde_json::from_str(text).ok()?;
    let letters: Vec<char> = message.hosts.chars().collect();
    let counts = message.changed.len();
    if message.v != 1 || letters.len() != hosts.len() || ![0, hosts.len()].contains(&counts) {
        return None;
    }
    let mut results = Vec::new();
    for (idx, (host, letter)) in hosts.iter().zip(letters).enumerate() {
        let result = match letter {
            'o' => HostOutcome::Ok,
            'f' => HostOutcome::Failed,
            'u' => HostOutcome::Unreachable,
            'k' => HostOutcome::KeyRefused,
            'h' => HostOutcome::HostKeyMismatch,
            'n' => HostOutcome::NotReached,
            '?' => HostOutcome::Unknown,
            _ => return None,
        };
        let is_final = !matches!(result, HostOutcome::Ok | HostOutcome::NotReached);
        let result = if message.unfinished && !is_final { HostOutcome::Unknown } else { result };
        let changed = message.changed.get(idx).copied();
        results.push(HostResult { name: host.name.clone(), result, changed });
    }
    let Message { failures, more, unmatched, unfinished, report, unchecked, .. } = message;
    let failures = failures.into_iter().map(cleaned).collect();
    let report = report.as_deref().map(printable);
    let unchecked = unchecked.map(|it| Unchecked {
        hosts: it.hosts.iter().map(|it| printable(it)).collect(),
        more: it.more,
        by: it.by.iter().map(|it| printable(it)).collect(),
    });
    Some(Summary { hosts: results, failures, more, unmatched, unfinished, report, unchecked })
}

/// Removes terminal control sequences from a failure.
///
/// Its texts come from hosts, and somebody on one of them may have written the message itself.
fn cleaned(it: HostFailure) -> HostFailure {
    let [host, play, task, path] = [it.host, it.play, it.task, it.path].map(|it| printable(&it));
    HostFailure { host, play, task, path, message: printable(&it.message) }
}
