//! Problems that keep a pod from starting or ending, as far as Kubernetes reports them.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::run_engine::outcome::FailureReason;

use crate::objects::{ContainerStatus, Pod};

/// How long a pod may wait for its volumes and networks.
///
/// The run's parent has checked that its inputs exist, so this covers what was deleted since.
pub const PATIENCE: Duration = Duration::from_mins(3);
/// How long a pod may be unscheduled before that is reported.
pub const PLACEMENT: Duration = Duration::from_secs(30);
/// How long a deleted pod may remain before its worker counts as lost.
pub const LOST: Duration = Duration::from_mins(1);

/// How long another container may outlive the runner's before the run counts as ended.
pub const SIDECAR: Duration = Duration::from_secs(30);

/// A problem of a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PodProblem {
    /// It cannot start.
    Stuck {
        /// The failure reason.
        reason: FailureReason,
        /// The cause as text.
        message: String,
    },
    /// Kubernetes refuses it, so it does not exist; the cause.
    Refused(String),
    /// No worker accepts it; the message.
    Unplaced(String),
    /// Its worker does not respond, so it may or may not still work on the hosts.
    WorkerLost {
        /// The pod.
        pod: String,
        /// The worker.
        worker: String,
    },
}

/// Returns the pod's problem, if any, and when to evaluate it again if only time decides.
pub fn pod_problem(pod: &Pod, now: Timestamp) -> (Option<PodProblem>, Option<Duration>) {
    if let Some(deleted) = &pod.metadata.deletion_timestamp {
        return after(Some(deleted.0), LOST, now, || {
            let (pod, worker) = (pod.name_any(), pod.spec.node_name.clone());
            PodProblem::WorkerLost { pod, worker }
        });
    }
    if pod.has_started() {
        return (None, None);
    }
    if let Some(problem) = pod.containers().find_map(rejected) {
        return (Some(problem), None);
    }
    if let Some(aspect) = pod.lacks("PodScheduled") {
        let message = format!(
            "Pod {} cannot be scheduled: {}. Free up a worker, or correct spec.nodeSelector and \
             spec.tolerations of the run.",
            pod.name_any(),
            aspect.message.trim_end_matches('.')
        );
        return after(aspect.last_transition_time.as_ref().map(|it| it.0), PLACEMENT, now, || {
            PodProblem::Unplaced(message)
        });
    }
    if let Some(aspect) = pod.lacks("PodReadyToStartContainers") {
        return after(aspect.last_transition_time.as_ref().map(|it| it.0), PATIENCE, now, || {
            let message = format!(
                "Pod {} got no volumes or networks within {} s: a Secret, ConfigMap, key or \
                 NetworkAttachmentDefinition that it mounts is missing (kubectl get events)",
                pod.name_any(),
                PATIENCE.as_secs()
            );
            PodProblem::Stuck { reason: FailureReason::InputMissing, message }
        });
    }
    (None, None)
}

/// Returns how long a pod may still end by itself whose runner has ended while another container, such
/// as a mesh's proxy, goes on; zero when the run has ended without it.
pub fn grace(pod: &Pod, runner: &str, now: Timestamp) -> Option<Duration> {
    let (ended, _) = pod.outlived(runner)?;
    let since = ended.finished_at.as_ref()?.0;
    Some(left(since, SIDECAR, now).unwrap_or_default())
}

/// Returns why kubelet cannot create a container; `None` when it can.
fn rejected(container: &ContainerStatus) -> Option<PodProblem> {
    let waiting = container.state.waiting.as_ref()?;
    let word = waiting.reason.as_deref()?;
    let reason = match word {
        "ErrImagePull"
        | "ImagePullBackOff"
        | "InvalidImageName"
        | "ErrImageNeverPull"
        | "ImageInspectError"
        | "RegistryUnavailable"
        | "SignatureValidationFailed" => FailureReason::ImagePullFailed,
        "CreateContainerConfigError" | "CreateContainerError" => FailureReason::InputMissing,
        _ => return None,
    };
    let message = waiting.message.as_deref().unwrap_or_default();
    let message = format!("Container {}: {word}: {message}", container.name);
    Some(PodProblem::Stuck { reason, message })
}

fn after(
    since: Option<Timestamp>,
    patience: Duration,
    now: Timestamp,
    fault: impl FnOnce() -> PodProblem,
) -> (Option<PodProblem>, Option<Duration>) {
    match since.and_then(|it| left(it, patience, now)) {
        Some(pause) => (None, Some(pause)),
        None => (Some(fault()), None),
    }
}

/// Returns how much of a period from `since` is left; `None` when it is over.
pub fn left(since: Timestamp, patience: Duration, now: Timestamp) -> Option<Duration> {
    let elapsed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    patience.checked_sub(elapsed).filter(|it| !it.is_zero())
}
