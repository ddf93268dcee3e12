//! The texts about a deployment's hosts: names of conditions, and messages about failures.

use api::conditions::{first_names, shortened};
use api::dataplane::DeploymentFailure;
use operator_core::run_engine::SequenceState;

use crate::conditions::{NAMED, first_texts};
use crate::deployment::node_set_part::{EvaluatedHost, NodeSetPart};

/// The length limit of the facts about one host in a message.
const HOST_TEXT: usize = 400;

/// Returns the type of a service's condition: `Service`, its name in CamelCase, `DeploymentReady`.
pub fn service_condition(service: &str) -> String {
    let mut word = String::with_capacity(service.len());
    let mut is_start = true;
    for letter in service.chars() {
        if letter.is_ascii_alphanumeric() {
            word.push(if is_start { letter.to_ascii_uppercase() } else { letter });
            is_start = letter.is_ascii_digit();
        } else {
            is_start = true;
        }
    }
    format!("Service{word}DeploymentReady")
}

/// Returns the failures of the first hosts that fail; hosts that failed for good come first.
pub fn failures(parts: &[NodeSetPart]) -> Vec<DeploymentFailure> {
    let failing = |part: &NodeSetPart| {
        let hosts = part.hosts.iter().filter(|it| it.live.is_failing());
        hosts.map(|it| (!it.is_given_up, failure(part, it))).collect::<Vec<_>>()
    };
    let mut all: Vec<(bool, DeploymentFailure)> = parts.iter().flat_map(failing).collect();
    all.sort_by_key(|(is_tried_again, _)| *is_tried_again);
    all.into_iter().take(NAMED).map(|(_, it)| it).collect()
}

fn failure(part: &NodeSetPart, host: &EvaluatedHost) -> DeploymentFailure {
    let record = host.sequence.services.get(host.live.done);
    let message = record.and_then(|it| it.message.as_deref()).unwrap_or_default();
    DeploymentFailure {
        node_set: part.name.clone(),
        host: host.name.clone(),
        service: record.map(|it| it.name.clone()).unwrap_or_default(),
        reason: host.live.reason.clone().unwrap_or_default(),
        message: shortened(message, HOST_TEXT),
    }
}

/// Joins the failures into one text, with the number of those that are left out.
pub fn together<'a>(failures: impl Iterator<Item = &'a DeploymentFailure>, n_all: usize) -> String {
    let texts: Vec<String> = failures.map(|it| it.message.clone()).collect();
    let n_more = n_all.saturating_sub(texts.len());
    first_texts(texts, n_more)
}

/// Returns the text about hosts that take part no more although their node sets still list them.
pub fn lost(hosts: &[impl AsRef<str>]) -> String {
    if hosts.is_empty() {
        return String::new();
    }
    format!(
        "These were taken out or made anew since it began: {}. Create another \
         OpenStackDataPlaneDeployment for them.",
        first_names(hosts, NAMED)
    )
}

/// Returns what keeps the first run from going on whose Job or pod Kubernetes keeps from it.
pub fn blocked(parts: &[NodeSetPart]) -> Option<String> {
    let blocked = |it: &EvaluatedHost| {
        let SequenceState::InRun { run, trouble, .. } = &it.sequence.state else { return None };
        Some(format!("AnsibleEE {run}: {}", trouble.as_ref()?))
    };
    parts.iter().flat_map(|it| &it.hosts).find_map(blocked)
}

/// Returns what the first waiting run waits for; `None` when anything else of the deployment is at
/// work.
pub fn waiting(parts: &[NodeSetPart]) -> Option<String> {
    let hosts = || parts.iter().flat_map(|it| &it.hosts);
    let of_host = |it: &EvaluatedHost| match &it.sequence.state {
        SequenceState::InRun { run, waiting_for: Some(what), .. } => {
            Some(format!("{run} waits: {what}"))
        }
        SequenceState::Done
        | SequenceState::OutOfDate
        | SequenceState::NeedsRun(_)
        | SequenceState::InRun { .. }
        | SequenceState::Failed { .. } => None,
    };
    let is_at_work = |it: &EvaluatedHost| {
        matches!(
            it.sequence.state,
            SequenceState::NeedsRun(_) | SequenceState::InRun { waiting_for: None, .. }
        )
    };
    hosts().find_map(of_host).filter(|_| !hosts().any(is_at_work))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_of_a_service_has_its_name_as_one_word() {
        for (service, expected) in [
            ("agent", "ServiceAgentDeploymentReady"),
            ("configure-network", "ServiceConfigureNetworkDeploymentReady"),
            ("ceph-hci-pre", "ServiceCephHciPreDeploymentReady"),
            ("a.b_c", "ServiceABCDeploymentReady"),
            ("agent2cell", "ServiceAgent2CellDeploymentReady"),
        ] {
            assert_eq!(service_condition(service), expected);
        }
    }
}
