//! Pod statuses as a kubelet writes them.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use crate::clock;

/// How a container terminated.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) code: i32,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Ended {
    /// Creates a termination with that code and message.
    pub(super) fn new(code: i32, message: String) -> Self {
        Self { code, reason: if code == 0 { "Completed" } else { "Error" }, message }
    }
}

/// Returns the current time in Kubernetes' format.
pub(super) fn now() -> String {
    clock::now().strftime("%FT%TZ").to_string()
}

/// Returns the state of a waiting container.
pub(super) fn waiting(reason: &str, message: &str) -> Value {
    json!({ "waiting": { "reason": reason, "message": message } })
}

/// Returns the state of a running container.
pub(super) fn running() -> Value {
    json!({ "running": { "startedAt": now() } })
}

/// Returns the state of a terminated container.
pub(super) fn terminated(ended: &Ended) -> Value {
    let now = now();
    json!({ "terminated": {
        "exitCode": ended.code, "reason": ended.reason, "message": ended.message,
        "startedAt": now, "finishedAt": now,
    } })
}

/// Returns the state of a container that never ran in a terminated pod, as kubelet's status manager
/// writes it.
pub(super) fn never_ran() -> Value {
    json!({ "terminated": {
        "exitCode": 137, "reason": "ContainerStatusUnknown",
        "message": "The container could not be located when the pod was terminated",
        "startedAt": null, "finishedAt": null,
    } })
}

/// Returns whether a container of the pod is running.
pub(super) fn is_running(pod: &Pod) -> bool {
    let statuses = pod.status.iter().flat_map(|it| it.container_statuses.iter().flatten());
    let mut states = statuses.filter_map(|it| it.state.as_ref());
    states.any(|it| it.running.is_some())
}

/// Returns a pod's status; `first` is the state of the init containers, if there are any.
pub(super) fn status(pod: &Pod, phase: &str, state: &Value, first: Option<&Value>) -> Value {
    let container = |name: &str, image: Option<&String>, state: &Value| {
        let is_running = state.get("running").is_some();
        json!({
            "name": name, "image": image, "imageID": "", "ready": is_running, "restartCount": 0,
            "started": is_running, "state": state,
        })
    };
    let spec = pod.spec.as_ref();
    let runner = spec.into_iter().flat_map(|it| &it.containers);
    let runner = runner.map(|it| container(&it.name, it.image.as_ref(), state));
    let others = spec.into_iter().flat_map(|it| it.init_containers.iter().flatten());
    let others = others.map(|it| container(&it.name, it.image.as_ref(), first.unwrap_or(state)));
    let mut status = json!({
        "phase": phase,
        "hostIP": "192.0.2.1",
        "containerStatuses": runner.collect::<Vec<_>>(),
    });
    let others: Vec<Value> = others.collect();
    if !others.is_empty() {
        status["initContainerStatuses"] = json!(others);
    }
    json!({ "status": status })
}
