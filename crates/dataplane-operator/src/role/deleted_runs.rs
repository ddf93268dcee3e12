//! Runs of first deployments that were deleted after they had begun.
//!
//! That the first service of a new host has begun is no write of its own: its run alone says it. Where
//! that run is deleted before the end is recorded, its effect is unknown, as on a host in service.

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
    /// Returns the nodes of a group, those of new hosts with a record of their first service's run where it
    /// had begun and was deleted since; `runs` are those that exist.
    pub fn with_deleted(
        &self,
        key: &Key,
        mut nodes: Vec<Arc<Node>>,
        runs: &[Arc<AnsibleEe>],
    ) -> Vec<Arc<Node>> {
        let mut groups = self.of_groups.lock();
        let mut seen = groups.remove(key).unwrap_or_default();
        // One that carries no attempts any more is as good as deleted.
        let readable = runs.iter().filter(|it| Run::of(it).is_some());
        let existing: BTreeSet<Option<&str>> =
            readable.map(|it| it.metadata.uid.as_deref()).collect();
        // Those that are deleted stay until the statuses have a record that they have begun.
        seen.retain(|it| !existing.contains(&it.metadata.uid.as_deref()) && record(it, &mut nodes));
        seen.extend_from_slice(runs);
        if !seen.is_empty() {
            groups.insert(key.clone(), seen);
        }
        nodes
    }

    /// Drops the runs of a group that is gone.
    pub fn forget(&self, key: &Key) {
        self.of_groups.lock().remove(key);
    }
}

/// Records on nodes that the run of their first service has begun; returns whether any of them lacked that.
fn record(run: &AnsibleEe, nodes: &mut [Arc<Node>]) -> bool {
    let Some(run) = Run::of(run).filter(Run::has_begun) else { return false };
    let mut is_lacking = false;
    for node in nodes {
        let name = node.name_any();
        let is_first = |it: &ServiceRun| it.attempt == 1 && it.deployed_hash.is_none();
        let is_of_run = |it: &ServiceRun| it.state == RunState::Pending && run.carries(&name, it);
        let first = node.status.as_ref().and_then(|it| it.services.first());
        if !first.is_some_and(|it| is_first(it) && is_of_run(it)) {
            continue;
        }
        let status = Arc::make_mut(node).status.as_mut();
        if let Some(service) = status.and_then(|it| it.services.first_mut()) {
            service.state = RunState::Running;
            service.run = Some(run.name());
            is_lacking = true;
        }
    }
    is_lacking
}
