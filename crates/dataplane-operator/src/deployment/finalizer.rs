//! The finalizer on a running deployment, which keeps it from being deleted by accident.

use api::conditions::{ConditionDraft, first_names};
use api::dataplane::{Deployment, NodeSet};
use kube::ResourceExt;
use operator_core::finalizers::{has_finalizer, is_terminating, remove_finalizer};
use operator_core::plan::Step;
use operator_core::run_engine::Run;

use crate::annotations::CONFIRM;
use crate::deployment::observed::Observed;
use crate::deployment::status::DEPLOYMENT_READY;
use crate::reasons;

/// The finalizer on a deployment from its first run until its node sets have recorded its end.
pub const RUNNING: &str = "dataplane.openstack.org/deployment";

/// Returns whether a deployment has not ended, or its node sets have not recorded its end yet.
pub fn is_open(deployment: &Deployment) -> bool {
    !deployment.has_ended() || has_finalizer(deployment, RUNNING)
}

/// Returns the step that removes the finalizer of a deployment that has ended.
pub fn over(seen: &Observed) -> Option<Step> {
    remove_finalizer(&*seen.deployment, RUNNING, "it is over").filter(|_| is_known(seen))
}

/// Returns whether the node sets have recorded the end of a deployment, so that nothing needs it.
///
/// Node sets that are being deleted or were replaced do not count. One that cannot be parsed may
/// still need the deployment. A user's confirmation overrides all of this.
fn is_known(seen: &Observed) -> bool {
    let deployment = &*seen.deployment;
    let uid = deployment.uid().unwrap_or_default();
    let knows = |it: &NodeSet| {
        let settled = it.status.as_ref().map(|it| &it.settled_deployments);
        settled.is_some_and(|it| it.contains(&uid))
    };
    let asks = |it: &&NodeSet| !is_terminating(*it) && deployment.part_of(it).is_some();
    let is_known = || seen.node_sets.values().map(|it| &**it).filter(asks).all(knows);
    is_confirmed(deployment) || (seen.unreadable_sets.is_empty() && is_known())
}

/// Returns whether the user confirmed that the runs may be aborted.
pub fn is_confirmed(deployment: &Deployment) -> bool {
    deployment.annotations().get(CONFIRM).is_some_and(|it| it == "true")
}

/// Returns whether a run may have changed a host and has not ended.
fn is_at_work(run: &Run<'_>) -> bool {
    run.has_begun() && !run.is_finished()
}

/// Returns the condition of a deployment whose deletion waits for runs or a confirmation.
///
/// Returns `None` when nothing holds the deletion up.
pub fn condition(deployment: &Deployment, runs: &[Run<'_>]) -> Option<ConditionDraft> {
    let is_going = is_terminating(deployment) && has_finalizer(deployment, RUNNING);
    let at_work: Vec<String> = runs.iter().filter(|it| is_at_work(it)).map(Run::name).collect();
    if at_work.is_empty() || !is_going || is_confirmed(deployment) {
        return None;
    }
    let first = first_names(&at_work, 1);
    let text = format!(
        "OpenStackDataPlaneDeployment {name} is to be deleted while {first} runs on hosts. No \
         other service begins, and it goes when what runs has ended. To cut that short, which may \
         leave hosts half deployed: kubectl annotate -n {namespace} \
         openstackdataplanedeployment/{name} {CONFIRM}=true",
        name = deployment.name_any(),
        namespace = deployment.namespace().unwrap_or_default(),
    );
    Some(reasons::deployment::DELETION_NOT_CONFIRMED.condition(DEPLOYMENT_READY, text))
}

/// Returns the step that removes the finalizer of an unfinished deployment that is being deleted:
/// when no run is at work, or the user confirms.
pub fn going(deployment: &Deployment, runs: &[Run<'_>]) -> Option<Step> {
    let because = "nothing of it is at work, or its deletion was confirmed";
    let may_go = is_confirmed(deployment) || !runs.iter().any(is_at_work);
    remove_finalizer(deployment, RUNNING, because).filter(|_| may_go)
}
