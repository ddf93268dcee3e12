//! Builds the run that stops nova-compute on a host.

use std::collections::BTreeMap;

use api::nova::ExternalCompute;
use kube::ResourceExt;
use nova_config::services::NOVA_TYPE;
use operator_core::hash;
use operator_core::plan::{Step, Write};
use operator_core::run_engine::host_guests::with_look;
use operator_core::run_engine::last_run;
use operator_core::run_engine::run_template::{HostConnection, Play};
use operator_core::run_engine::service_sequence::NeededRun;
use serde_json::{Value, json};

use crate::compute::deploy::build::plain_run_template;
use crate::compute::host_layout::layout;
use crate::compute::removal::observed::Observed;
use crate::shared_caches::cleanup_runs::{CLEANUP_OF, COMPUTE_NAME};

/// Version of the play; a new version makes hosts that wait for their cleanup run it once more.
const VERSION: &str = "v1";
/// The operator's own play, which looks for guests first.
const PLAY: &str = include_str!("../../../plays/nova-cleanup.yaml");
/// The play's variable that has nova's files and its container removed.
const REMOVE_FILES: &str = "edpm_nova_remove_files";
/// The play's variable that has the agents of neutron stopped.
const HOST_LEAVES: &str = "edpm_nova_host_leaves";

/// What a cleanup run takes away from a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Extent {
    /// The units of nova-compute are stopped.
    Units,
    /// The host loses nova's files and its container too.
    Files,
    /// The host leaves, so that the agents of neutron are stopped as well.
    Host,
}

/// Returns what a cleanup run executes, with any collection.
pub fn play() -> Play {
    Play::Contents(with_look(PLAY))
}

/// Returns the hash of all attempts on the host of a compute. It shows whether they stop the agents of
/// neutron.
pub fn identity(compute: &ExternalCompute, extent: Extent) -> String {
    match extent {
        Extent::Units | Extent::Files => hash::digest(&(VERSION, compute.uid())),
        Extent::Host => hash::digest(&(VERSION, compute.uid(), "host")),
    }
}

/// Returns the step that creates the run of an attempt.
///
/// The run has no owner: a run that the compute owned would be deleted together with it.
pub fn cleanup(
    seen: &Observed,
    need: NeededRun,
    connection: HostConnection,
    extent: Extent,
) -> Option<Step> {
    let compute = &seen.compute;
    let layout = layout(compute, seen.node.as_deref(), vec![]);
    let mut template = plain_run_template(compute, layout, play(), NOVA_TYPE);
    template.extra_vars.extend(extent.variables());
    let host = &compute.spec.dataplane_node_name;
    let mut step = last_run::step(&template, host, need, connection)?;
    if let Write::Create { object, .. } = &mut step.write {
        let metadata = &mut object["metadata"];
        metadata["labels"][CLEANUP_OF] = json!(compute.uid());
        metadata["annotations"][COMPUTE_NAME] = json!(compute.name_any());
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("ownerReferences");
        }
    }
    Some(step)
}

impl Extent {
    /// Returns the variables of the play.
    pub fn variables(self) -> BTreeMap<String, Value> {
        let names: &[&str] = match self {
            Self::Units => &[],
            Self::Files => &[REMOVE_FILES],
            Self::Host => &[REMOVE_FILES, HOST_LEAVES],
        };
        names.iter().map(|it| ((*it).to_owned(), json!(true))).collect()
    }
}
