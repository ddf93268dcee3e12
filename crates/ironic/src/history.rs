//! Why a deployment failed, from the history of its machine.
//!
//! Ironic switches a machine off after a failed step, which clears `last_error`, and overwrites the
//! message of a timeout within half a minute.

use config_drive::ApiVersion;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::instance::DeployRecord;
use crate::node::Node;
use crate::state::State;

/// The oldest version of the API that has a history.
pub const SINCE: ApiVersion = ApiVersion { major: 1, minor: 78 };
/// The severity of an entry about an error.
const ERROR: &str = "ERROR";
/// By how much the times of a machine and of its history may differ: both may be whole seconds.
const SLACK: SignedDuration = SignedDuration::from_secs(2);
/// How long after the end of a deployment its timeout is still reported.
const LATE: SignedDuration = SignedDuration::from_secs(60);

/// A list of a machine's history, as Ironic returns it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct History {
    /// Its entries.
    pub history: Vec<Entry>,
}

/// An entry of a machine's history; in a list, Ironic cuts its event.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Entry {
    /// Its UUID.
    pub uuid: String,
    /// When it was made, by Ironic's clock.
    pub created_at: String,
    /// `ERROR` or `INFO`.
    pub severity: String,
    /// What happened.
    pub event: String,
}

/// Returns the error of a machine, unless it is not the cause of what happened.
pub fn cause(words: Option<&str>) -> Option<&str> {
    words.map(str::trim).filter(|it| !it.is_empty() && !is_aftermath(it))
}

/// Whether a message is about what Ironic did after a timeout, which fails by design: the state has
/// changed by then.
fn is_aftermath(words: &str) -> bool {
    words.starts_with("Async execution of ") && words.contains("Can not transition from state")
}

/// Whether the deployment of a machine failed, and only its history may have the cause.
pub fn is_silent(node: &Node) -> bool {
    node.provision_state == State::DeployFailed && cause(node.last_error.as_deref()).is_none()
}

/// Returns the entry with the cause of a machine's failed deployment: the last error before its end,
/// or the first one soon afterwards.
pub fn of_failure<'a>(history: &'a History, node: &Node) -> Option<&'a Entry> {
    let end = time(node.provision_updated_at.as_deref()?)?;
    let begin = begin(node)?;
    let errors = history
        .history
        .iter()
        .filter(|it| it.severity == ERROR && is_id(&it.uuid) && cause(Some(&it.event)).is_some());
    let of_this: Vec<(Timestamp, &Entry)> = errors
        .filter_map(|it| Some((time(&it.created_at)?, it)))
        .filter(|(at, _)| *at > begin && *at <= end + LATE)
        .collect();
    let before = of_this.iter().filter(|(at, _)| *at <= end + SLACK).max_by_key(|(at, _)| *at);
    before.or_else(|| of_this.iter().min_by_key(|(at, _)| *at)).map(|(_, it)| *it)
}

/// Returns a time before the failed deployment and after the one before it; `None` when the record
/// is already that of the next attempt.
fn begin(node: &Node) -> Option<Timestamp> {
    let record = DeployRecord::of(node)?;
    // A machine that was enrolled and not moved before has no earlier deployment.
    let Some(recorded) = record.after.or(record.since) else { return Some(Timestamp::MIN) };
    let is_next = Some(&recorded) == node.provision_updated_at.as_ref();
    time(&recorded).filter(|_| !is_next)
}

/// Whether a text is a UUID and may be part of a path.
fn is_id(text: &str) -> bool {
    text.len() == 36 && text.bytes().all(|it| it == b'-' || it.is_ascii_hexdigit())
}

fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BEGIN: &str = "2026-11-22T10:00:00+00:00";
    const END: &str = "2026-11-22T10:10:00+00:00";
    const AFTERMATH: &str = "Async execution of cleanup_after_timeout failed with error: Can not \
                             transition from state 'deploy failed' on event 'fail' (no defined \
                             transition)";

    fn failed(last_error: Option<&str>) -> Node {
        let record = json!({ "edpm": { "drive": "d", "attempt": 1, "since": BEGIN } });
        Node {
            provision_state: State::DeployFailed,
            provision_updated_at: Some(END.into()),
            instance_info: record.as_object().unwrap().clone(),
            last_error: last_error.map(str::to_owned),
            ..Node::default()
        }
    }

    fn found<'a>(node: &Node, entries: &[(&str, &str, &'a str)]) -> Option<&'a str> {
        let uuid = |idx: usize| format!("00000000-0000-4000-8000-{idx:012}");
        let entry = |(idx, (time, severity, event)): (usize, &(&str, &str, &str))| Entry {
            uuid: uuid(idx),
            created_at: format!("2026-11-22T{time}+00:00"),
            severity: (*severity).into(),
            event: (*event).into(),
        };
        let history = History { history: entries.iter().enumerate().map(entry).collect() };
        let found = of_failure(&history, node)?;
        (0..).zip(entries).find(|(idx, _)| uuid(*idx) == found.uuid).map(|(_, it)| it.2)
    }

    #[test]
    fn a_machine_that_says_nothing_or_how_ironic_cleaned_up_is_silent() {
        for words in [None, Some(""), Some(" \n"), Some(AFTERMATH)] {
            assert!(is_silent(&failed(words)), "{words:?}");
        }
        let words = "Timeout reached while waiting for callback for node m";
        assert!(!is_silent(&failed(Some(words))));
        assert!(!is_silent(&Node { provision_state: State::CleanFailed, ..failed(None) }));
    }

    #[test]
    fn the_cause_is_the_last_error_of_this_deployment() {
        let entries = [
            ("09:50:00", "ERROR", "of another host"),
            ("10:03:00", "ERROR", "its first error"),
            ("10:09:57", "ERROR", "checksum"),
            ("10:09:58", "INFO", "powered off"),
            ("10:10:30", "ERROR", "power sync"),
        ];
        assert_eq!(found(&failed(None), &entries), Some("checksum"));
        assert_eq!(found(&failed(None), &entries[..1]), None);
        assert_eq!(found(&failed(None), &[("10:30:00", "ERROR", "much later")]), None);
    }

    #[test]
    fn a_machine_that_was_reserved_as_it_was_enrolled_has_a_cause_too() {
        let mut node = failed(None);
        node.instance_info.insert("edpm".into(), json!({ "drive": "d", "attempt": 1 }));
        assert_eq!(found(&node, &[("10:09:57", "ERROR", "checksum")]), Some("checksum"));
    }

    #[test]
    fn a_timeout_that_is_reported_late_is_the_cause_and_not_what_overwrote_it() {
        let entries = [("10:10:05", "ERROR", "Timeout reached"), ("10:10:25", "ERROR", AFTERMATH)];
        assert_eq!(found(&failed(Some(AFTERMATH)), &entries), Some("Timeout reached"));
    }

    #[test]
    fn an_entry_whose_name_is_no_uuid_is_not_asked_for() {
        let entry = Entry {
            uuid: "../../../v1/conductors/0123456789abcde".into(),
            created_at: "2026-11-22T10:09:57+00:00".into(),
            severity: "ERROR".into(),
            event: "checksum".into(),
        };
        assert_eq!(of_failure(&History { history: vec![entry] }, &failed(None)), None);
    }

    #[test]
    fn the_record_of_the_next_attempt_is_no_beginning_of_the_failed_one() {
        let mut node = failed(None);
        let record = json!({ "drive": "d", "attempt": 2, "after": END, "since": END });
        node.instance_info.insert("edpm".into(), record);
        assert_eq!(found(&node, &[("10:09:57", "ERROR", "checksum")]), None);
    }
}
