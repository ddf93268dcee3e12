//! Termination messages of runs, as written by the callback and by the container that learns host
//! keys.

use api::ansibleee::HostFailure;
use serde_json::json;

use super::host::Behaviour;

/// The kubelet keeps this many bytes of a message.
const LIMIT: usize = 4096;

/// The result of one host in a run.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    /// The outcome letter of the callback.
    pub(crate) letter: char,
    /// The number of changed tasks.
    pub(crate) changed: i64,
    /// The failed task, if any.
    pub(crate) failure: Option<HostFailure>,
}

impl Told {
    /// Returns what the callback reports of a host with this behaviour.
    pub(crate) fn of(behaviour: &Behaviour, host: &str, address: &str) -> Self {
        let name = address.rsplit_once(':').map_or(address, |(name, _)| name);
        let unreachable = |letter, words: &str| {
            let message = format!(
                "Data could not be sent to remote host \"{name}\". Make sure this host can be reached \
                 over ssh: {words}"
            );
            let (play, task) = ("Leave a trace".to_owned(), "Nothing forbids it".to_owned());
            let path = "/runner/project/playbook.yaml:8".to_owned();
            let failure = HostFailure { host: host.to_owned(), play, task, path, message };
            Self { letter, changed: 0, failure: Some(failure) }
        };
        match behaviour {
            Behaviour::Done => Self { letter: 'o', changed: 1, failure: None },
            Behaviour::Unchanged => Self { letter: 'o', changed: 0, failure: None },
            Behaviour::NotReached => Self { letter: 'n', changed: 0, failure: None },
            Behaviour::Unknown => Self { letter: '?', changed: 0, failure: None },
            Behaviour::Unreachable => {
                unreachable('u', &format!("ssh: connect to host {name} port 22: No route to host"))
            }
            Behaviour::KeyRefused => {
                unreachable('k', &format!("cloud-admin@{name}: Permission denied (publickey)."))
            }
            Behaviour::HostKeyMismatch => unreachable('h', "Host key verification failed."),
            Behaviour::Failed(failure) => {
                let failure = HostFailure { host: host.to_owned(), ..failure.clone() };
                Self { letter: 'f', changed: 0, failure: Some(failure) }
            }
        }
    }
}

/// Returns the callback's message. When it is too long, failures are dropped first, then the
/// counts.
pub(crate) fn of_run(hosts: &[Told]) -> String {
    let letters: String = hosts.iter().map(|it| it.letter).collect();
    let changed: Vec<i64> = hosts.iter().map(|it| it.changed).collect();
    let failures: Vec<&HostFailure> = hosts.iter().filter_map(|it| it.failure.as_ref()).collect();
    let encode = |changed: &[i64], kept: usize| {
        let mut message =
            json!({ "v": 1, "hosts": letters, "changed": changed, "failures": failures[..kept] });
        if kept < failures.len() {
            message["more"] = json!(failures.len() - kept);
        }
        message.to_string()
    };
    let texts = (0..=failures.len()).rev().map(|kept| encode(&changed, kept));
    let fits = |it: &String| it.len() <= LIMIT;
    texts.into_iter().find(fits).unwrap_or_else(|| encode(&[], 0))
}

/// Returns the message of a run whose limit matches no host.
pub(crate) fn unmatched(n_hosts: usize) -> String {
    let hosts = "n".repeat(n_hosts);
    json!({ "v": 1, "hosts": hosts, "changed": [], "failures": [], "unmatched": true }).to_string()
}

/// Returns the message of the container that learns host keys; `None` stands for a host that does
/// not answer.
pub(crate) fn of_host_keys(keys: &[Option<String>]) -> String {
    let prefix = operator_core::run_engine::host_key::COMMON_PREFIX;
    let tail = |key: &Option<String>| match key {
        None => "?".to_owned(),
        // A key of another type has a different prefix.
        Some(key) => {
            let body = key.split_whitespace().nth(1).unwrap_or_default();
            body.strip_prefix(prefix).unwrap_or("-").to_owned()
        }
    };
    json!({ "v": 1, "keys": keys.iter().map(tail).collect::<Vec<_>>() }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_come_first_and_failures_are_left_out_until_the_rest_fits() {
        let failed = |idx: usize| {
            let failure = HostFailure { message: "x".repeat(300), ..HostFailure::default() };
            Told::of(&Behaviour::Failed(failure), &format!("n{idx}"), "x:22")
        };
        let hosts: Vec<Told> = (0..500).map(failed).collect();
        let text = of_run(&hosts);
        let message: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(text.len() <= LIMIT, "{}", text.len());
        assert_eq!(message["hosts"], "f".repeat(500));
        let n_told = message["failures"].as_array().map(Vec::len).unwrap();
        assert_eq!(message["more"], 500 - n_told);
    }

    #[test]
    fn a_key_is_told_without_what_all_keys_begin_with() {
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIWOnjFtgHBGBoLBE0E8K1SBXAJAwqFXKF1sTvZlPo8";
        let text = of_host_keys(&[Some(key.to_owned()), None, Some("ssh-rsa AAAA".to_owned())]);
        assert_eq!(text, r#"{"keys":["WOnjFtgHBGBoLBE0E8K1SBXAJAwqFXKF1sTvZlPo8","?","-"],"v":1}"#);
    }
}
