//! Runs that were deleted after they had begun on new hosts, whose statuses do not say so.
//!
//! That the first run on a new host has begun is no write of its own: nothing but the run says it. Where a
//! run is deleted before its end, its effect is unknown, and it is not made again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, RunState, ServiceRun};
use kube::ResourceExt;
use operator_core::object_key::Key;
use operator_core::run_engine::Run;
use parking_lot::Mutex;

/// The runs of each group as its last pass saw them.
#[derive(Default)]
pub struct SeenRuns {
    of_groups: Mutex<BTreeMap<Key, Vec<Arc<AnsibleEe>>>>,
}

impl SeenRuns {
    /// Returns the nodes of a group with a record of each run that had begun on their hosts and was deleted
    /// since; `runs` are those that exist. It is returned until the statuses have what follows from it.
    pub fn with_deleted(
        &self,
        key: &Key,
        mut nodes: Vec<Arc<Node>>,
        runs: &[Arc<AnsibleEe>],
    ) -> Vec<Arc<Node>> {
        let mut groups = self.of_groups.lock();
        let mut seen = groups.remove(key).unwrap_or_default();
        let existing: BTreeSet<Option<&str>> =
            runs.iter().map(|it| it.metadata.uid.as_deref()).collect();
        seen.retain(|it| !existing.contains(&it.metadata.uid.as_deref()) && record(it, &mut nodes));
        seen.extend_from_slice(runs);
        if !seen.is_empty() {
            groups.insert(key.clone(), seen);
        }
        nodes
    }
}

/// Records on the nodes that a run has begun; returns whether any of them lacked that.
fn record(run: &AnsibleEe, nodes: &mut [Arc<Node>]) -> bool {
    let run = Run::of(run).filter(|it| it.has_begun() && !it.is_finished());
    let Some(run) = run else { return false };
    let mut is_lacking = false;
    for node in nodes {
        let name = node.name_any();
        let is_of_run = |it: &ServiceRun| it.state == RunState::Pending && run.carries(&name, it);
        let recorded = node.status.as_ref().map(|it| it.services.as_slice()).unwrap_or_default();
        let Some(place) = recorded.iter().position(is_of_run) else { continue };
        if let Some(status) = &mut Arc::make_mut(node).status {
            status.services[place].state = RunState::Running;
            status.services[place].run = Some(run.name());
            is_lacking = true;
        }
    }
    is_lacking
}
