//! What the status of a set has whatever provisions its machines.

use std::collections::BTreeMap;

use api::baremetal::{BaremetalHost, BaremetalSetStatus, HostStatus};
use api::conditions::{
    self, ConditionDraft, READY, Severity, first_names, merge_conditions, truncated,
};
use jiff::Timestamp;
use operator_core::keyed::{Inputs, Renewal};
use operator_core::plan::{Step as Write, Target};
use operator_core::rejected_write::{self, RejectedWrite};

use crate::ironic::remediation::anew;
use crate::observe::Observed;

/// Length limit of a message about one machine, in bytes.
pub const TEXT: usize = 768;

/// Condition type: the provisioner of the machines answers.
pub const SERVER_READY: &str = "OpenStackBaremetalSetProvServerReady";

/// Condition type: each host has a running machine.
pub const PROVISIONED: &str = "OpenStackBaremetalSetBmhProvisioningReady";

/// Condition type: all inputs of the hosts exist and are valid.
pub const INPUT_READY: &str = "InputReady";

/// Condition type: the machines were deployed with the present config drives. Does not affect
/// `Ready`.
pub const UP_TO_DATE: &str = "UpToDate";

/// The network name of a host's only address.
const CTLPLANE: &str = "ctlplane";
/// How many items of one kind a message names.
pub(crate) const NAMED: usize = 3;

/// Size limit of the errors of all hosts together, in bytes, because a status is limited.
const ERRORS: usize = 64 * 1024;

/// Minimum and maximum size of one host's error.
pub(crate) const OF_ONE: (usize, usize) = (320, TEXT);

/// How much of that is reserved for the operator's text, beside Ironic's.
pub(crate) const OURS: usize = 256;

/// Returns the status step from all conditions that `Ready` depends on, the condition on config
/// drives, and the hosts.
pub(crate) fn whole(
    seen: &Observed,
    mut drafts: Vec<ConditionDraft>,
    up_to_date: ConditionDraft,
    (mut hosts, drives): (BTreeMap<String, HostStatus>, &Inputs),
    rejected: Option<&RejectedWrite>,
    now: Timestamp,
) -> Option<Write> {
    let set = &*seen.set;
    let observed = set.status.as_ref();
    let previous = observed.map(|it| it.conditions.clone()).unwrap_or_default();
    drafts.extend(rejected_write::condition(rejected, &previous, false));
    let good = ConditionDraft::good(READY, "Ready", "Each host has a machine that runs.");
    let ready = conditions::ready(&drafts, good);
    drafts.extend(conditions::kstatus(&ready));
    drafts.extend([ready, up_to_date]);
    let generation = set.metadata.generation;
    for (name, drive) in drives {
        // The digest noted on the machine stays as it is there; the status has it with the present
        // key.
        let noted = hosts.get_mut(name).and_then(|it| it.config_drive_hash.as_mut());
        if let Some(noted) = noted.filter(|it| drive.is(it)) {
            let reported = seen.set.told(name).and_then(|it| it.config_drive_hash.as_ref());
            *noted = drive.kept(reported.or(Some(noted)));
        }
    }
    let desired = BaremetalSetStatus {
        observed_generation: generation,
        conditions: merge_conditions(&previous, drafts, generation, now),
        baremetal_hosts: hosts,
        applied: seen.applied().cloned(),
    };
    let (mut renewed, mut renewal) = (desired.clone(), Renewal::default());
    for (name, host) in &mut renewed.baremetal_hosts {
        if let Some(drive) = drives.get(name) {
            renewal.of_some(host.config_drive_hash.as_mut(), drive);
        }
    }
    let conditions = (previous.as_slice(), desired.conditions.as_slice());
    let way_on = "A machine gets another config drive when it is deployed anew.";
    renewal.step(Target::of(set), observed, (&desired, &renewed), conditions, way_on)
}

/// What keeps a host from being ready.
pub(crate) struct Matter<'a> {
    pub(super) host: &'a str,
    pub(super) severity: Severity,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Reports faults of the inputs; `is_missing` says whether creating Secrets fixes them.
pub(crate) fn input_of(texts: &[&str], is_missing: bool) -> ConditionDraft {
    let message = format!("{}.", status_of(texts, "; "));
    match (texts.is_empty(), is_missing) {
        (true, _) => {
            let text = "Everything that the hosts are made from is there.";
            ConditionDraft::good(INPUT_READY, "InputComplete", text)
        }
        (false, true) => ConditionDraft::error(INPUT_READY, "SecretNotFound", message),
        (false, false) => ConditionDraft::error(INPUT_READY, "InvalidInput", message),
    }
}

/// Joins the first few texts and counts the rest.
pub(crate) fn status_of(texts: &[&str], between: &str) -> String {
    let first = texts.iter().take(NAMED).copied().collect::<Vec<_>>().join(between);
    match texts.len().checked_sub(NAMED) {
        None | Some(0) => first,
        Some(more) => format!("{first}{between}and {more} more"),
    }
}

/// Returns the condition for unknown machines.
pub(crate) fn unknown(type_: &str) -> ConditionDraft {
    let text = format!("Nothing is known of the machines: see {SERVER_READY}.");
    ConditionDraft::unknown(type_, "MachinesUnknown", text)
}

/// Returns why a set that is being deleted gives nothing back.
fn needed(seen: &Observed) -> String {
    let holders: Vec<&str> = seen.holders().collect();
    format!(
        "The set is being deleted, and its machines stay as they are while others hold it, by these \
         finalizers: {}. They are given back once nobody holds it: delete what the machines are for \
         first.",
        first_names(&holders, NAMED)
    )
}

/// Reports how many hosts are ready, and the worst causes of the others.
pub(crate) fn provisioned_of(
    seen: &Observed,
    (n_done, n_wanted): (usize, usize),
    matters: &[Matter<'_>],
) -> ConditionDraft {
    let count = format!("{n_done} of {n_wanted} hosts have a machine that runs.");
    let order = |it: &&Matter<'_>| match it.severity {
        Severity::Error => 0,
        Severity::Warning => 1,
        Severity::Info => 2,
    };
    let worst = matters.iter().min_by_key(order);
    if seen.is_needed() && worst.is_none_or(|it| it.severity == Severity::Info) {
        return ConditionDraft::waiting(PROVISIONED, "DeletionWaits", needed(seen));
    }
    let Some(worst) = worst else {
        return ConditionDraft::good(PROVISIONED, "Provisioned", count);
    };
    let alike = matters.iter().filter(|it| order(it) == order(&worst));
    let texts: Vec<String> = alike.map(|it| format!("Host {}: {}.", it.host, it.message)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let message = format!("{count} {}", status_of(&texts, " "));
    let of = match worst.severity {
        Severity::Error => ConditionDraft::error,
        Severity::Warning => ConditionDraft::warning,
        Severity::Info => ConditionDraft::waiting,
    };
    of(PROVISIONED, worst.reason, message)
}

/// Reports hosts that run with another config drive than the present one.
pub(crate) fn up_to_date_of(seen: &Observed, old: &[&str]) -> ConditionDraft {
    if old.is_empty() {
        let text = "No machine runs with another config drive than the present one.";
        return ConditionDraft::good(UP_TO_DATE, "UpToDate", text);
    }
    let text = format!(
        "What the config drives of these hosts are made from has changed since they were deployed: {}. \
         Nothing is done by itself, for a machine learns it only by being deployed again, which \
         overwrites its disk: {}.",
        first_names(old, NAMED),
        anew(seen, "a host")
    );
    ConditionDraft::waiting(UP_TO_DATE, "ConfigDriveChanged", text)
}

/// A problem of a host that a user should see, shortened.
pub(crate) struct Worry {
    pub(super) text: String,
    pub(super) needs_human: bool,
}

/// Returns the problems that a user should see, by host, within the limit for all together.
pub(crate) fn worries<'a>(matters: &[Matter<'a>]) -> BTreeMap<&'a str, Worry> {
    let limit = of_one(matters);
    let worry = |it: &Matter<'_>| Worry {
        text: truncated(&it.message, limit),
        needs_human: it.severity == Severity::Error,
    };
    matters.iter().filter(|it| it.worries()).map(|it| (it.host, worry(it))).collect()
}

/// Returns the size limit of each host's problem, in bytes.
pub(crate) fn of_one(matters: &[Matter<'_>]) -> usize {
    let n_worrying = matters.iter().filter(|it| it.worries()).count();
    let (least, most) = OF_ONE;
    (ERRORS / n_worrying.max(1)).clamp(least, most)
}

impl Matter<'_> {
    fn worries(&self) -> bool {
        self.severity != Severity::Info
    }
}

/// Returns a host's addresses by network.
pub(crate) fn ip_addresses(desired: &BaremetalHost) -> BTreeMap<String, String> {
    let address = desired.ctl_plane_ip.iter().filter(|it| !it.is_empty());
    address.map(|it| (CTLPLANE.to_owned(), it.clone())).collect()
}
