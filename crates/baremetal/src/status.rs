//! The status of a set, from its evaluated hosts.

use std::collections::BTreeMap;

use api::baremetal::{BaremetalHost, BaremetalSetStatus, HostStatus};
use api::conditions::{
    self, ConditionDraft, READY, Severity, first_names, join_with_more, merge_conditions, truncated,
};
use api::problem::Problem;
use config_drive::from_baremetal_set::NO_SECRET;
use jiff::Timestamp;
use operator_core::keyed::{Inputs, Renewal};
use operator_core::plan::{Step as Write, Target};
use operator_core::rejected_write::{self, RejectedWrite};

use crate::hosts::{Evaluated, Host, HostState, Provisioner};
use crate::observe::{Observed, Unseen};
use crate::reasons;
use crate::remediation::{anew, in_use};

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
const NAMED: usize = 3;

/// Size limit of the errors of all hosts together, in bytes, because a status is limited.
const ERRORS: usize = 64 * 1024;

/// Minimum and maximum size of one host's error.
const OF_ONE: (usize, usize) = (320, TEXT);

/// How much of that is reserved for the operator's text, beside the provisioner's.
const OURS: usize = 256;

/// State of a lost machine: it was deployed for a host, and the set no longer has it.
const GONE: &str = "gone";
/// State of a machine that is deployed and not powered on yet.
pub(crate) const POWERING_ON: &str = "powering on";

/// Returns the status step, if the status changes.
pub(crate) fn step<P: Provisioner>(
    seen: &Observed,
    evaluated: &Evaluated<'_, P>,
    rejected: Option<&RejectedWrite>,
    now: Timestamp,
) -> Option<Write> {
    let all = &evaluated.hosts;
    let matters = |words: usize| -> Vec<HostIssue<'_>> {
        all.iter().filter_map(|it| matter(seen, it, words)).collect()
    };
    let most = OF_ONE.1 - OURS;
    let whole_words = matters(most);
    let words = of_one(&whole_words) - OURS;
    // Texts are shortened only if many hosts have errors.
    let matters = if words == most { whole_words } else { matters(words) };
    let (provisioned, up_to_date) = if seen.sees_machines() {
        let n_wanted = all.iter().filter(|it| it.desired.is_some()).count();
        let done: Vec<(&str, bool)> = all.iter().filter_map(is_current).collect();
        let old: Vec<&str> = done.iter().filter(|it| !it.1).map(|it| it.0).collect();
        (provisioned(seen, (done.len(), n_wanted), &matters), up_to_date(seen, &old))
    } else {
        (unknown(PROVISIONED), unknown(UP_TO_DATE))
    };
    let drafts = vec![input(seen, &evaluated.faults), P::server(seen), provisioned];
    let hosts = entries(seen, all, &matters, words);
    let drive = |it: &Host<'_, P>| Some((it.name.clone(), it.drive.as_ref()?.digest(&seen.keys)));
    let drives = all.iter().filter_map(drive).collect();
    whole(seen, drafts, up_to_date, (hosts, &drives), rejected, now)
}

/// Returns a host that needs no further step, and whether it has the present config drive.
fn is_current<'a, P: Provisioner>(host: &'a Host<'_, P>) -> Option<(&'a str, bool)> {
    let HostState::At(_, next) = &host.state else { return None };
    Some((&host.name, P::is_current(next)?))
}

/// Returns what keeps a host from being ready, with at most `words` bytes of the provisioner's text;
/// `None` if nothing does.
fn matter<'a, P: Provisioner>(
    seen: &Observed,
    host: &'a Host<'_, P>,
    words: usize,
) -> Option<HostIssue<'a>> {
    let problem = match &host.state {
        HostState::Kept(machine) if host.desired.is_none() => {
            Problem::new(&reasons::HOST_IN_USE, in_use(&host.name, &P::title(machine)))
        }
        HostState::Unseen | HostState::Kept(_) | HostState::Without(None) | HostState::Released => {
            return None;
        }
        HostState::Faulty(_) => {
            let texts: Vec<&str> = host.faults.iter().map(|it| it.message.as_str()).collect();
            Problem::new(&reasons::INPUT_MISSING, first_texts(&texts, "; "))
        }
        HostState::Without(Some(problem)) | HostState::Lost(problem) => problem.clone(),
        HostState::At(machine, next) => P::matter(seen, host, (machine, next), words)?,
    };
    Some(HostIssue { host: &host.name, problem })
}

/// Returns the status entries of the hosts. Entries that cannot be updated now are kept.
fn entries<P: Provisioner>(
    seen: &Observed,
    hosts: &[Host<'_, P>],
    matters: &[HostIssue<'_>],
    words: usize,
) -> BTreeMap<String, HostStatus> {
    if seen.lacks_metal3() {
        return seen.set.status.iter().flat_map(|it| it.baremetal_hosts.clone()).collect();
    }
    let limit = of_one(matters);
    let worries: BTreeMap<&str, &HostIssue<'_>> =
        matters.iter().filter(|it| it.worries()).map(|it| (it.host, it)).collect();
    let entry = |host: &Host<'_, P>| {
        let mut entry = entry(seen, host, words)?;
        if !matches!(host.state, HostState::Unseen) {
            let worry = worries.get(host.name.as_str());
            entry.error = worry.map(|it| truncated(&it.problem.message, limit));
            entry.needs_human = worry.is_some_and(|it| it.problem.needs_human());
        }
        let is_kept = matches!(host.state, HostState::Kept(_))
            || (seen.is_of_ironic() && seen.is_taken_out_by_hand(&host.name));
        entry.annotated_for_deletion = host.desired.is_none() && !is_kept;
        Some((host.name.clone(), entry))
    };
    hosts.iter().filter_map(entry).collect()
}

/// Returns a host's entry without its error; `None` for a removed host whose machine is given back.
fn entry<P: Provisioner>(seen: &Observed, host: &Host<'_, P>, words: usize) -> Option<HostStatus> {
    let reported = seen.set.host_status(&host.name);
    let blank = || {
        // Metal3 tells installations apart by their start.
        let instance = seen.is_of_ironic().then(|| host.instance.clone());
        HostStatus { instance, ..HostStatus::unassigned(&host.name) }
    };
    let at = |machine, next| P::entry(seen, host, (machine, next), blank(), words);
    let entry = match &host.state {
        HostState::Released => return None,
        HostState::Unseen => reported.cloned().unwrap_or_else(blank),
        HostState::Without(_) | HostState::Faulty(None) => blank(),
        HostState::Lost(_) => {
            let mut entry = reported.cloned().unwrap_or_else(blank);
            // Metal3 does not know what Ironic said of a machine before.
            if seen.is_of_ironic() {
                entry.failure = None;
            }
            let state = GONE.into();
            HostStatus { provisioning_state: state, powered_off: false, is_current: None, ..entry }
        }
        HostState::Faulty(Some(machine)) | HostState::Kept(machine) => at(machine, None),
        HostState::At(machine, next) => at(machine, Some(next)),
    };
    // A removed host's machine keeps its address until it is given back.
    let kept = || reported.map(|it| it.ip_addresses.clone()).unwrap_or_default();
    Some(HostStatus { ip_addresses: host.desired.map_or_else(kept, ip_addresses), ..entry })
}

/// Returns the status step from all conditions that `Ready` depends on, the condition on config
/// drives, and the hosts.
fn whole(
    seen: &Observed,
    mut drafts: Vec<ConditionDraft>,
    up_to_date: ConditionDraft,
    (mut hosts, drives): (BTreeMap<String, HostStatus>, &Inputs),
    rejected: Option<&RejectedWrite>,
    now: Timestamp,
) -> Option<Write> {
    let set = &*seen.set;
    let observed = set.status.as_ref();
    drafts.extend(rejected_write::condition(rejected, set.conditions(), false));
    let good = reasons::READY.condition(READY, "Each host has a machine that runs.");
    drafts.extend([conditions::ready(&drafts, good), up_to_date]);
    let generation = set.metadata.generation;
    for (name, drive) in drives {
        // The digest noted on the machine stays as it is there; the status has it with the present
        // key.
        let noted = hosts.get_mut(name).and_then(|it| it.config_drive_hash.as_mut());
        if let Some(noted) = noted.filter(|it| drive.is(it)) {
            let reported = seen.set.host_status(name).and_then(|it| it.config_drive_hash.as_ref());
            *noted = drive.kept(reported.or(Some(noted)));
        }
    }
    let desired = BaremetalSetStatus {
        observed_generation: generation,
        conditions: merge_conditions(set.conditions(), drafts, generation, now),
        baremetal_hosts: hosts,
        applied: seen.applied().cloned(),
    };
    let (mut renewed, mut renewal) = (desired.clone(), Renewal::default());
    for (name, host) in &mut renewed.baremetal_hosts {
        if let Some(drive) = drives.get(name) {
            renewal.of_some(host.config_drive_hash.as_mut(), drive);
        }
    }
    let way_on = "A machine gets a new config drive when it is redeployed.";
    renewal.step(Target::of(set), observed, (&desired, &renewed), way_on)
}

/// What keeps a host from being ready.
struct HostIssue<'a> {
    host: &'a str,
    problem: Problem,
}

/// Reports what is missing or wrong of what the hosts are made from.
fn input(seen: &Observed, faults: &[Problem]) -> ConditionDraft {
    if seen.lacks_metal3() {
        let text = "spec.provisioner: the cluster has no Metal3, because it lacks the kind \
                    BareMetalHost of metal3.io; install Metal3, or set spec.provisioner to ironic, \
                    and set its endpoint in spec.ironic.";
        return reasons::PROVISIONER_NOT_FOUND.condition(INPUT_READY, text);
    }
    let lack = match &seen.machines {
        Err(Unseen::NoSecret { path, name, keys }) => {
            Some(format!("{path}: \"{name}\" {NO_SECRET}; create it, with {keys}"))
        }
        Ok(_) | Err(Unseen::NotAsked | Unseen::NotYet | Unseen::Error(_)) => None,
    };
    let texts: Vec<&str> =
        lack.iter().chain(faults.iter().map(|it| &it.message)).map(String::as_str).collect();
    let message = format!("{}.", first_texts(&texts, "; "));
    if texts.is_empty() {
        let text = "Everything that the hosts are made from is there.";
        reasons::INPUT_COMPLETE.condition(INPUT_READY, text)
    } else if lack.is_some() || faults.iter().all(|it| *it.reason == reasons::SECRET_NOT_FOUND) {
        reasons::SECRET_NOT_FOUND.condition(INPUT_READY, message)
    } else {
        reasons::INVALID_INPUT.condition(INPUT_READY, message)
    }
}

/// Joins the first few texts and counts the rest.
fn first_texts(texts: &[&str], between: &str) -> String {
    let first = texts.iter().take(NAMED).map(|it| (*it).to_owned()).collect();
    join_with_more(first, between, texts.len().saturating_sub(NAMED))
}

/// Returns the condition for unknown machines.
fn unknown(type_: &str) -> ConditionDraft {
    let text = format!("The state of the machines is unknown: see {SERVER_READY}.");
    reasons::MACHINES_UNKNOWN.condition(type_, text)
}

/// Returns why a set that is being deleted gives nothing back.
fn needed(seen: &Observed) -> String {
    let holders: Vec<&str> = seen.holders().collect();
    format!(
        "The set is being deleted, and its machines are kept while it is held by these finalizers: \
         {}. They are released when no finalizer is left: delete what uses the machines first.",
        first_names(&holders, NAMED)
    )
}

/// Reports how many hosts are ready, and the worst causes of the others.
fn provisioned(
    seen: &Observed,
    (n_done, n_wanted): (usize, usize),
    matters: &[HostIssue<'_>],
) -> ConditionDraft {
    let count = format!("{n_done} of {n_wanted} hosts have a machine that runs.");
    let severity = |it: &&HostIssue<'_>| it.problem.reason.severity;
    let worst = matters.iter().min_by_key(severity);
    if seen.is_needed() && worst.is_none_or(|it| !it.worries()) {
        return reasons::DELETION_WAITS.condition(PROVISIONED, needed(seen));
    }
    let Some(worst) = worst else {
        return reasons::PROVISIONED.condition(PROVISIONED, count);
    };
    let alike = matters.iter().filter(|it| severity(it) == severity(&worst));
    let texts: Vec<String> =
        alike.map(|it| format!("Host {}: {}.", it.host, it.problem.message)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let message = format!("{count} {}", first_texts(&texts, " "));
    worst.problem.reason.condition(PROVISIONED, message)
}

/// Reports hosts that run with another config drive than the present one.
fn up_to_date(seen: &Observed, old: &[&str]) -> ConditionDraft {
    if old.is_empty() {
        let text = "All machines run with their current config drives.";
        return reasons::UP_TO_DATE.condition(UP_TO_DATE, text);
    }
    let text = format!(
        "The inputs of the config drives of these hosts have changed since they were deployed: {}. \
         Nothing is done automatically, because a machine gets them only by redeployment, which \
         overwrites its disk: {}.",
        first_names(old, NAMED),
        anew(seen, "a host")
    );
    reasons::CONFIG_DRIVE_CHANGED.condition(UP_TO_DATE, text)
}

/// Returns the size limit of each host's problem, in bytes.
fn of_one(matters: &[HostIssue<'_>]) -> usize {
    let n_worrying = matters.iter().filter(|it| it.worries()).count();
    let (least, most) = OF_ONE;
    (ERRORS / n_worrying.max(1)).clamp(least, most)
}

impl HostIssue<'_> {
    fn worries(&self) -> bool {
        self.problem.reason.severity != Some(Severity::Info)
    }
}

/// Returns a host's addresses by network.
fn ip_addresses(desired: &BaremetalHost) -> BTreeMap<String, String> {
    let address = desired.ctl_plane_ip.iter().filter(|it| !it.is_empty());
    address.map(|it| (CTLPLANE.to_owned(), it.clone())).collect()
}
