//! The catalog of conditions: types and reasons of each kind as data, for the docs and for tests.

use api::conditions::{Condition, ConditionStatus, READY, RECONCILING, STALLED};
use serde_json::Value;

use crate::rejected_write::WRITES_ACCEPTED;
use crate::run_engine::outcome::FailureReason;

/// A kind, and the conditions that one operator writes on it.
#[derive(Clone, Copy, Debug)]
pub struct KindConditions {
    /// The kind's name.
    pub name: &'static str,
    /// Its conditions; [`RECONCILING`] and [`STALLED`] are implied.
    pub conditions: &'static [ConditionSpec],
}

/// A condition type, with its reasons.
#[derive(Clone, Copy, Debug)]
pub struct ConditionSpec {
    /// The type.
    pub type_: &'static str,
    /// What holds when it is True.
    pub meaning: &'static str,
    /// Its own reasons.
    pub reasons: &'static [ReasonSpec],
    /// The reasons that it takes over from other conditions.
    pub repeats: Repeats,
}

/// Reasons that a condition takes over from elsewhere.
#[derive(Clone, Copy, Debug)]
pub enum Repeats {
    /// None.
    Nothing,
    /// Those of failed attempts.
    Attempts(&'static [FailureReason]),
    /// Those of the object's other conditions.
    Others,
    /// Those of another kind's `Ready` condition.
    Kind(&'static str),
}

/// A reason, with its documentation.
#[derive(Clone, Copy, Debug)]
pub struct ReasonSpec {
    /// The reason as one CamelCase word.
    pub reason: &'static str,
    /// The status with which it is used.
    pub status: ConditionStatus,
    /// What is wrong, or what holds.
    pub meaning: &'static str,
    /// Whether and when it heals without the user; empty when nothing is wrong.
    pub heals: &'static str,
    /// What the user does next; empty when there is nothing to do.
    pub step: &'static str,
}

impl ReasonSpec {
    /// Creates a reason with status True.
    pub const fn good(reason: &'static str, meaning: &'static str) -> Self {
        Self { reason, status: ConditionStatus::True, meaning, heals: "", step: "" }
    }

    /// Creates a reason with status False.
    pub const fn bad(
        reason: &'static str,
        meaning: &'static str,
        heals: &'static str,
        step: &'static str,
    ) -> Self {
        Self { reason, status: ConditionStatus::False, meaning, heals, step }
    }

    /// Changes the status to Unknown.
    #[must_use]
    pub const fn unknown(mut self) -> Self {
        self.status = ConditionStatus::Unknown;
        self
    }
}

/// The condition types that every kind has in addition to its own.
pub const ON_EVERY_KIND: &[ConditionSpec] = &[
    ConditionSpec {
        type_: RECONCILING,
        meaning: "The operator goes on by itself; absent otherwise.",
        reasons: &[],
        repeats: Repeats::Others,
    },
    ConditionSpec {
        type_: STALLED,
        meaning: "A human is needed; absent otherwise.",
        reasons: &[],
        repeats: Repeats::Others,
    },
];

/// A write was rejected because of a quota, a policy or a permission.
pub const FORBIDDEN: ReasonSpec = ReasonSpec::bad(
    "Forbidden",
    "The API server refuses an object: a quota, a policy or a missing permission.",
    "When the write is accepted.",
    "Raise the quota, change the policy, or give the operator the permission.",
);
/// A write was rejected because of its content.
pub const INVALID: ReasonSpec = ReasonSpec::bad(
    "Invalid",
    "The API server or a webhook does not accept the content of an object.",
    "When the write is accepted.",
    "Correct what the object is made from, or the policy.",
);
/// A write was rejected because another object has the name.
pub const ALREADY_EXISTS: ReasonSpec = ReasonSpec::bad(
    "AlreadyExists",
    "Another object has the name.",
    "When the write is accepted.",
    "Delete the other one if nobody needs it, or name yours differently.",
);

/// The condition that reports rejected writes.
pub const WRITES: ConditionSpec = condition(
    WRITES_ACCEPTED,
    "Never said: the condition is absent unless the API server refuses an object that belongs to \
     this one.",
    &[FORBIDDEN, INVALID, ALREADY_EXISTS],
);

/// Why a deployment does not begin yet; the reasons of
/// [`BlockReason`](crate::run_engine::rollout::BlockReason).
pub const HELD: [ReasonSpec; 2] = [
    ReasonSpec::bad(
        "WaitingForTurn",
        "As many hosts that were in service as `maxUnavailable` allows are being deployed, fail or are \
         down.",
        "When one of them is in service again.",
        "Wait; where hosts that fail are named, correct their cause, raise `maxUnavailable`, or set \
         `deploy: false` on them.",
    ),
    ReasonSpec::bad(
        "Paused",
        "`pauseOnFailure` is set, and a host of the role fails.",
        "When no host fails.",
        "Correct the cause that the role names, or set `pauseOnFailure: false`.",
    ),
];
/// The last deployment used the present inputs.
pub const UP_TO_DATE: ReasonSpec =
    ReasonSpec::good("UpToDate", "The last deployment used the present inputs.");
/// No deployment was ever completed.
pub const NEVER_DEPLOYED: ReasonSpec =
    ReasonSpec::bad("NeverDeployed", "No deployment has been completed.", "", "");
/// Inputs differ from the deployed ones.
pub const INPUTS_CHANGED: ReasonSpec = ReasonSpec::bad(
    "InputsChanged",
    "The named inputs changed since.",
    "With `deploy: true`.",
    "Deploy, if you want the change.",
);
/// The next run waits for another run on the host.
pub const QUEUED: ReasonSpec = ReasonSpec::bad(
    "Queued",
    "The next run waits for another that touches the host.",
    "Yes.",
    "Wait.",
);
/// Deployment is disabled.
pub const NOT_REQUESTED: ReasonSpec = ReasonSpec::bad(
    "NotRequested",
    "Nothing may run.",
    "No.",
    "Set `deployStrategy.deploy: true` on node, role or data plane.",
);

/// What failed attempts mean; there is one entry for each of [`FailureReason::ALL`].
pub const ATTEMPTS: &[ReasonSpec] = &[
    ReasonSpec::bad(
        "HostUnreachable",
        "No ssh connection to the host, or it did not end a task within the limit of tasks.",
        "Yes.",
        "Start the host or its sshd; check `ansibleHost` and `ansiblePort`.",
    ),
    ReasonSpec::bad(
        "KeyRefused",
        "The host refuses the ssh key.",
        "Yes, and at once when the ssh Secret changes.",
        "Put the right key into `ssh-privatekey`, or the public one onto the host, for the user \
         `ansibleUser`.",
    ),
    ReasonSpec::bad(
        "HostKeyMismatch",
        "The host shows another key than the known one, or none is known.",
        "Yes, and at once when the ssh Secret changes or another key is accepted.",
        "Compare with the host's console; then correct `known_hosts` in the ssh Secret, or accept a \
         key that was learned with the command in the message.",
    ),
    ReasonSpec::bad(
        "HostNotOwned",
        "The host records another owner, or nova-compute there is another host's: nothing was \
         changed on it.",
        "Yes.",
        "Correct the address; or delete the object that has the host, and take the host over with \
         the command in the message.",
    ),
    ReasonSpec::bad(
        "PodEvicted",
        "The runner's pod was evicted, preempted or killed, or its worker went away.",
        "Yes.",
        "Nothing.",
    ),
    ReasonSpec::bad(
        "ImagePullFailed",
        "The runner image cannot be pulled.",
        "Yes.",
        "Correct the image or the registry.",
    ),
    ReasonSpec::bad(
        "InputMissing",
        "A Secret, ConfigMap, key or network that the pod mounts is missing.",
        "Yes.",
        "Create it.",
    ),
    ReasonSpec::bad(
        "TaskFailed",
        "A task failed; the message has task, file:line and the first line of what it said.",
        "No.",
        "Mend the cause, then change an input or redeploy.",
    ),
    ReasonSpec::bad(
        "NoHostMatched",
        "No play reached the host.",
        "No.",
        "Check the playbook's `hosts` and the limit, then change an input or redeploy.",
    ),
    ReasonSpec::bad(
        "InvalidPlaybook",
        "Ansible cannot read the playbook, the inventory or the options.",
        "No.",
        "Correct it: that is a changed input.",
    ),
    ReasonSpec::bad(
        "InvalidSpec",
        "The run cannot become a Job: the operator or the API server refuses what it says.",
        "No.",
        "Correct what the message names: that is a changed input.",
    ),
    ReasonSpec::bad(
        "DeadlineExceeded",
        "The run took longer than allowed (two hours unless it says otherwise).",
        "No.",
        "Look at the log, then redeploy.",
    ),
    ReasonSpec::bad(
        "ResultUnknown",
        "The run ended, or was deleted, without a report.",
        "No.",
        "Look at the log, then redeploy.",
    ),
];

fn of_kind<'a>(kinds: &'a [KindConditions], kind: &str) -> impl Iterator<Item = &'a ConditionSpec> {
    kinds.iter().filter(move |it| it.name == kind).flat_map(|it| it.conditions)
}

/// Returns the conditions of a status that its kind does not declare, each as text; for tests.
pub fn undeclared(kinds: &[KindConditions], kind: &str, status: &Value) -> Vec<String> {
    // A status may have no conditions.
    let conditions = serde_json::from_value::<Option<Vec<Condition>>>(status["conditions"].clone());
    let conditions = match conditions {
        Ok(conditions) => conditions.unwrap_or_default(),
        Err(error) => return vec![format!("no conditions: {error}")],
    };
    let is_declared = |it: &&Condition| {
        let mut aspects = of_kind(kinds, kind).chain(ON_EVERY_KIND);
        aspects.any(|aspect| aspect.type_ == it.type_ && aspect.allows(it, kinds, kind))
    };
    let words = |it: &Condition| format!("{kind} {}={:?} {}", it.type_, it.status, it.reason);
    conditions.iter().filter(|it| !is_declared(it)).map(words).collect()
}

impl ConditionSpec {
    /// Lets the condition take over reasons from elsewhere too.
    #[must_use]
    pub const fn repeating(mut self, repeats: Repeats) -> Self {
        self.repeats = repeats;
        self
    }

    /// Returns whether the kind's condition may have this status and reason.
    fn allows(&self, found: &Condition, kinds: &[KindConditions], kind: &str) -> bool {
        let is_own = |it: &ReasonSpec| it.reason == found.reason && it.status == found.status;
        self.reasons.iter().any(is_own) || self.repeats(&found.reason, kinds, kind)
    }

    /// Returns whether it may take over this reason from elsewhere.
    fn repeats(&self, reason: &str, kinds: &[KindConditions], kind: &str) -> bool {
        let says = |kind| {
            let mut aspects =
                of_kind(kinds, kind).filter(|it| !matches!(it.repeats, Repeats::Others));
            aspects.any(|it| {
                it.reasons.iter().any(|it| it.reason == reason) || it.repeats(reason, kinds, kind)
            })
        };
        match self.repeats {
            Repeats::Nothing => false,
            Repeats::Attempts(reasons) => reasons.iter().any(|it| it.as_str() == reason),
            Repeats::Others => says(kind),
            // The kinds of other operators are not in this list, so their reasons cannot be
            // checked.
            Repeats::Kind(other) => of_kind(kinds, other).next().is_none() || says(other),
        }
    }
}

/// Declares the summary of an object's other conditions, with its own reasons for when all is well.
pub const fn summary(meaning: &'static str, reasons: &'static [ReasonSpec]) -> ConditionSpec {
    ConditionSpec { type_: READY, meaning, reasons, repeats: Repeats::Others }
}

/// Declares a condition with only its own reasons.
pub const fn condition(
    type_: &'static str,
    meaning: &'static str,
    reasons: &'static [ReasonSpec],
) -> ConditionSpec {
    ConditionSpec { type_, meaning, reasons, repeats: Repeats::Nothing }
}

#[cfg(test)]
mod tests {
    use api::conditions::{ConditionDraft, kstatus, merge_conditions};
    use serde_json::json;

    use super::*;

    const KINDS: &[KindConditions] = &[KindConditions {
        name: "Thing",
        conditions: &[
            summary("All is well.", &[ReasonSpec::good("Ready", "All is well.")]),
            condition(
                "Done",
                "It is done.",
                &[ReasonSpec::bad("Waiting", "Not yet.", "Yes.", "Wait.")],
            )
            .repeating(Repeats::Attempts(&[FailureReason::TaskFailed])),
        ],
    }];

    fn found(drafts: Vec<ConditionDraft>) -> Vec<String> {
        let conditions = merge_conditions(&[], drafts, None, jiff::Timestamp::UNIX_EPOCH);
        undeclared(KINDS, "Thing", &json!({ "conditions": conditions }))
    }

    #[test]
    fn every_reason_of_an_attempt_is_declared_with_how_it_heals() {
        let declared: Vec<&str> = ATTEMPTS.iter().map(|it| it.reason).collect();
        let mut reasons: Vec<&str> = FailureReason::ALL.iter().map(|it| it.as_str()).collect();
        assert_eq!(declared.len(), reasons.len());
        reasons.retain(|it| !declared.contains(it));
        assert_eq!(reasons, [""; 0], "without a row in ATTEMPTS");
        for word in ATTEMPTS {
            let reason = FailureReason::parse(word.reason);
            assert_eq!(word.heals.starts_with("Yes"), reason.heals_by_itself(), "{reason:?}");
            assert_eq!(word.heals.contains("ssh Secret"), reason.heals_with_ssh_secret());
        }
    }

    #[test]
    fn what_is_declared_is_found() {
        let waiting = ConditionDraft::waiting("Done", "Waiting", "");
        let ready = waiting.clone().with_type(READY);
        assert_eq!(found(vec![waiting, ready]), [""; 0]);
        let failed = ConditionDraft::error("Done", "TaskFailed", "");
        let ready = failed.clone().with_type(READY);
        let stalled = kstatus(&ready).unwrap();
        assert_eq!(found(vec![failed, ready, stalled]), [""; 0]);
        assert_eq!(found(vec![ConditionDraft::good(READY, "Ready", "")]), [""; 0]);
    }

    #[test]
    fn another_reason_type_or_status_is_not() {
        let condition = ConditionDraft::waiting("Done", "Tired", "");
        assert_eq!(found(vec![condition.clone()]), ["Thing Done=False Tired"]);
        assert_eq!(found(vec![condition.with_type(READY)]), ["Thing Ready=False Tired"]);
        assert_eq!(found(vec![ConditionDraft::good("Done", "Waiting", "")]).len(), 1);
        assert_eq!(found(vec![ConditionDraft::good("Other", "Waiting", "")]).len(), 1);
        assert_eq!(found(vec![ConditionDraft::error("Done", "KeyRefused", "")]).len(), 1);
    }
}
