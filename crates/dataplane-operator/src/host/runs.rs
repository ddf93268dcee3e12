//! The runs that are due: hosts that need a service with the same group share one.

use std::collections::{BTreeMap, BTreeSet};

use operator_core::plan::Step;
use operator_core::run_engine::batches::{Batch, batches};
use operator_core::run_engine::build;
use operator_core::run_engine::run_template::{HostConnection, RunTemplate};
use operator_core::run_engine::service_sequence::NeededRun;

/// A run that is to be created.
pub struct NewRun {
    /// The service that it deploys.
    pub service: String,
    /// The step that creates it.
    pub step: Step,
}

/// Returns the runs for hosts that need one, by host name, of at most `batch_size` hosts each; none
/// for a batch without a template.
pub fn new_runs(
    needs: BTreeMap<String, NeededRun>,
    connections: &BTreeMap<String, HostConnection>,
    batch_size: usize,
    mut template: impl FnMut(&Batch) -> Option<RunTemplate>,
) -> Vec<NewRun> {
    let scanned = connections.iter().filter(|(_, it)| it.scan.is_some());
    let scanned: BTreeSet<String> = scanned.map(|(name, _)| name.clone()).collect();
    let new_run = |batch: &Batch| {
        let step = build::run(&template(batch)?, batch, connections);
        Some(NewRun { service: batch.service.clone(), step })
    };
    batches(needs, batch_size, &scanned).iter().filter_map(new_run).collect()
}
