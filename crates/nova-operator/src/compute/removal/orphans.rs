//! Deletes cleanup runs whose compute is gone: they have no owner, so garbage collection skips
//! them.

use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;
use operator_core::object_key::Key;
use operator_core::plan::{Plan, Step, Target};
use operator_runtime::controller::{Controller, Decide};
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::shared_caches::cleanup_runs::{cleans_up_after, compute_of};

/// The controller of cleanup runs.
pub struct Orphans {
    /// All caches of the operator.
    pub caches: Arc<Caches>,
}

/// Returns the plan for a run whose compute is gone.
pub fn decide(run: &AnsibleEe) -> Plan {
    let mut plan = Plan::default();
    if !is_terminating(run) {
        plan.push(Step::delete(Target::of(run), "the compute that it cleaned up after is gone"));
    }
    plan
}

impl Controller for Orphans {
    type Observed = Arc<AnsibleEe>;

    const NAME: &'static str = "cleanup-run";

    const DECIDE: Decide<Arc<AnsibleEe>> = |seen, _, _| decide(seen);

    async fn observe(&self, key: &Key) -> Result<Option<Arc<AnsibleEe>>> {
        let Some(run) = self.caches.shared.runs.get(key) else { return Ok(None) };
        let Some(uid) = cleans_up_after(&run) else { return Ok(None) };
        let compute =
            compute_of(&run).map(|it| self.caches.shared.computes.try_get(&it)).transpose()?;
        let is_there = compute.flatten().is_some_and(|it| it.uid().as_ref() == Some(uid));
        Ok((!is_there).then_some(run))
    }
}
