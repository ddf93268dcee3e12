//! The network attachments that objects name: which exist, and the faults of those that do not.

use std::collections::BTreeSet;
use std::time::Duration;

use api::problem::Problem;

use crate::reasons;

/// The requeue interval while the cluster does not serve the kind.
pub const CRD_POLL_INTERVAL: Duration = Duration::from_secs(30);

/// The network attachments of a namespace, as far as they are known.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Networks {
    /// No object names one, so none were read.
    #[default]
    NotNamed,
    /// The cluster does not serve the kind.
    NotServed,
    /// The names of those that exist.
    Known(BTreeSet<String>),
}

/// Returns whether faults say that the cluster does not serve the kind; no informer reports when it
/// does.
pub fn are_unserved(problems: &[Problem]) -> bool {
    problems.iter().any(|it| *it.reason == reasons::inputs::NETWORK_ATTACHMENTS_NOT_SERVED)
}

/// Returns the faults of attachments that an object names and that do not exist in the namespace.
pub fn missing(networks: &Networks, names: &[String], kind: &str, object: &str) -> Vec<Problem> {
    let place = format!("spec.networkAttachments of {kind} {object}");
    let absent = |name: &String| {
        let text = format!(
            "NetworkAttachmentDefinition {name}, named in {place}, does not exist: create it, or \
             correct the list."
        );
        Problem::new(&reasons::inputs::NETWORK_ATTACHMENT_NOT_FOUND, text)
    };
    match networks {
        Networks::Known(known) => {
            names.iter().filter(|it| !known.contains(*it)).map(absent).collect()
        }
        Networks::NotServed if !names.is_empty() => vec![Problem::new(
            &reasons::inputs::NETWORK_ATTACHMENTS_NOT_SERVED,
            format!(
                "{place} is set, but this cluster has no kind NetworkAttachmentDefinition \
                 (k8s.cni.cncf.io/v1): install Multus, or empty the list."
            ),
        )],
        Networks::NotServed | Networks::NotNamed => Vec::new(),
    }
}
