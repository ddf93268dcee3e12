//! What a set says: of each host, and of all of them.

use std::collections::BTreeMap;

use api::baremetal::{BaremetalHost, BaremetalSetStatus, Failure, HostStatus};
use api::conditions::{
    self, ConditionDraft, READY, Severity, first_names, merge_conditions, truncated,
};
use ironic::{Cause, DeployRecord, Error, Next, Node, State, Step, Verb, deployment};
use jiff::Timestamp;
use operator_core::keyed::{Inputs, Renewal};
use operator_core::plan::{Step as Write, Target};
use operator_core::rejected_write::{self, RejectedWrite};

use crate::backoff::Refused;
use crate::ironic::hosts::{EvaluatedHost, GONE, Host, HostState, POWERING_ON};
use crate::ironic::remediation::{anew, gone, in_use, next_step, remedy, retained};
use crate::observe::{Observed, Unseen};

/// How long what a set says of a machine may be, in bytes.
pub const TEXT: usize = 768;

/// Whoever provisions the machines answers.
pub const SERVER_READY: &str = "OpenStackBaremetalSetProvServerReady";
/// Each host has a machine that runs.
pub const PROVISIONED: &str = "OpenStackBaremetalSetBmhProvisioningReady";
/// Everything that hosts are made from is there and can be used.
pub const INPUT_READY: &str = "InputReady";
/// The machines were deployed with the present config drives; it does not affect Ready.
pub const UP_TO_DATE: &str = "UpToDate";

/// How many of a kind a message names.
const NAMED: usize = 3;
/// How much all hosts together say of errors, in bytes: a status has a bound.
const ERRORS: usize = 64 * 1024;
/// How much one host says of its error at least, and at most.
const OF_ONE: (usize, usize) = (320, TEXT);
/// How much of that is left to what is ours to say, beside Ironic's words.
const OURS: usize = 256;
/// The network under which a host's only address stands.
const CTLPLANE: &str = "ctlplane";

/// The status step, where the status says something else.
pub fn step(
    seen: &Observed,
    evaluated: &EvaluatedHost<'_>,
    rejected: Option<&RejectedWrite>,
    now: Timestamp,
) -> Option<Write> {
    let matters = |words: usize| -> Vec<Matter<'_>> {
        evaluated.hosts.iter().filter_map(|it| matter(seen, it, words)).collect()
    };
    let most = OF_ONE.1 - OURS;
    let whole_words = matters(most);
    let words = of_one(&whole_words) - OURS;
    // Only of many is less told than of one.
    let matters = if words == most { whole_words } else { matters(words) };
    let drafts = vec![input(seen, evaluated), server(seen), provisioned(seen, evaluated, &matters)];
    let hosts = hosts(seen, evaluated, &matters, words);
    let drive = |it: &Host<'_>| Some((it.name.clone(), it.drive.as_ref()?.digest(&seen.keys)));
    let drives = evaluated.hosts.iter().filter_map(drive).collect();
    whole(seen, drafts, up_to_date(seen, evaluated), (hosts, &drives), rejected, now)
}

/// The status step of what was found: all that Ready depends on, whether machines are up to date, and the
/// hosts.
pub(super) fn whole(
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
        // What is noted on the machine stays as it was noted; here it goes by the present key.
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

/// What keeps a host from being done.
pub(super) struct Matter<'a> {
    pub(super) host: &'a str,
    pub(super) severity: Severity,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// What keeps a host from being done, with so many bytes of Ironic's words.
fn matter<'a>(seen: &Observed, host: &'a Host<'_>, words: usize) -> Option<Matter<'a>> {
    use Severity::{Error, Info, Warning};
    let of = |severity, reason, message| {
        Some(Matter { host: host.name.as_str(), severity, reason, message })
    };
    match &host.state {
        HostState::Kept(node) if host.desired.is_none() => {
            of(Warning, "HostInUse", in_use(&host.name, node.title()))
        }
        HostState::Unseen | HostState::Kept(_) | HostState::Released => None,
        HostState::Faulty(_) => {
            let texts: Vec<&str> = host.faults.iter().map(|it| it.text.as_str()).collect();
            of(Error, "InputMissing", status_of(&texts, "; "))
        }
        HostState::Without(none) => {
            of(Warning, "NoMachine", format!("{none}; {}", remedy(seen, host, none)))
        }
        HostState::Lost(uuid, node) => of(Error, "MachineGone", gone(seen, host, uuid, *node)),
        HostState::At(node, next) => {
            let refused = seen.refused.get(&node.uuid).filter(|_| matches!(next, Next::Do(_)));
            if let Some(Refused { error, .. }) = refused {
                let text = format!("machine {}: {error}; {}", node.title(), next_step(error));
                return of(severity_of(error), error.reason(), text);
            }
            let reported = seen.set.told(&host.name);
            let message = |it: &Cause| it.message(&explained(node, reported, words));
            match next {
                Next::Done { .. } => None,
                Next::Do(Step::Unreserve(_)) if node.provision_state.has_system() => {
                    of(Warning, "MachineRetained", retained(seen, &host.name, node.title()))
                }
                Next::Do(step) => of(Info, Cause::Working.reason(), doing(node, step)),
                Next::Wait { cause, .. } => {
                    let is_fine = matches!(cause, Cause::Working | Cause::Locked);
                    let severity = if is_fine { Info } else { Warning };
                    of(severity, cause.reason(), message(cause))
                }
                Next::Stop(cause) => of(Error, cause.reason(), message(cause)),
            }
        }
    }
}

fn doing(node: &Node, step: &Step) -> String {
    let name = node.title();
    match step {
        Step::Reserve(_) => format!("machine {name} is reserved"),
        Step::Record(_) | Step::Deploy => format!("machine {name} is about to be deployed"),
        Step::Tell(verb) => {
            let end = match verb {
                Verb::Manage => "managed",
                Verb::Provide => "made available",
                Verb::Active => "deployed",
                Verb::Adopt => "adopted",
                Verb::Deleted => "undeployed",
            };
            format!("machine {name} is about to be {end}")
        }
        Step::PowerOn => format!("machine {name} is powered on"),
        Step::Unreserve(_) => format!("machine {name} is given up"),
    }
}

/// Who is told to wait is not worried about.
fn severity_of(error: &Error) -> Severity {
    match error {
        Error::Conflict(_) | Error::Busy(_) | Error::NotFound => Severity::Info,
        Error::Unreachable(_) | Error::Broken(..) => Severity::Warning,
        Error::NotUrl
        | Error::Untrusted(_)
        | Error::NotIronic
        | Error::TooLarge(_)
        | Error::Version { .. }
        | Error::Unauthorized
        | Error::Forbidden(_)
        | Error::Credentials(_)
        | Error::Refused(_) => Severity::Error,
    }
}

fn input(seen: &Observed, evaluated: &EvaluatedHost<'_>) -> ConditionDraft {
    let mut texts: Vec<&str> = Vec::new();
    let lack = match &seen.machines {
        Err(Unseen::NoSecret { path, name, keys }) => {
            Some(format!("{path}: \"{name}\" is no Secret there; make it, with {keys}"))
        }
        Ok(_) | Err(Unseen::NotAsked | Unseen::NotYet | Unseen::Error(_)) => None,
    };
    texts.extend(lack.as_deref());
    texts.extend(evaluated.faults.iter().map(|it| it.text.as_str()));
    let is_missing = lack.is_some() || evaluated.faults.iter().all(|it| it.is_missing);
    input_of(&texts, is_missing)
}

/// What is wrong with what the hosts are made from; whether it goes when Secrets appear.
pub(super) fn input_of(texts: &[&str], is_missing: bool) -> ConditionDraft {
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

/// The first few texts, and how many more there are.
pub(super) fn status_of(texts: &[&str], between: &str) -> String {
    let first = texts.iter().take(NAMED).copied().collect::<Vec<_>>().join(between);
    match texts.len().checked_sub(NAMED) {
        None | Some(0) => first,
        Some(more) => format!("{first}{between}and {more} more"),
    }
}

fn server(seen: &Observed) -> ConditionDraft {
    let endpoint = seen.set.spec.ironic.as_ref().map(|it| it.endpoint.as_str()).unwrap_or_default();
    match &seen.machines {
        Ok(_) => ConditionDraft::good(
            SERVER_READY,
            "Answering",
            format!("Ironic answers at {endpoint}."),
        ),
        Err(Unseen::NotAsked | Unseen::NotYet | Unseen::NoSecret { .. }) => {
            let text = "Ironic is not asked before the Secret is there that InputReady tells of.";
            ConditionDraft::unknown(SERVER_READY, "InputMissing", text)
        }
        Err(Unseen::Error(error)) => {
            let text = format!("{error}, at {endpoint}: {}.", next_step(error));
            if error.heals() {
                ConditionDraft::warning(SERVER_READY, error.reason(), text)
            } else {
                ConditionDraft::error(SERVER_READY, error.reason(), text)
            }
        }
    }
}

/// Where nothing is known of machines.
pub(super) fn unknown(type_: &str) -> ConditionDraft {
    let text = format!("Nothing is known of the machines: see {SERVER_READY}.");
    ConditionDraft::unknown(type_, "MachinesUnknown", text)
}

fn provisioned(
    seen: &Observed,
    evaluated: &EvaluatedHost<'_>,
    matters: &[Matter<'_>],
) -> ConditionDraft {
    if seen.machines.is_err() {
        return unknown(PROVISIONED);
    }
    let n_wanted = evaluated.hosts.iter().filter(|it| it.desired.is_some()).count();
    let n_done = evaluated.hosts.iter().filter(|it| is_done(it)).count();
    provisioned_of(seen, (n_done, n_wanted), matters)
}

/// How many hosts are done, and the worst of what keeps others from it.
pub(super) fn provisioned_of(
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

/// Why a set that is being deleted gives nothing back.
fn needed(seen: &Observed) -> String {
    let holders: Vec<&str> = seen.holders().collect();
    format!(
        "The set is being deleted, and its machines stay as they are while others hold it, by these \
         finalizers: {}. They are given back once nobody holds it: delete what the machines are for \
         first.",
        first_names(&holders, NAMED)
    )
}

fn is_done(host: &Host<'_>) -> bool {
    host.desired.is_some() && matches!(host.state, HostState::At(_, Next::Done { .. }))
}

fn up_to_date(seen: &Observed, evaluated: &EvaluatedHost<'_>) -> ConditionDraft {
    if seen.machines.is_err() {
        return unknown(UP_TO_DATE);
    }
    let is_old =
        |it: &&Host<'_>| matches!(it.state, HostState::At(_, Next::Done { is_current: false }));
    let old: Vec<&str> = evaluated.hosts.iter().filter(is_old).map(|it| it.name.as_str()).collect();
    up_to_date_of(seen, &old)
}

/// Whether hosts run with another drive than the present one.
pub(super) fn up_to_date_of(seen: &Observed, old: &[&str]) -> ConditionDraft {
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

/// The hosts; what cannot be seen stays as it was.
fn hosts(
    seen: &Observed,
    evaluated: &EvaluatedHost<'_>,
    matters: &[Matter<'_>],
    words: usize,
) -> BTreeMap<String, HostStatus> {
    let worries = worries(matters);
    let entry = |host: &Host<'_>| {
        let mut entry = entry(seen, host, words)?;
        if !matches!(host.state, HostState::Unseen) {
            let worry = worries.get(host.name.as_str());
            entry.error = worry.map(|it| it.text.clone());
            entry.needs_human = worry.is_some_and(|it| it.needs_human);
        }
        let is_by_hand = seen.is_taken_out_by_hand(&host.name);
        entry.annotated_for_deletion = host.desired.is_none() && !is_by_hand;
        Some((host.name.clone(), entry))
    };
    evaluated.hosts.iter().filter_map(entry).collect()
}

/// What worries a human about a host, trimmed.
pub(super) struct Worry {
    pub(super) text: String,
    pub(super) needs_human: bool,
}

/// What worries a human, by host: all together have a bound.
pub(super) fn worries<'a>(matters: &[Matter<'a>]) -> BTreeMap<&'a str, Worry> {
    let limit = of_one(matters);
    let worry = |it: &Matter<'_>| Worry {
        text: truncated(&it.message, limit),
        needs_human: it.severity == Severity::Error,
    };
    matters.iter().filter(|it| it.worries()).map(|it| (it.host, worry(it))).collect()
}

/// How much each host says of what worries a human, in bytes.
fn of_one(matters: &[Matter<'_>]) -> usize {
    let n_worrying = matters.iter().filter(|it| it.worries()).count();
    let (least, most) = OF_ONE;
    (ERRORS / n_worrying.max(1)).clamp(least, most)
}

impl Matter<'_> {
    fn worries(&self) -> bool {
        self.severity != Severity::Info
    }
}

/// A machine with so many bytes of what Ironic said of its failure, also where that was taken back since.
fn explained(node: &Node, reported: Option<&HostStatus>, words: usize) -> Node {
    let said = failure(node, reported, words).map(|it| it.said);
    let last_error = said.or_else(|| node.last_error.as_ref().map(|it| truncated(it, words)));
    let maintenance_reason = node.maintenance_reason.as_ref().map(|it| truncated(it, words));
    Node { last_error, maintenance_reason, ..node.clone() }
}

/// What Ironic said of a failure in the machine's present state; `told` is what was said of the host
/// before. What a machine that is deployed says of its power changes without another state.
fn failure(node: &Node, reported: Option<&HostStatus>, words: usize) -> Option<Failure> {
    let since =
        node.provision_updated_at.as_ref().filter(|_| node.provision_state != State::Active)?;
    let said = node.last_error.as_deref().map(str::trim).filter(|it| !it.is_empty());
    let before = || {
        let reported = reported.filter(|it| it.bmh_ref == node.uuid)?.failure.as_ref();
        reported.filter(|it| it.since == *since).map(|it| it.said.clone())
    };
    let said = said.map(str::to_owned).or_else(before)?;
    Some(Failure { said: truncated(&said, words), since: since.clone() })
}

/// A host's entry but for its error; none of one that was taken out and is gone.
fn entry(seen: &Observed, host: &Host<'_>, words: usize) -> Option<HostStatus> {
    let reported = seen.set.told(&host.name);
    let blank = || {
        let instance = Some(host.instance.clone());
        HostStatus { instance, ..HostStatus::unassigned(&host.name) }
    };
    let entry = match &host.state {
        HostState::Released => return None,
        HostState::Unseen => reported.cloned().unwrap_or_else(blank),
        HostState::Without(_) | HostState::Faulty(None) => blank(),
        HostState::Lost(..) => {
            let reported = reported.cloned().unwrap_or_else(blank);
            let provisioning_state = GONE.into();
            HostStatus { provisioning_state, is_current: None, failure: None, ..reported }
        }
        HostState::Faulty(Some(node)) | HostState::Kept(node) => {
            at(node, node.provision_state.word(), reported, blank(), words)
        }
        // Undeployed, and its ramdisk's network still to be taken off; or it could not be undeployed.
        HostState::At(node, _) if !node.is_of(&host.instance) && host.desired.is_none() => {
            let entry = at(node, node.provision_state.word(), reported, blank(), words);
            HostStatus { instance: blank().instance, ..entry }
        }
        // Chosen, and maybe another one's by now.
        HostState::At(node, _) if !node.is_of(&host.instance) => blank(),
        HostState::At(node, next) => {
            let is_off = node.provision_state == State::Active
                && host.desired.is_some()
                && !matches!(next, Next::Done { .. });
            let state = if is_off { POWERING_ON } else { node.provision_state.word() };
            HostStatus { is_current: is_current(host), ..at(node, state, reported, blank(), words) }
        }
    };
    // Its machine answers there until it is given back.
    let kept = || reported.map(|it| it.ip_addresses.clone()).unwrap_or_default();
    Some(HostStatus { ip_addresses: host.desired.map_or_else(kept, ip_addresses), ..entry })
}

/// A host's addresses by network.
pub(super) fn ip_addresses(desired: &BaremetalHost) -> BTreeMap<String, String> {
    let address = desired.ctl_plane_ip.iter().filter(|it| !it.is_empty());
    address.map(|it| (CTLPLANE.to_owned(), it.clone())).collect()
}

/// Whether a machine that is done was deployed with the present drive; a host with faults has none.
fn is_current(host: &Host<'_>) -> Option<bool> {
    let HostState::At(_, Next::Done { is_current }) = host.state else { return None };
    let is_known = host.drive.is_some() || host.desired.is_some_and(|it| it.adopt);
    is_known.then_some(is_current)
}

/// The entry of a host that has that machine; `told` is what was said of the host before.
fn at(
    node: &Node,
    state: &str,
    reported: Option<&HostStatus>,
    blank: HostStatus,
    words: usize,
) -> HostStatus {
    let reported = reported.filter(|it| it.bmh_ref == node.uuid);
    let has_system = node.provision_state.has_system();
    // What is being undeployed runs on if that fails.
    let may_have = !node.provision_state.is_undeployed() || node.provision_state == State::Deleting;
    let ledger = DeployRecord::of(node);
    // Who takes the note off a machine that runs has not deployed it again.
    let kept =
        reported.filter(|_| has_system && ledger.is_none()).and_then(|it| it.instance.clone());
    let is_deployed = node.provision_state == State::Active;
    let drive = ledger.filter(|it| is_deployed && !it.is_of_adopted());
    HostStatus {
        bmh_ref: node.uuid.clone(),
        provisioning_state: state.to_owned(),
        instance: kept.or_else(|| deployment(node)),
        config_drive_hash: drive.map(|it| it.drive),
        installed: has_system || (may_have && reported.is_some_and(|it| it.installed)),
        failure: failure(node, reported, words),
        ..blank
    }
}
