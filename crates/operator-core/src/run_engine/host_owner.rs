//! The owner of a host, as its inventory states it and as the host records it.
//!
//! ansibleee-operator runs a play before every run of the engine that compares both; see
//! `plays/owner-check.yaml` there.

use api::ansibleee::HostFailure;
use api::dataplane::Node;
use kube::{Resource as _, ResourceExt};
use serde_json::{Value, json};

/// Annotation on a node, to take its host over from another owner.
///
/// Its value lists UIDs and `host:NAME`, separated by commas or spaces. A host whose recorded owner
/// has one of the UIDs is taken over, and so is a host without a record that is configured as NAME.
pub const TAKE_OVER: &str = "dataplane.openstack.org/take-over";
/// Directory of ansibleee-operator's own plays in the pod.
pub const PLAYS_DIR: &str = "/opt/edpm/plays";
/// File name of the play that compares the owners, in [`PLAYS_DIR`].
pub const CHECK: &str = "owner-check.yaml";
/// Name of the task of [`CHECK`] that refuses a host.
pub const REFUSAL: &str = "The host must be the owner's";
/// Prefix of all variables of [`CHECK`]; only the operators set them.
pub const VARIABLES: &str = "edpm_owner";

/// Variable with what the owner takes the host over from.
pub const ACCEPTED: &str = "edpm_owner_accepted";

/// Maximum number of words in an annotation, and the maximum length of each.
const MAX_ACCEPTED: usize = 500;
const MAX_UID: usize = 63;
const MAX_NAME: usize = 253;
/// Prefix of the name by which a host without a record is configured.
const HOST: &str = "host:";
/// Text before that name in the play's message.
const CONFIGURED: &str = "configured as host ";

/// The object whose runs may change a host.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostOwner {
    /// `namespace/Kind/name`.
    pub object: String,
    /// The object's UID.
    pub uid: String,
    /// From what it takes the host over: UIDs of owners, and `host:NAME`.
    pub accepted: Vec<String>,
}

impl HostOwner {
    /// Returns the node itself as the owner of its host, whatever its role or node set.
    pub fn of(node: &Node) -> Self {
        let namespace = node.namespace().unwrap_or_default();
        Self {
            object: format!("{namespace}/{}/{}", Node::kind(&()), node.name_any()),
            uid: node.uid().unwrap_or_default(),
            accepted: accepted(node.annotations().get(TAKE_OVER)),
        }
    }

    /// Returns the inventory variables; they are data and take precedence over a user's.
    pub fn vars(&self) -> Vec<(&'static str, Value)> {
        let mut vars =
            vec![("edpm_owner", json!(self.object)), ("edpm_owner_uid", json!(self.uid))];
        if !self.accepted.is_empty() {
            vars.push((ACCEPTED, json!(self.accepted)));
        }
        vars
    }
}

/// Returns the valid words in the value of [`TAKE_OVER`]; invalid ones are ignored.
pub fn accepted(annotation: Option<&String>) -> Vec<String> {
    let words = annotation.map(String::as_str).unwrap_or_default().split([',', ' ', '\n']);
    let is_word = |it: &&str| is_uid(it) || it.strip_prefix(HOST).is_some_and(is_name);
    words.filter(is_word).take(MAX_ACCEPTED).map(str::to_owned).collect()
}

/// Returns the command that takes the host of a node over, up to the word.
pub fn take_over_command(namespace: &str, node: &str) -> String {
    format!(
        "kubectl annotate --overwrite -n {namespace} openstackdataplanenode/{node} {TAKE_OVER}="
    )
}

/// Returns whether the play that compares the owners refused the host.
pub fn is_refusal(failure: &HostFailure) -> bool {
    let place = failure.path.strip_prefix(PLAYS_DIR).and_then(|it| it.strip_prefix('/'));
    let line = place.and_then(|it| it.strip_prefix(CHECK)?.strip_prefix(':'));
    failure.task == REFUSAL && line.is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()))
}

/// Returns whether a variable is one of those that state the owner of a host.
pub fn is_variable(name: &str) -> bool {
    name.starts_with(VARIABLES)
}

/// Returns the word of [`TAKE_OVER`] that answers the play's message.
///
/// It is the UID of the owner that the host records, or `host:NAME` if it records none. Returns
/// `None` when the message has neither.
pub fn answer(message: &str) -> Option<String> {
    if let Some((_, name)) = message.split_once(CONFIGURED) {
        return is_name(name).then(|| format!("{HOST}{name}"));
    }
    let (_, after) = message.split_once("(UID ")?;
    let (uid, _) = after.split_once(')')?;
    is_uid(uid).then(|| uid.to_owned())
}

fn is_name(text: &str) -> bool {
    let is_allowed = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || b".-".contains(&it);
    (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(is_allowed)
}

fn is_uid(text: &str) -> bool {
    let is_allowed = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
    (1..=MAX_UID).contains(&text.len()) && text.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_engine::host_owner;

    #[test]
    fn only_uids_and_names_of_hosts_are_accepted_from_an_annotation() {
        let accepted = |it: &str| accepted(Some(&it.to_owned()));
        assert_eq!(accepted("u-1, u-2 u-3"), ["u-1", "u-2", "u-3"]);
        assert_eq!(accepted("{{ lookup('env', 'HOME') }}, $(id), *"), [""; 0]);
        assert_eq!(accepted("host:n1.example.org,u-1"), ["host:n1.example.org", "u-1"]);
        assert_eq!(accepted("host:, host:A, host:$(id), host:a:b, host:{{x}}"), [""; 0]);
        assert_eq!(accepted(&"u,".repeat(1000)).len(), MAX_ACCEPTED);
        assert_eq!(host_owner::accepted(None), [""; 0]);
    }

    #[test]
    fn a_refusal_is_known_by_the_file_and_the_task_of_the_check_alone() {
        let failure = |path: &str, task: &str| HostFailure {
            path: path.to_owned(),
            task: task.to_owned(),
            message: "the host belongs to Node x (UID u-1)".into(),
            ..HostFailure::default()
        };
        assert!(is_refusal(&failure("/opt/edpm/plays/owner-check.yaml:70", REFUSAL)));
        for path in [
            "",
            "/runner/project/owner-check.yaml:70",
            "/opt/edpm/plays/main.yaml:1",
            "/opt/edpm/plays/owner-check.yaml:70/x",
            "/x/opt/edpm/plays/owner-check.yaml:70",
        ] {
            assert!(!is_refusal(&failure(path, REFUSAL)), "{path}");
        }
        for task in ["", "Record the owner", "x : The host must be the owner's"] {
            assert!(!is_refusal(&failure("/opt/edpm/plays/owner-check.yaml:70", task)), "{task}");
        }
    }

    #[test]
    fn the_answer_to_a_refusal_is_read_strictly() {
        assert_eq!(answer("the host belongs to Node x (UID u-1)").as_deref(), Some("u-1"));
        let configured = "x on this host is configured as host n1.example.org";
        assert_eq!(answer(configured).as_deref(), Some("host:n1.example.org"));
        for text in
            ["", "(UID )", "(UID a b)", "(UID $(id))", "(UID u-1", "configured as host $(id)"]
        {
            assert_eq!(answer(text), None, "{text}");
        }
    }
}
