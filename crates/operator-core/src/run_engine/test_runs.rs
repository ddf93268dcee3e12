//! Runs and recorded states for the run engine's tests.

use api::ansibleee::AnsibleEe;
use api::dataplane::service_run::{RunState, ServiceRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use crate::run_engine::run::{ATTEMPTS, Attempt, SERVICE_LABEL, SSH_KEYS};

/// One attempt.
pub(super) fn attempt(hash: &str, number: i64) -> Attempt {
    Attempt { hash: hash.into(), attempt: number }
}

/// A run of service `a` over some hosts, with the status that it has reached.
pub(super) fn run(name: &str, attempts: &[(&str, Attempt)], status: &Value) -> AnsibleEe {
    let attempts: serde_json::Map<String, Value> =
        attempts.iter().map(|(host, it)| ((*host).to_owned(), json!(it))).collect();
    serde_json::from_value(json!({
        "apiVersion": "ansibleee.openstack.org/v1beta1",
        "kind": "OpenStackAnsibleEE",
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": name,
            "labels": { SERVICE_LABEL: "a" },
            "annotations": {
                ATTEMPTS: json!(attempts).to_string(),
                SSH_KEYS: json!({ "key": "1" }).to_string(),
            },
        },
        "spec": {},
        "status": status,
    }))
    .expect("a run is well formed")
}

/// The status of a run that ended, `minute` minutes after the epoch.
pub(super) fn ended(job_status: &str, host: &str, result: &str, minute: u8) -> Value {
    json!({
        "JobStatus": job_status,
        "completionTime": format!("1970-01-01T00:{minute:02}:00Z"),
        "hosts": [{ "name": host, "result": result }],
    })
}

/// What a status records of service `a`.
pub(super) fn record(state: RunState, hash: &str, attempt: i64) -> ServiceRun {
    ServiceRun {
        name: "a".into(),
        state,
        hash: hash.into(),
        attempt,
        run: None,
        deployed_hash: None,
        failures: 0,
        since: Time(Timestamp::UNIX_EPOCH),
        reason: None,
        message: None,
    }
}
