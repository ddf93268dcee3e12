//! The status of a set whose machines Ironic provisions, from what was evaluated.

use std::collections::BTreeMap;

use api::baremetal::{Failure, HostStatus};
use api::conditions::{ConditionDraft, Severity, truncated};
use ironic::{Cause, DeployRecord, Error, Next, Node, State, Step, Verb, deployment};
use jiff::Timestamp;
use operator_core::plan::Step as Write;
use operator_core::rejected_write::RejectedWrite;

use crate::backoff::Refused;
use crate::ironic::hosts::{EvaluatedHost, GONE, Host, HostState, POWERING_ON};
use crate::ironic::remediation::{gone, in_use, next_step, remedy, retained};
use crate::observe::{Observed, Unseen};
use crate::status::SERVER_READY;
use crate::status::UP_TO_DATE;
use crate::status::{
    Matter, OF_ONE, input_of, ip_addresses, of_one, provisioned_of, status_of, unknown,
    up_to_date_of, whole, worries,
};
use crate::status::{OURS, PROVISIONED};

/// Returns the status step, if the status changes.
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
    // Texts are shortened only if many hosts have errors.
    let matters = if words == most { whole_words } else { matters(words) };
    let drafts = vec![input(seen, evaluated), server(seen), provisioned(seen, evaluated, &matters)];
    let hosts = hosts(seen, evaluated, &matters, words);
    let drive = |it: &Host<'_>| Some((it.name.clone(), it.drive.as_ref()?.digest(&seen.keys)));
    let drives = evaluated.hosts.iter().filter_map(drive).collect();
    whole(seen, drafts, up_to_date(seen, evaluated), (hosts, &drives), rejected, now)
}

/// Returns what keeps a host from being ready, with at most `words` bytes of Ironic's text; `None`
/// if nothing does.
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

/// Returns the severity of an error. Errors that only require waiting are informational.
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

/// Returns the status entries of the hosts. Entries that cannot be updated now are kept.
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

/// Returns the node with at most `words` bytes of Ironic's errors, including a recorded failure
/// that Ironic has cleared since.
fn explained(node: &Node, reported: Option<&HostStatus>, words: usize) -> Node {
    let said = failure(node, reported, words).map(|it| it.said);
    let last_error = said.or_else(|| node.last_error.as_ref().map(|it| truncated(it, words)));
    let maintenance_reason = node.maintenance_reason.as_ref().map(|it| truncated(it, words));
    Node { last_error, maintenance_reason, ..node.clone() }
}

/// Returns Ironic's error in the machine's present state; `reported` is the previous status entry.
/// Errors of deployed machines are skipped, because errors about their power change without a state
/// change.
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

/// Returns a host's entry without its error; `None` for a removed host whose machine is given back.
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
        // Undeployed while the network of its ramdisk is still to be removed, or undeploying
        // failed.
        HostState::At(node, _) if !node.is_of(&host.instance) && host.desired.is_none() => {
            let entry = at(node, node.provision_state.word(), reported, blank(), words);
            HostStatus { instance: blank().instance, ..entry }
        }
        // Chosen but not reserved yet; another host may have taken it.
        HostState::At(node, _) if !node.is_of(&host.instance) => blank(),
        HostState::At(node, next) => {
            let is_off = node.provision_state == State::Active
                && host.desired.is_some()
                && !matches!(next, Next::Done { .. });
            let state = if is_off { POWERING_ON } else { node.provision_state.word() };
            HostStatus { is_current: is_current(host), ..at(node, state, reported, blank(), words) }
        }
    };
    // A removed host's machine keeps its address until it is given back.
    let kept = || reported.map(|it| it.ip_addresses.clone()).unwrap_or_default();
    Some(HostStatus { ip_addresses: host.desired.map_or_else(kept, ip_addresses), ..entry })
}

/// Returns whether a deployed machine has the present config drive; `None` for a host with faults.
fn is_current(host: &Host<'_>) -> Option<bool> {
    let HostState::At(_, Next::Done { is_current }) = host.state else { return None };
    let is_known = host.drive.is_some() || host.desired.is_some_and(|it| it.adopt);
    is_known.then_some(is_current)
}

/// Returns the entry of a host with that machine; `reported` is the previous entry.
fn at(
    node: &Node,
    state: &str,
    reported: Option<&HostStatus>,
    blank: HostStatus,
    words: usize,
) -> HostStatus {
    let reported = reported.filter(|it| it.bmh_ref == node.uuid);
    let has_system = node.provision_state.has_system();
    // A machine that is being undeployed keeps running if that fails.
    let may_have = !node.provision_state.is_undeployed() || node.provision_state == State::Deleting;
    let ledger = DeployRecord::of(node);
    // Removing the record from a running machine does not mean that it was deployed again.
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
