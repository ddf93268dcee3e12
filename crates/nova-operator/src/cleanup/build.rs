//! Builds the run that stops nova-compute on a host.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt;
use nova_config::services::NOVA_TYPE;
use operator_core::plan::{Step, Write};
use operator_core::run_engine::batches::batches;
use operator_core::run_engine::build::run;
use operator_core::run_engine::run_template::{HostConnection, Play};
use operator_core::run_engine::service_sequence::NeededRun;
use serde_json::json;

use crate::cleanup::labels::{CLEANUP_OF, COMPUTE_NAME};
use crate::compute::build::plain_run_template;
use crate::compute::observed::Observed;

/// The service name of cleanup runs.
pub const NOVA_CLEANUP: &str = "nova-cleanup";
/// The operator's own play, so that it works with any collection.
const PLAY: &str = include_str!("../../plays/nova-cleanup.yaml");
/// The play's variable that has nova's files and its container removed.
const REMOVE_FILES: &str = "edpm_nova_remove_files";
/// Time limit of one attempt: a host that hangs must not block the deletion of its compute.
const DEADLINE_SECONDS: i64 = 600;

/// Returns the step that creates the run of an attempt.
///
/// The run has no owner: a run that the compute owned would be deleted together with it. With
/// `removes_files`, the host also loses nova's files and its container.
pub fn cleanup(
    seen: &Observed,
    need: NeededRun,
    connection: HostConnection,
    removes_files: bool,
) -> Option<Step> {
    let compute = &seen.compute;
    let host = compute.spec.dataplane_node_name.clone();
    let needs = BTreeMap::from([(host.clone(), need)]);
    let batch = batches(needs, 1, &BTreeSet::new()).into_iter().next()?;
    let mut template = plain_run_template(seen, Play::Contents(PLAY.to_owned()), NOVA_TYPE);
    if removes_files {
        template.extra_vars.insert(REMOVE_FILES.to_owned(), json!(true));
    }
    let mut step = run(&template, &batch, &BTreeMap::from([(host, connection)]));
    if let Write::Create { object, .. } = &mut step.write {
        object["spec"]["activeDeadlineSeconds"] = json!(DEADLINE_SECONDS);
        let metadata = &mut object["metadata"];
        metadata["labels"][CLEANUP_OF] = json!(compute.uid());
        metadata["annotations"][COMPUTE_NAME] = json!(compute.name_any());
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("ownerReferences");
        }
    }
    Some(step)
}
