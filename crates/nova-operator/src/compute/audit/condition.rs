//! The condition of a compute that says whether its host is as it was deployed.

use api::ansibleee::HostOutcome;
use api::conditions::{Condition, ConditionDraft, ConditionStatus, append_more, find};
use api::dataplane::RunState;
use api::nova::ExternalCompute;
use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::conditions::CONFIGURATION_IN_SYNC;

use crate::compute::audit::report::{Differences, LastAudit, Verdict};
use crate::compute::audit::request::{AuditPolicy, AuditRequest};
use crate::compute_status::deployed_files::is_unrecorded;
use crate::compute_status::registration::recorded_proof;
use crate::reasons;
use crate::shared_caches::audit_runs::LABEL;

/// After how many intervals without another audit the last one counts no longer: two may pass between
/// audits that each come in their interval.
const OVERDUE: i32 = 3;
/// How many differences the message of the condition names.
const NAMED: usize = 3;

/// What is known of the audits of a compute's host.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Audited {
    /// What is requested.
    pub request: AuditRequest,
    /// The last audit that has ended; `None` where none has, or its run is gone.
    pub last: Option<LastAudit>,
    /// The audit playbooks of the services of phase 0, in order.
    pub playbooks: Vec<String>,
}

impl Audited {
    /// Returns the audit whose result is to be repaired now; `None` where nothing is: what a
    /// deployment has just left as it was waits for the next interval.
    pub fn repair(&self, compute: &ExternalCompute) -> Option<&LastAudit> {
        let last = self.last.as_ref()?;
        let repairs = repairs(compute, self.request.policy()?);
        let is_due = repairs && !last.is_after_deployment && is_out_of_sync(compute, last);
        (is_due && !is_unrecorded(compute)).then_some(last)
    }

    /// Returns when it is no longer known that the host is as it was deployed, because no audit has
    /// followed the last one; `None` where that did not say so, or no audits are requested. Where the
    /// run of the last one is gone, its condition counts.
    pub fn overdue_at(&self, compute: &ExternalCompute) -> Option<Timestamp> {
        let since = match &self.last {
            Some(last) => (last.verdict == Verdict::InSync).then_some(last.created)?,
            None => {
                reported(compute)
                    .filter(|it| it.status == ConditionStatus::True)?
                    .last_transition_time
                    .0
            }
        };
        Some(since + self.request.policy()?.interval * OVERDUE)
    }

    /// Returns the condition; `None` where no audits are requested. `redeploy` is the command that
    /// deploys the host again.
    pub fn condition(
        &self,
        compute: &ExternalCompute,
        redeploy: &str,
        now: Timestamp,
    ) -> Option<ConditionDraft> {
        let policy = match &self.request {
            AuditRequest::Absent => return None,
            AuditRequest::Invalid(message) => {
                let reason = &reasons::audit::AUDIT_INVALID;
                return Some(reason.condition(CONFIGURATION_IN_SYNC, message.clone()));
            }
            AuditRequest::Audit(policy) => policy,
        };
        let node = &compute.spec.dataplane_node_name;
        if is_unrecorded(compute) {
            return Some(unrecorded(node, redeploy));
        }
        let is_overdue = self.overdue_at(compute).is_some_and(|it| it <= now);
        let Some(last) = &self.last else {
            return Some(if is_overdue { overdue(node) } else { without_result(compute, node) });
        };
        Some(match &last.verdict {
            Verdict::InSync if has_failed_since(compute, last) => {
                let text = format!(
                    "A deployment has failed on host {node} since its last audit, so it is unknown \
                     whether the host is as it was deployed: see DeploymentReady."
                );
                reasons::audit::DEPLOYMENT_FAILED_SINCE.condition(CONFIGURATION_IN_SYNC, text)
            }
            Verdict::InSync if is_overdue => overdue(node),
            Verdict::InSync => {
                let text = format!("Host {node} is as it was deployed.");
                reasons::audit::IN_SYNC.condition(CONFIGURATION_IN_SYNC, text)
            }
            Verdict::Differs(_) if !is_out_of_sync(compute, last) => {
                let text = format!(
                    "Host {node} was deployed again after an audit had found differences: it is \
                     audited once more."
                );
                reasons::audit::DEPLOYED_SINCE.condition(CONFIGURATION_IN_SYNC, text)
            }
            Verdict::Differs(found) => {
                let text = format!(
                    "Host {node} differs from what was deployed: {}. {}",
                    named(found, NAMED),
                    way_on(repairs(compute, *policy), last, redeploy)
                );
                reasons::audit::OUT_OF_SYNC.condition(CONFIGURATION_IN_SYNC, text)
            }
            Verdict::NoResult(outcome) => no_result(compute, node, *outcome),
            Verdict::PlaybookUnreadable => without_playbook(compute, node),
            Verdict::Unreadable => failed(compute, node, "its report cannot be read"),
        })
    }
}

/// Whether what audits find on the host of a compute is repaired: what this operator does not deploy is not
/// deployed again by it.
fn repairs(compute: &ExternalCompute, policy: AuditPolicy) -> bool {
    policy.repairs && !compute.is_observed()
}

/// Returns whether the differences of an audit are still those of the host: it was not deployed
/// successfully since.
pub fn is_out_of_sync(compute: &ExternalCompute, last: &LastAudit) -> bool {
    let differs = matches!(last.verdict, Verdict::Differs(_));
    differs && deployed_at(compute).is_none_or(|it| it <= last.created)
}

/// Whether a deployment of the compute has failed since an audit began, and none has ended well after
/// it: failures count until then, also while it is tried again.
fn has_failed_since(compute: &ExternalCompute, last: &LastAudit) -> bool {
    compute.services().iter().any(|it| {
        let has_failed = it.state == RunState::Failed || it.failures > 0;
        has_failed && it.since.0 > last.created
    })
}

/// Returns when the last deployment of a compute ended well; `None` while none has.
fn deployed_at(compute: &ExternalCompute) -> Option<Timestamp> {
    let last = recorded_proof(compute).filter(|it| it.state == RunState::Succeeded)?;
    Some(last.since.0)
}

/// Returns what follows where a host differs.
fn way_on(repairs: bool, last: &LastAudit, redeploy: &str) -> String {
    if repairs && last.is_after_deployment {
        "Its last deployment did not mend that; it is deployed again if the next audit finds it too. \
         Look at it on the host."
            .to_owned()
    } else if repairs {
        "It is deployed again as soon as deploy and its role's maxUnavailable allow it.".to_owned()
    } else {
        format!("To deploy it again: {redeploy}")
    }
}

fn unrecorded(node: &str, redeploy: &str) -> ConditionDraft {
    let text = format!(
        "It is not recorded which files were last deployed on host {node}, so nothing is compared with \
         them before its next deployment. To deploy it: {redeploy}"
    );
    reasons::audit::NOT_RECORDED.condition(CONFIGURATION_IN_SYNC, text)
}

fn overdue(node: &str) -> ConditionDraft {
    let text = format!(
        "Host {node} was as it was deployed when it was last audited, and there is no result of the \
         last {OVERDUE} intervals: it is audited while its node is Ready and UpToDate, and this \
         compute has DeploymentReady and UpToDate."
    );
    reasons::audit::AUDIT_OVERDUE.condition(CONFIGURATION_IN_SYNC, text)
}

/// Returns the condition as it was written last.
fn reported(compute: &ExternalCompute) -> Option<&Condition> {
    find(&compute.status.as_ref()?.conditions, CONFIGURATION_IN_SYNC)
}

/// The condition stays as it was where the run of the last audit is gone.
fn without_result(compute: &ExternalCompute, node: &str) -> ConditionDraft {
    let before = reported(compute);
    let is_result = |it: &&Condition| it.reason != reasons::audit::AUDIT_INVALID.word;
    before.filter(is_result).map_or_else(
        || {
            let text = format!("No audit of host {node} has ended yet.");
            reasons::audit::NOT_AUDITED.condition(CONFIGURATION_IN_SYNC, text)
        },
        ConditionDraft::repeated,
    )
}

/// Returns the first `limit` differences, and how many more there are.
pub fn named(found: &Differences, limit: usize) -> String {
    let shown: Vec<&str> = found.named.iter().take(limit).map(String::as_str).collect();
    let n_more = found.total - shown.len();
    if shown.is_empty() {
        return format!("{n_more} differences");
    }
    append_more(shown.join(", "), n_more)
}

fn no_result(compute: &ExternalCompute, node: &str, outcome: HostOutcome) -> ConditionDraft {
    let what = match outcome {
        HostOutcome::Unreachable => "is unreachable",
        HostOutcome::KeyRefused => "refuses the ssh key",
        HostOutcome::HostKeyMismatch => "has another ssh key of its own",
        HostOutcome::Ok | HostOutcome::Failed | HostOutcome::NotReached | HostOutcome::Unknown => {
            return failed(compute, node, "it did not come to its end");
        }
    };
    let text = format!(
        "Host {node} {what}, so it is unknown whether it is as it was deployed. Log of the audit: {}",
        find_command(compute)
    );
    reasons::audit::HOST_NOT_ANSWERING.condition(CONFIGURATION_IN_SYNC, text)
}

fn without_playbook(compute: &ExternalCompute, node: &str) -> ConditionDraft {
    let image = compute.spec.ansible_ee_container_image.as_deref().unwrap_or_default();
    let text = format!(
        "Host {node} cannot be audited: Ansible cannot read osp.edpm.nova_audit, or the audit \
         playbook of a service, in the runner image {image}. If the image is of an earlier release, \
         set spec.ansibleEEContainerImage of NovaExternalCompute {} to the present one. Its run: {}",
        compute.name_any(),
        find_command(compute)
    );
    reasons::audit::AUDIT_PLAYBOOK_UNREADABLE.condition(CONFIGURATION_IN_SYNC, text)
}

fn failed(compute: &ExternalCompute, node: &str, why: &str) -> ConditionDraft {
    let text = format!(
        "The last audit has no result of host {node}: {why}. Its run: {}",
        find_command(compute)
    );
    reasons::audit::AUDIT_FAILED.condition(CONFIGURATION_IN_SYNC, text)
}

fn find_command(compute: &ExternalCompute) -> String {
    format!("kubectl describe -n {} osaee -l {LABEL}", compute.namespace().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use api::nova::Management;
    use jiff::SignedDuration;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_host_that_a_service_deploys_is_not_repaired_and_the_way_on_is_said() {
        let mut compute: ExternalCompute = serde_json::from_value(json!({
            "metadata": {"name": "n0", "namespace": "ns"},
            "spec": {"dataplaneNodeName": "n0", "management": "Observed"},
            "status": {},
        }))
        .unwrap();
        let found = Differences { total: 1, named: vec!["/etc/x".to_owned()] };
        let last = LastAudit {
            name: "a".to_owned(),
            uid: "a".to_owned(),
            created: Timestamp::UNIX_EPOCH,
            is_after_deployment: false,
            verdict: Verdict::Differs(found),
        };
        let mut said = |repairs, is_observed| {
            let policy = AuditPolicy { interval: SignedDuration::from_hours(1), repairs };
            let request = AuditRequest::Audit(policy);
            let audited = Audited { request, last: Some(last.clone()), playbooks: vec![] };
            compute.spec.management =
                if is_observed { Management::Observed } else { Management::Managed };
            let found = audited.condition(&compute, "COMMAND", Timestamp::UNIX_EPOCH).unwrap();
            (found.reason, found.message, audited.repair(&compute).is_some())
        };
        let (reason, message, is_repaired) = said(true, true);
        assert_eq!((reason.as_str(), is_repaired), ("OutOfSync", false));
        assert!(message.contains("/etc/x") && message.contains("COMMAND"), "{message}");
        assert_eq!(said(false, true), (reason, message, false));
        let (reason, message, is_repaired) = said(true, false);
        assert_eq!((reason.as_str(), is_repaired), ("OutOfSync", true));
        assert!(!message.contains("COMMAND"), "{message}");
    }
}
