//! Whether the cell's conductor answers, as its computes reported in their last registration check.

use std::sync::Arc;

use api::conditions::ConditionDraft;
use api::dataplane::{RunState, ServiceRun};
use api::nova::{Cell, ExternalCompute};
use kube::ResourceExt;
use nova_config::conditions::CONDUCTOR_ANSWERS;
use nova_config::services::NOVA_REGISTERED;
use operator_core::finalizers::is_terminating;

use crate::cell::credential_rotation::first_of;
use crate::reasons;

/// The text that the play reports when the conductor does not answer a compute.
const SILENT: &str = "nova-conductor does not answer over the message bus";

/// Returns the condition, or `None` when no compute reports a silent conductor.
pub fn condition(cell: &Cell, computes: &[Arc<ExternalCompute>]) -> Option<ConditionDraft> {
    let met: Vec<String> =
        computes.iter().filter(|it| met_silence(it)).map(|it| it.name_any()).collect();
    if met.is_empty() {
        return None;
    }
    let text = format!(
        "No nova-conductor of NovaCell {} answered over the message bus when these computes asked \
         last: {}. Start it, or read its log; the computes say how they ask again.",
        cell.name_any(),
        first_of(&met)
    );
    Some(reasons::cell::CONDUCTOR_SILENT.condition(CONDUCTOR_ANSWERS, text))
}

fn met_silence(compute: &ExternalCompute) -> bool {
    let says = |it: &ServiceRun| it.message.as_ref().is_some_and(|it| it.contains(SILENT));
    let has_met =
        |it: &ServiceRun| it.name == NOVA_REGISTERED && it.state == RunState::Failed && says(it);
    !is_terminating(compute) && compute.services().iter().any(has_met)
}

#[cfg(test)]
mod tests {
    use super::SILENT;

    #[test]
    fn the_words_are_those_of_the_play() {
        assert!(include_str!("../../plays/nova-registered.yaml").contains(SILENT));
    }
}
