//! Which files of nova's configuration a compute was last deployed with, and whether they are known.

use std::collections::BTreeMap;

use api::conditions::{Condition, ConditionStatus, find};
use api::dataplane::{RunState, ServiceRun};
use api::nova::{ConfigFile, ExternalCompute, ExternalComputeStatus};
use nova_config::conditions::UP_TO_DATE;
use nova_config::services::NOVA;

use crate::reasons;

/// Returns the digest of each file, by its name.
pub fn digests(files: &[ConfigFile]) -> BTreeMap<String, String> {
    files.iter().map(|it| (it.name.clone(), it.hash.clone())).collect()
}

/// Returns what is to be recorded of the files on the host: those of an attempt of nova-compute from the
/// pass on in which its success is recorded. `services` are the records to write.
pub fn deployed(
    observed: &ExternalComputeStatus,
    services: &[ServiceRun],
) -> BTreeMap<String, String> {
    let (before, now) = (nova(&observed.services), nova(services));
    let has_succeeded = before.zip(now).is_some_and(|(before, now)| {
        let is_new = before.state != RunState::Succeeded && now.state == RunState::Succeeded;
        is_new && before.hash == now.hash
    });
    if has_succeeded { digests(&observed.config_files) } else { observed.deployed_files.clone() }
}

/// Returns the record of nova-compute.
pub fn nova(services: &[ServiceRun]) -> Option<&ServiceRun> {
    services.iter().find(|it| it.name == NOVA)
}

/// Whether a compute was last deployed with its present inputs, whatever a release renders from them.
pub fn has_present_inputs(conditions: &[Condition]) -> bool {
    find(conditions, UP_TO_DATE).is_some_and(|it| {
        it.status == ConditionStatus::True || it.reason == reasons::compute::OPERATOR_CHANGED.word
    })
}

/// Whether a deployed compute has no record of the files on its host, or its Secret has others by now:
/// then nothing can be compared with what was deployed.
pub fn is_unrecorded(compute: &ExternalCompute) -> bool {
    compute.status.as_ref().is_some_and(|it| {
        has_present_inputs(&it.conditions) && it.deployed_files != digests(&it.config_files)
    })
}

/// Whether files that do not say for which inputs they are, as those of the release before, are on the
/// host, or a run is bringing them there.
pub fn are_of_last_attempt(compute: &ExternalCompute, files: &[ConfigFile]) -> bool {
    compute.status.as_ref().is_some_and(|it| {
        it.deployed_files == digests(files)
            || nova(&it.services).is_some_and(|run| run.state == RunState::Running)
    })
}
