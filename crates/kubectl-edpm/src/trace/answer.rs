//! The answer of a query run: files of host and container, and the values of the process.

use api::conditions::printable;
use serde::Deserialize;
use serde_json::Value;

use crate::config_files::MASK;

/// The report of the play `nova-option.yaml`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Answer {
    /// The directory on the host that nova-compute's files are copied from; empty without a
    /// container.
    pub folder: String,
    /// nova's files in it, each as the prefix of its SHA-256 and its name.
    pub host: Vec<String>,
    /// The configuration according to the container's files.
    pub asked: LiveQuestion,
    /// The value that the process reports.
    pub said: LiveAnswer,
    /// Why something is missing; empty or `None` when nothing is.
    #[serde(default)]
    pub problem: Option<String>,
    /// podman's container state; empty without a container.
    #[serde(default)]
    pub state: Option<String>,
}

/// The configuration according to the container's files, read as nova-compute reads them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct LiveQuestion {
    /// The Unix time at which the process started with its files in place.
    pub started: Option<i64>,
    /// The files, each as the prefix of its SHA-256 and its path.
    pub files: Vec<String>,
    /// Files and directories that have changed since the process started.
    pub newer: Vec<String>,
    /// The location of the value, according to oslo.config.
    pub origin: Option<Origin>,
    /// The value according to these files.
    pub by_files: Option<LiveAnswer>,
}

/// The location of a value in oslo.config's terms.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Origin {
    /// `user` for a file, `environment`, `command_line`, or one of nova's own defaults.
    pub kind: String,
    /// The file or the environment variable.
    pub detail: String,
}

/// A value, or its salted digest if it is secret; all fields are empty when nothing is known.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct LiveAnswer {
    /// The value in the format of oslo.reports, which sorts lists.
    pub value: Option<String>,
    /// Whether it must not be shown.
    pub hidden: bool,
    /// The salted digest of a hidden value, if known.
    pub digest: Option<String>,
}

impl Answer {
    /// Parses a run's report and removes terminal control sequences, because the text comes from a
    /// host. Returns `None` when it is not such a report.
    pub fn of(report: &str) -> Option<Self> {
        let mut report: Value = serde_json::from_str(report).ok()?;
        clean(&mut report);
        serde_json::from_value(report).ok()
    }

    /// Returns the digest of a file on the host.
    pub fn on_host(&self, name: &str) -> Option<&str> {
        self.host.iter().find_map(|it| it.split_once(' ').filter(|it| it.1 == name)).map(|it| it.0)
    }

    /// Returns digest and path of a file of this name in the container.
    pub fn in_container(&self, name: &str) -> Option<(&str, &str)> {
        let is_it = |it: &(&str, &str)| it.1.rsplit('/').next() == Some(name);
        self.asked.files.iter().find_map(|it| it.split_once(' ').filter(is_it))
    }

    /// Returns why the nova-compute container does not run, or `None` when it runs or its state is
    /// unknown.
    pub fn not_running(&self) -> Option<String> {
        let state = match self.state.as_deref()? {
            "running" => return None,
            "" => return Some("there is no such container on the host".to_owned()),
            // The host's text is repeated only if it is a known podman state.
            known @ ("configured" | "created" | "exited" | "paused" | "stopped" | "stopping") => {
                format!(" ({known})")
            }
            _ => String::new(),
        };
        Some(format!("the container does not run{state}"))
    }

    /// Returns why something is missing, if anything is.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref().map(str::trim).filter(|it| !it.is_empty())
    }
}

fn clean(value: &mut Value) {
    match value {
        Value::String(text) => *text = printable(text),
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(fields) => fields.values_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl LiveAnswer {
    /// Whether the value is known, if only as hidden.
    pub fn is_known(&self) -> bool {
        self.value.is_some() || self.hidden
    }

    /// Returns the value for display, masked if secret.
    pub fn shown(&self) -> String {
        match (&self.value, &self.digest) {
            (_, Some(digest)) => format!("{MASK} (salted digest {digest})"),
            (Some(value), None) if value.is_empty() => "(empty)".to_owned(),
            (Some(value), None) => value.clone(),
            (None, None) => MASK.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_answers_holds_nothing_that_a_terminal_obeys() {
        let report = r#"{"folder":"/\u001b[2Jx","host":["d\u0007 f"],"asked":{},"said":{"value":"a\u202eb"}}"#;
        let answer = Answer::of(report).unwrap();
        assert_eq!((answer.folder.as_str(), answer.on_host("f")), ("/[2Jx", Some("d")));
        assert_eq!(answer.said.shown(), "ab");
    }
}
