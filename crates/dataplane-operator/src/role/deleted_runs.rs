//! Runs that were deleted after they had begun.
//!
//! That the first service of a sequence has begun is no write of its own: its run alone says it. Where
//! that run is deleted before the end is recorded, its effect on the hosts is unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, RunState, ServiceRun};
use kube::ResourceExt;
use operator_core::object_key::Key;
use operator_core::run_engine::Run;
use operator_core::run_engine::service_sequence::has_begun;
use parking_lot::Mutex;

use crate::role::resolved::recorded_services;

/// The runs of each group as its last pass saw them.
#[derive(Default)]
pub struct SeenRuns {
    of_groups: Mutex<BTreeMap<Key, Vec<Arc<AnsibleEe>>>>,
}

impl SeenRuns {
    /// Returns the nodes of a group, with a record of the first run of their sequence where it had begun and
    /// was deleted since; `runs` are those that exist.
    pub fn with_deleted(
        &self,
        key: &Key,
        mut nodes: Vec<Arc<Node>>,
        runs: &[Arc<AnsibleEe>],
    ) -> Vec<Arc<Node>> {
        let mut groups = self.of_groups.lock();
        let mut seen = groups.remove(key).unwrap_or_default();
        // A role at rest costs nothing here, however many runs it has.
        if !nodes.iter().any(|it| first_service(it).is_some()) {
            return nodes;
        }
        // One that carries no attempts any more is as good as deleted.
        let readable = runs.iter().filter(|it| Run::of(it).is_some());
        let existing: BTreeSet<Option<&str>> =
            readable.map(|it| it.metadata.uid.as_deref()).collect();
        // Those that are deleted stay until the statuses have a record that they have begun.
        seen.retain(|it| !existing.contains(&it.metadata.uid.as_deref()) && record(it, &mut nodes));
        seen.extend_from_slice(runs);
        groups.insert(key.clone(), seen);
        nodes
    }

    /// Drops the runs of a group that is gone.
    pub fn forget(&self, key: &Key) {
        self.of_groups.lock().remove(key);
    }
}

/// Records on nodes that the first run of their sequence has begun; returns whether any of them lacked that.
fn record(run: &AnsibleEe, nodes: &mut [Arc<Node>]) -> bool {
    let Some(run) = Run::of(run).filter(Run::has_begun) else { return false };
    let mut is_lacking = false;
    for node in nodes {
        let name = node.name_any();
        if !first_service(node).is_some_and(|it| run.carries(&name, it)) {
            continue;
        }
        let status = Arc::make_mut(node).status.as_mut();
        let mut services = status.into_iter().flat_map(|it| &mut it.services);
        if let Some(service) = services.find(|it| it.state == RunState::Pending) {
            service.state = RunState::Running;
            service.run = Some(run.name());
            is_lacking = true;
        }
    }
    is_lacking
}

/// Returns the record of the first service of a host's sequence; `None` where none is under way, or where
/// it is recorded that one has begun.
fn first_service(node: &Node) -> Option<&ServiceRun> {
    let services = recorded_services(node);
    services.iter().find(|it| it.state == RunState::Pending).filter(|_| !has_begun(services))
}
