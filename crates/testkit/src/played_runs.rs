//! Runs of Ansible as their operator tells of them, played by tests.

use std::fmt::Display;
use std::sync::Arc;

use api::ansibleee::{AnsibleEe, JobStatus};
use serde_json::{Value, json};

/// Returns whether the run has not ended.
#[must_use]
pub fn is_open(run: &AnsibleEe) -> bool {
    let status = run.status.as_ref().and_then(|it| it.job_status);
    !matches!(status, Some(JobStatus::Succeeded | JobStatus::Failed))
}

/// Returns the run that is created by this object; it begins at once, unless new runs wait for others.
///
/// # Panics
///
/// When the object is no run.
#[must_use]
pub fn created(object: &Value, is_queueing: bool) -> AnsibleEe {
    let mut object = object.clone();
    if !is_queueing {
        object["status"] = json!({ "JobStatus": "Running" });
    }
    serde_json::from_value(object).expect("the object is a run")
}

/// Ends every open run; `outcome` returns the outcome of a run on a host.
///
/// # Panics
///
/// When there is no such outcome.
pub fn end_all<'a>(
    runs: &mut [Arc<AnsibleEe>],
    now: impl Display,
    outcome: impl Fn(&AnsibleEe, &str) -> &'a str,
) {
    for run in runs.iter_mut().filter(|it| is_open(it)) {
        let result = |name: &str| json!({ "name": name, "result": outcome(run, name) });
        let hosts: Vec<Value> = run.spec.hosts.iter().map(|it| result(&it.name)).collect();
        let all_good = hosts.iter().all(|it| it["result"] == "Ok");
        let status = json!({
            "JobStatus": if all_good { "Succeeded" } else { "Failed" },
            "hosts": hosts,
            "completionTime": now.to_string(),
        });
        let status = serde_json::from_value(status).expect("the outcomes exist");
        Arc::make_mut(run).status = Some(status);
    }
}
