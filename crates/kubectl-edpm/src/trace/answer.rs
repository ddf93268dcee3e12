//! What the run that only reads found out: files of host and container, and the process's own word.

use api::conditions::printable;
use serde::Deserialize;
use serde_json::Value;

use crate::options::MASK;

/// The report of the play `nova-option.yaml`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Answer {
    /// The folder of the host that nova-compute's files are copied from; empty without a container.
    pub folder: String,
    /// nova's files in it, each as the begin of its SHA-256 and its name.
    pub host: Vec<String>,
    /// What the container's files tell.
    pub asked: Asked,
    /// What the process says.
    pub said: Told,
    /// Why something is missing; empty where nothing is.
    #[serde(default)]
    pub problem: Option<String>,
    /// podman's word for how the container is; empty without a container.
    #[serde(default)]
    pub state: Option<String>,
}

/// What the container's files tell, read as nova-compute reads them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    /// Seconds since 1970 at which the process began with its files laid out.
    pub started: Option<i64>,
    /// The files, each as the begin of its SHA-256 and its path.
    pub files: Vec<String>,
    /// Files and folders that have changed since the process began.
    pub newer: Vec<String>,
    /// Where oslo.config says that the value comes from.
    pub origin: Option<Origin>,
    /// The value by these files.
    pub by_files: Option<Told>,
}

/// What oslo.config calls the location of a value.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Origin {
    /// `user` for a file, `environment`, or one of nova's own defaults.
    pub kind: String,
    /// The file or the variable.
    pub detail: String,
}

/// A value, or its salted digest where it is secret; nothing where nothing is known.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct Told {
    /// The value in the form of oslo.reports, which sorts lists.
    pub value: Option<String>,
    /// Whether it must not be shown.
    pub hidden: bool,
    /// The digest of a hidden one, where it is known.
    pub digest: Option<String>,
}

impl Answer {
    /// Reads a run's report, without what a terminal would obey: it comes from a host.
    pub fn of(report: &str) -> Option<Self> {
        let mut report: Value = serde_json::from_str(report).ok()?;
        clean(&mut report);
        serde_json::from_value(report).ok()
    }

    /// The digest of a file on the host.
    pub fn on_host(&self, name: &str) -> Option<&str> {
        self.host.iter().find_map(|it| it.split_once(' ').filter(|it| it.1 == name)).map(|it| it.0)
    }

    /// Digest and path of a file of that name in the container.
    pub fn in_container(&self, name: &str) -> Option<(&str, &str)> {
        let is_it = |it: &(&str, &str)| it.1.rsplit('/').next() == Some(name);
        self.asked.files.iter().find_map(|it| it.split_once(' ').filter(is_it))
    }

    /// Why nova-compute has no container that runs; nothing where it has one, or nobody knows.
    pub fn not_running(&self) -> Option<String> {
        let state = match self.state.as_deref()? {
            "running" => return None,
            "" => return Some("there is no such container on the host".to_owned()),
            // The host's word is repeated only where it is one of podman's.
            known @ ("configured" | "created" | "exited" | "paused" | "stopped" | "stopping") => {
                format!(" ({known})")
            }
            _ => String::new(),
        };
        Some(format!("the container does not run{state}"))
    }

    /// Why something is missing.
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

impl Told {
    /// Whether there is anything.
    pub fn is_known(&self) -> bool {
        self.value.is_some() || self.hidden
    }

    /// The value as it may be shown.
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
