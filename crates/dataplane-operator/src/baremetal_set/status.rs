//! What a set says: of each host, and of all of them.

use std::collections::BTreeMap;

use common::api::baremetal::{BaremetalHost, BaremetalSetStatus, HostStatus, UNASSIGNED};
use common::conditions::{self, Finding, READY, Severity, settle, some, trimmed};
use common::plan::{Step as Write, Target, status_step};
use common::refusal::{self, Refusal};
use ironic::{Cause, Error, Ledger, Next, Node, State, Step, Verb};
use jiff::Timestamp;

use crate::baremetal_set::hosts::{GONE, Host, Judged, POWERING_ON, Standing};
use crate::baremetal_set::observe::{Observed, Unseen};

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
const OF_ONE: (usize, usize) = (128, 768);
/// The network under which a host's only address stands.
const CTLPLANE: &str = "ctlplane";

/// The status step, where the status says something else.
pub fn step(
    seen: &Observed,
    judged: &Judged<'_>,
    refusal: Option<&Refusal>,
    now: Timestamp,
) -> Option<Write> {
    let matters: Vec<Matter<'_>> = judged.hosts.iter().filter_map(|it| matter(seen, it)).collect();
    let findings = vec![input(seen, judged), server(seen), provisioned(seen, judged, &matters)];
    let hosts = hosts(seen, judged, &matters);
    whole(seen, findings, up_to_date(seen, judged), hosts, refusal, now)
}

/// The status step of what was found: all that Ready depends on, whether machines are up to date, and the
/// hosts.
pub(super) fn whole(
    seen: &Observed,
    mut findings: Vec<Finding>,
    up_to_date: Finding,
    hosts: BTreeMap<String, HostStatus>,
    refusal: Option<&Refusal>,
    now: Timestamp,
) -> Option<Write> {
    let set = &*seen.set;
    let observed = set.status.as_ref();
    let previous = observed.map(|it| it.conditions.clone()).unwrap_or_default();
    findings.extend(refusal::finding(refusal, &previous, false));
    let good = Finding::good(READY, "Ready", "Each host has a machine that runs.");
    let ready = conditions::ready(&findings, good);
    findings.extend(conditions::kstatus(&ready));
    findings.extend([ready, up_to_date]);
    let generation = set.metadata.generation;
    let wanted = BaremetalSetStatus {
        observed_generation: generation,
        conditions: settle(&previous, findings, generation, now),
        baremetal_hosts: hosts,
    };
    let next = wanted.conditions.clone();
    status_step(Target::of(set), observed, &wanted, &previous, &next)
}

/// What keeps a host from being done.
pub(super) struct Matter<'a> {
    pub(super) host: &'a str,
    pub(super) severity: Severity,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

fn matter<'a>(seen: &Observed, host: &'a Host<'_>) -> Option<Matter<'a>> {
    use Severity::{Error, Info, Warning};
    let of = |severity, reason, message| {
        Some(Matter { host: host.name.as_str(), severity, reason, message })
    };
    match &host.standing {
        Standing::Unseen | Standing::Released => None,
        Standing::Faulty(_) => {
            of(Info, "InputMissing", "waits until what InputReady tells of is corrected".into())
        }
        Standing::Without(none) => of(Warning, "NoMachine", none.to_string()),
        Standing::Lost(uuid, node) => of(Error, "MachineGone", gone(&host.name, uuid, *node)),
        Standing::At(node, next) => {
            if let Some(error) = seen.refused.get(&host.name) {
                let text = format!("machine {}: {error}; {}", node.title(), next_step(error));
                return of(severity_of(error), error.reason(), text);
            }
            match next {
                Next::Done { .. } => None,
                Next::Do(step) => of(Info, Cause::Working.reason(), doing(node, step)),
                Next::Wait { cause, .. } => {
                    let is_fine = matches!(cause, Cause::Working | Cause::Locked);
                    let severity = if is_fine { Info } else { Warning };
                    of(severity, cause.reason(), cause.message(node))
                }
                Next::Stop(cause) => of(Error, cause.reason(), cause.message(node)),
            }
        }
    }
}

/// A machine that went away while it ran.
fn gone(host: &str, uuid: &str, node: Option<&Node>) -> String {
    let what = match node {
        None => format!("Ironic does not know its machine {uuid} any more"),
        Some(node) => {
            format!("its machine {} runs on and is not reserved for it any more", node.title())
        }
    };
    format!(
        "{what}, so that two could answer at one address if another was taken; make sure that it is \
         off, then take {host} out of spec.baremetalHosts, and put it in again once it is not in \
         status.baremetalHosts"
    )
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
        | Error::Version { .. }
        | Error::Unauthorized
        | Error::Forbidden(_)
        | Error::Credentials(_)
        | Error::Refused(_) => Severity::Error,
    }
}

/// What a human does about an error.
fn next_step(error: &Error) -> &'static str {
    match error {
        Error::NotUrl => "correct spec.ironic.endpoint",
        Error::Unreachable(_) => "check spec.ironic.endpoint and the way there; it is tried again",
        Error::Untrusted(_) => {
            "name a Secret with its authority's certificate in spec.ironic.caSecret"
        }
        Error::NotIronic => "correct spec.ironic.endpoint: it is the API's URL without a version",
        Error::Version { .. } => "use another Ironic, or another release of these operators",
        Error::Unauthorized => "correct the Secret that spec.ironic.secret names",
        Error::Forbidden(_) => "give the user of spec.ironic.secret the role of an administrator",
        Error::Credentials(_) => "correct the Secret",
        Error::NotFound | Error::Conflict(_) | Error::Busy(_) | Error::Broken(..) => {
            "it is tried again"
        }
        Error::Refused(_) => "correct what it names",
    }
}

fn input(seen: &Observed, judged: &Judged<'_>) -> Finding {
    let mut texts: Vec<&str> = Vec::new();
    let lack = match &seen.machines {
        Err(Unseen::NoSecret { path, name, keys }) => {
            Some(format!("{path}: \"{name}\" is no Secret there; make it, with {keys}"))
        }
        Ok(_) | Err(Unseen::NotAsked | Unseen::Error(_)) => None,
    };
    texts.extend(lack.as_deref());
    texts.extend(judged.faults.iter().map(|it| it.text.as_str()));
    let is_missing = lack.is_some() || judged.faults.iter().all(|it| it.is_missing);
    input_of(&texts, is_missing)
}

/// What is wrong with what the hosts are made from; whether it goes when Secrets appear.
pub(super) fn input_of(texts: &[&str], is_missing: bool) -> Finding {
    let message = format!("{}.", shown(texts, "; "));
    match (texts.is_empty(), is_missing) {
        (true, _) => {
            let text = "Everything that the hosts are made from is there.";
            Finding::good(INPUT_READY, "InputComplete", text)
        }
        (false, true) => Finding::error(INPUT_READY, "SecretNotFound", message),
        (false, false) => Finding::error(INPUT_READY, "InvalidInput", message),
    }
}

/// The first few texts, and how many more there are.
fn shown(texts: &[&str], between: &str) -> String {
    let first = texts.iter().take(NAMED).copied().collect::<Vec<_>>().join(between);
    match texts.len().checked_sub(NAMED) {
        None | Some(0) => first,
        Some(more) => format!("{first}{between}and {more} more"),
    }
}

fn server(seen: &Observed) -> Finding {
    let endpoint = seen.set.spec.ironic.as_ref().map(|it| it.endpoint.as_str()).unwrap_or_default();
    match &seen.machines {
        Ok(_) => Finding::good(SERVER_READY, "Answering", format!("Ironic answers at {endpoint}.")),
        Err(Unseen::NotAsked | Unseen::NoSecret { .. }) => {
            let text = "Ironic is not asked before the Secret is there that InputReady tells of.";
            Finding::unknown(SERVER_READY, "InputMissing", text)
        }
        Err(Unseen::Error(error)) => {
            let text = format!("{error}, at {endpoint}: {}.", next_step(error));
            if error.heals() {
                Finding::warning(SERVER_READY, error.reason(), text)
            } else {
                Finding::error(SERVER_READY, error.reason(), text)
            }
        }
    }
}

/// Where nothing is known of machines.
pub(super) fn unknown(type_: &str) -> Finding {
    let text = format!("Nothing is known of the machines: see {SERVER_READY}.");
    Finding::unknown(type_, "MachinesUnknown", text)
}

fn provisioned(seen: &Observed, judged: &Judged<'_>, matters: &[Matter<'_>]) -> Finding {
    if seen.machines.is_err() {
        return unknown(PROVISIONED);
    }
    let n_wanted = judged.hosts.iter().filter(|it| it.wanted.is_some()).count();
    let n_done = judged.hosts.iter().filter(|it| is_done(it)).count();
    provisioned_of(n_done, n_wanted, matters)
}

/// How many hosts are done, and the worst of what keeps others from it.
pub(super) fn provisioned_of(n_done: usize, n_wanted: usize, matters: &[Matter<'_>]) -> Finding {
    let count = format!("{n_done} of {n_wanted} hosts have a machine that runs.");
    let order = |it: &&Matter<'_>| match it.severity {
        Severity::Error => 0,
        Severity::Warning => 1,
        Severity::Info => 2,
    };
    let Some(worst) = matters.iter().min_by_key(order) else {
        return Finding::good(PROVISIONED, "Provisioned", count);
    };
    let alike = matters.iter().filter(|it| order(it) == order(&worst));
    let texts: Vec<String> = alike.map(|it| format!("Host {}: {}.", it.host, it.message)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let message = format!("{count} {}", shown(&texts, " "));
    let of = match worst.severity {
        Severity::Error => Finding::error,
        Severity::Warning => Finding::warning,
        Severity::Info => Finding::waiting,
    };
    of(PROVISIONED, worst.reason, message)
}

fn is_done(host: &Host<'_>) -> bool {
    host.wanted.is_some() && matches!(host.standing, Standing::At(_, Next::Done { .. }))
}

fn up_to_date(seen: &Observed, judged: &Judged<'_>) -> Finding {
    if seen.machines.is_err() {
        return unknown(UP_TO_DATE);
    }
    let is_old =
        |it: &&Host<'_>| matches!(it.standing, Standing::At(_, Next::Done { is_current: false }));
    let old: Vec<&str> = judged.hosts.iter().filter(is_old).map(|it| it.name.as_str()).collect();
    up_to_date_of(&old)
}

/// Whether hosts run with another drive than the present one.
pub(super) fn up_to_date_of(old: &[&str]) -> Finding {
    if old.is_empty() {
        let text = "No machine runs with another config drive than the present one.";
        return Finding::good(UP_TO_DATE, "UpToDate", text);
    }
    let text = format!(
        "What the config drives of these hosts are made from has changed since they were deployed: {}. \
         Nothing is done by itself, for a machine learns it only by being deployed again, which \
         overwrites its disk: take a host out of spec.baremetalHosts, and put it in again once it is \
         not in status.baremetalHosts.",
        some(old, NAMED)
    );
    Finding::waiting(UP_TO_DATE, "ConfigDriveChanged", text)
}

/// The hosts; what cannot be seen stays as it was.
fn hosts(
    seen: &Observed,
    judged: &Judged<'_>,
    matters: &[Matter<'_>],
) -> BTreeMap<String, HostStatus> {
    let errors = errors(matters);
    let entry = |host: &Host<'_>| {
        let mut entry = entry(seen, host)?;
        if !matches!(host.standing, Standing::Unseen) {
            entry.error = errors.get(host.name.as_str()).cloned();
        }
        entry.annotated_for_deletion = host.wanted.is_none();
        Some((host.name.clone(), entry))
    };
    judged.hosts.iter().filter_map(entry).collect()
}

/// What worries a human, by host, trimmed.
pub(super) fn errors<'a>(matters: &[Matter<'a>]) -> BTreeMap<&'a str, String> {
    let worrying: Vec<&Matter<'a>> =
        matters.iter().filter(|it| it.severity != Severity::Info).collect();
    let (least, most) = OF_ONE;
    let limit = (ERRORS / worrying.len().max(1)).clamp(least, most);
    worrying.into_iter().map(|it| (it.host, trimmed(&it.message, limit))).collect()
}

/// A host's entry but for its error; none of one that was taken out and is gone.
fn entry(seen: &Observed, host: &Host<'_>) -> Option<HostStatus> {
    let told = seen.set.status.as_ref().and_then(|it| it.baremetal_hosts.get(&host.name)).cloned();
    let blank = || blank(host);
    let entry = match &host.standing {
        Standing::Released => return None,
        Standing::Unseen => told.unwrap_or_else(blank),
        Standing::Without(_) | Standing::Faulty(None) => blank(),
        Standing::Lost(..) => {
            HostStatus { provisioning_state: GONE.into(), ..told.unwrap_or_else(blank) }
        }
        Standing::Faulty(Some(node)) => at(node, node.provision_state.word(), blank()),
        // Chosen, and maybe another one's by now.
        Standing::At(node, _) if !node.is_of(&host.instance) => blank(),
        Standing::At(node, next) => {
            let is_off = node.provision_state == State::Active
                && host.wanted.is_some()
                && !matches!(next, Next::Done { .. });
            let state = if is_off { POWERING_ON } else { node.provision_state.word() };
            at(node, state, blank())
        }
    };
    Some(HostStatus { ip_addresses: ip_addresses(host.wanted), ..entry })
}

/// A host's addresses by network.
pub(super) fn ip_addresses(wanted: Option<&BaremetalHost>) -> BTreeMap<String, String> {
    let address = wanted.and_then(|it| it.ctl_plane_ip.clone()).filter(|it| !it.is_empty());
    address.into_iter().map(|it| (CTLPLANE.to_owned(), it)).collect()
}

fn at(node: &Node, state: &str, blank: HostStatus) -> HostStatus {
    let is_deployed = node.provision_state == State::Active;
    let drive = Ledger::of(node).filter(|it| is_deployed && !it.is_of_adopted());
    HostStatus {
        bmh_ref: node.uuid.clone(),
        provisioning_state: state.to_owned(),
        config_drive_hash: drive.map(|it| it.drive),
        ..blank
    }
}

fn blank(host: &Host<'_>) -> HostStatus {
    HostStatus {
        hostname: host.name.clone(),
        bmh_ref: UNASSIGNED.into(),
        ip_addresses: BTreeMap::new(),
        provisioning_state: String::new(),
        annotated_for_deletion: false,
        user_data_secret_name: String::new(),
        network_data_secret_name: String::new(),
        instance: Some(host.instance.clone()),
        config_drive_hash: None,
        error: None,
    }
}
