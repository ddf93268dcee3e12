//! What the operator's own options say about runner pods, and how long a run may take.

use api::ansibleee::{AnsibleEeSpec, MAX_DEADLINE};
use k8s_openapi::api::core::v1::ResourceRequirements;

/// How long a run of the engine may take unless it says otherwise.
const DEADLINE: i64 = 7200;

/// What the operator's own options say about runner pods.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The image of runs that name none.
    pub image: String,
    /// The user of runner pods; the image's, or the platform's choice, where absent.
    pub uid: Option<i64>,
    /// The service accounts that a run may name; `*` stands for all.
    pub service_accounts: Vec<String>,
    /// Seconds that a task may take on a host, where the run itself says nothing.
    pub task_timeout: i64,
    /// Requests and limits of runs that name none.
    pub resources: Option<ResourceRequirements>,
    /// How many seconds a hand-made run may take unless it says otherwise.
    pub deadline: i64,
}

#[cfg(any(test, fuzzing))]
impl Settings {
    /// Settings of an operator whose options say little.
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

/// Whether a parent's engine made the run: it names its inputs, and each further attempt is a new
/// run. The others are made by hand and keep upstream's ways.
pub fn is_engines(spec: &AnsibleEeSpec) -> bool {
    spec.input_hash.is_some()
}

/// How long a run may take, where the run itself or whoever made it says so; never longer than
/// [`MAX_DEADLINE`], which objects of earlier versions may exceed.
pub fn deadline(spec: &AnsibleEeSpec) -> Option<i64> {
    let own = spec.active_deadline_seconds.map(|it| it.min(MAX_DEADLINE));
    own.or_else(|| is_engines(spec).then_some(DEADLINE))
}
