//! How long a run may take.

use api::ansibleee::{AnsibleEeSpec, MAX_DEADLINE};

use crate::run::settings::{Settings, is_engines};

/// Default deadline of a hand-made run in seconds, where the operator's option says nothing else.
pub const DEFAULT: i64 = 14_400;
/// Deadline in seconds of a run of the engine that names none.
const DEFAULT_OF_ENGINE: i64 = 7200;
/// How many seconds the pod of a debug run sleeps.
const DAY: i64 = 86_400;

/// Returns how long a run may take in seconds, if the run or its creator says so.
///
/// It is at most [`MAX_DEADLINE`], which objects of earlier versions may exceed.
pub fn deadline(spec: &AnsibleEeSpec) -> Option<i64> {
    let own = spec.active_deadline_seconds.map(|it| it.min(MAX_DEADLINE));
    own.or_else(|| is_engines(spec).then_some(DEFAULT_OF_ENGINE))
}

/// Returns the default deadline of a hand-made run, which keeps it from holding its hosts forever.
///
/// The day that a debug pod sleeps is added.
pub fn by_default(spec: &AnsibleEeSpec, settings: &Settings) -> i64 {
    settings.deadline + if spec.debug { DAY } else { 0 }
}
