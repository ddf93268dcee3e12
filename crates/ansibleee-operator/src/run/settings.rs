//! What the operator's options say about runner pods, and which runs they are about.

use api::ansibleee::AnsibleEeSpec;
use k8s_openapi::api::core::v1::ResourceRequirements;

/// What the operator's options say about runner pods.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The image of runs that name none; may be empty.
    pub image: String,
    /// The user of runner pods; `None` leaves it to the image or the platform.
    pub uid: Option<i64>,
    /// The service accounts that a run may name; `*` allows all.
    pub service_accounts: Vec<String>,
    /// Default of how many seconds a task may take on a host.
    pub task_timeout: i64,
    /// Requests and limits of runs that name none.
    pub resources: Option<ResourceRequirements>,
    /// Default deadline of a hand-made run, in seconds.
    pub deadline: i64,
}

#[cfg(any(test, fuzzing))]
impl Settings {
    /// Returns sample settings for tests.
    pub fn sample() -> Self {
        Self {
            image: "runner:1".into(),
            uid: Some(1001),
            service_accounts: Vec::new(),
            task_timeout: 900,
            resources: None,
            deadline: 14_400,
        }
    }
}

/// Returns whether a parent's engine created the run.
///
/// Such a run names its inputs, and each further attempt is a new run. The others are made by hand
/// and behave as upstream's.
pub fn is_engines(spec: &AnsibleEeSpec) -> bool {
    spec.input_hash.is_some()
}
