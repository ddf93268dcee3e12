//! Strict parsing of the callback's message.
//!
//! Fields of later releases are ignored: `v` says whether the others still have this meaning.

use api::ansibleee::{HostFailure, HostOutcome, HostResult, RunHost};
use api::conditions::printable;
use serde::Deserialize;

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

/// What a run reported about its hosts: the callback's message.
#[derive(Debug, Deserialize)]
pub struct Summary {
    v: u32,
    /// One letter per host, which stands for its result.
    #[serde(rename = "hosts")]
    letters: String,
    changed: Vec<i64>,
    /// One result per host of the spec, in the spec's order.
    #[serde(skip)]
    pub hosts: Vec<HostResult>,
    /// The failed tasks, including those on other hosts.
    pub failures: Vec<HostFailure>,
    /// How many failures did not fit.
    #[serde(default)]
    pub more: usize,
    /// Whether a limit matched no host, so that Ansible ended before any play.
    #[serde(default)]
    pub unmatched: bool,
    /// Whether the run was still active when this was written; hosts without a problem are then
    /// unknown.
    #[serde(default)]
    pub unfinished: bool,
    /// The playbook's own report.
    pub report: Option<String>,
    /// Where hosts' own ssh keys were not checked.
    pub unchecked: Option<Unchecked>,
}

/// Parses the callback's message about these hosts; `None` when it is malformed.
pub fn parse(text: &str, hosts: &[RunHost]) -> Option<Summary> {
    let mut summary: Summary = serde_json::from_str(text).ok()?;
    let letters: Vec<char> = summary.letters.chars().collect();
    let counts = summary.changed.len();
    if summary.v != 1 || letters.len() != hosts.len() || ![0, hosts.len()].contains(&counts) {
        return None;
    }
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
        let result = if summary.unfinished && !is_final { HostOutcome::Unknown } else { result };
        let changed = summary.changed.get(idx).copied();
        summary.hosts.push(HostResult { name: host.name.clone(), result, changed });
    }
    summary.clean();
    Some(summary)
}

impl Summary {
    /// Removes terminal control sequences.
    ///
    /// The texts come from hosts, and somebody on one of them may have written the message itself.
    fn clean(&mut self) {
        let failures = self.failures.iter_mut().flat_map(|it| {
            [&mut it.host, &mut it.play, &mut it.task, &mut it.path, &mut it.message]
        });
        let unchecked = self.unchecked.iter_mut();
        let unchecked = unchecked.flat_map(|it| it.hosts.iter_mut().chain(&mut it.by));
        for text in failures.chain(unchecked).chain(&mut self.report) {
            *text = printable(text);
        }
    }
}
