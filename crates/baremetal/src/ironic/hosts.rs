//! The state of each host of a set: its Ironic node, and the next step for it.

use std::collections::{BTreeMap, BTreeSet};

use api::baremetal::{BaremetalHost, HostStatus, Ironic, UNASSIGNED};
use config_drive::from_baremetal_set::{Member, NO_SECRET};
use config_drive::{Drive, Secret};
use ironic::ramdisk::is_left;
use ironic::{
    DeployRecord, Given, Next, NoMachine, Node, Request, State, Step, Terms, Wish, assign, host_of,
    instance_uuid, next, policy, release,
};
use jiff::Timestamp;
use operator_core::keyed::Digest;
use serde_json::Value;

use crate::addresses;
use crate::observe::{Machines, Observed};

/// State of a lost machine: it was deployed for a host, and the set no longer has it.
pub const GONE: &str = "gone";
/// State of a machine that is deployed and not powered on yet.
pub const POWERING_ON: &str = "powering on";

/// A present or former host of the set.
#[derive(Debug)]
pub struct Host<'a> {
    /// Its name.
    pub name: String,
    /// The instance UUID that reserves its machine.
    pub instance: String,
    /// Its entry in the spec; `None` once it was removed.
    pub desired: Option<&'a BaremetalHost>,
    /// Its config drive; `None` if it is adopted or removed, or has faults.
    pub drive: Option<Drive>,
    /// The network data of its machine's ramdisk, if it names one and has no faults.
    pub ramdisk: Option<Secret<Value>>,
    /// The faults of its inputs.
    pub faults: Vec<Fault>,
    /// Its state.
    pub state: HostState<'a>,
}

/// The state of a host.
#[derive(Debug)]
pub enum HostState<'a> {
    /// No machine is known.
    Unseen,
    /// Its inputs have faults; its machine, which waits, if it has one.
    Faulty(Option<&'a Node>),
    /// No machine can be taken.
    Without(NoMachine),
    /// Its machine, by UUID, was taken away while it ran, or is unknown when it is to be given
    /// back; the node, if it is known.
    Lost(&'a str, Option<&'a Node>),
    /// It has a machine, or takes one.
    At(&'a Node, Next),
    /// Its machine stays as it is, because another owner still needs it: the set is being deleted,
    /// or the host was removed by hand.
    Kept(&'a Node),
    /// It was removed, or its set is being deleted, and no machine is reserved for it.
    Released,
}

/// A fault of the hosts' inputs.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Fault {
    /// Whether creating a Secret fixes it.
    pub is_missing: bool,
    /// Field, cause, and valid alternatives.
    pub text: String,
}

impl Fault {
    fn of(fault: &config_drive::Fault) -> Self {
        Self { is_missing: fault.cause == NO_SECRET, text: fault.to_string() }
    }
}

/// All hosts by name, and their faults.
#[derive(Debug)]
pub struct EvaluatedHost<'a> {
    /// The present and the former hosts.
    pub hosts: Vec<Host<'a>>,
    /// Each fault once, however many hosts have it.
    pub faults: Vec<Fault>,
}

/// Evaluates all hosts.
pub fn evaluate(seen: &Observed, now: Timestamp) -> EvaluatedHost<'_> {
    let uid = seen.uid();
    let mut shared = addresses::faults(seen);
    let mut all_faults = Vec::new();
    let mut hosts = Vec::new();
    for (name, expected) in seen.wanted() {
        let instance = instance_uuid(&uid, name, "");
        let mut faults = Vec::new();
        let drive = drive(seen, name, expected, &instance, &mut faults);
        let ramdisk = ramdisk(seen, name, expected, &mut faults);
        let of_address = shared.remove(name).map(|text| Fault { is_missing: false, text });
        faults.extend(of_address);
        let drive = drive.filter(|_| faults.is_empty());
        // A host whose machine cannot be observed keeps its reported status, even if its inputs
        // have faults.
        let is_unseen = faults.is_empty() || seen.machines.is_err();
        let state = if is_unseen { HostState::Unseen } else { HostState::Faulty(None) };
        all_faults.extend(faults.iter().cloned());
        let (name, expected) = (name.to_owned(), Some(expected));
        hosts.push(Host { name, instance, desired: expected, drive, ramdisk, faults, state });
    }
    hosts.extend(leaving(seen, &uid));
    hosts.sort_by(|a, b| a.name.cmp(&b.name));
    if let (Ok(machines), Some(ironic)) = (&seen.machines, &seen.set.spec.ironic) {
        place(seen, machines, ironic, &mut hosts, now);
    }
    all_faults.sort();
    all_faults.dedup();
    EvaluatedHost { hosts, faults: all_faults }
}

/// Returns the config drive of a host, or adds its faults.
pub(crate) fn drive(
    seen: &Observed,
    name: &str,
    host: &BaremetalHost,
    instance: &str,
    faults: &mut Vec<Fault>,
) -> Option<Drive> {
    if host.adopt {
        return None;
    }
    let set = &seen.set;
    let found = match member(seen, name, host).drive(instance) {
        Ok(drive) => {
            let version = seen.machines.as_ref().map(|it| it.version).ok();
            let expected = set.spec.config_drive_format;
            let Some(fault) = version.and_then(|it| drive.form_fault(expected, it)) else {
                return Some(drive);
            };
            let path = format!("spec.{}", fault.path);
            vec![config_drive::Fault { path, ..fault }]
        }
        Err(found) => found,
    };
    faults.extend(found.iter().map(Fault::of));
    None
}

/// Returns the network data of a host's ramdisk, or adds its faults.
fn ramdisk(
    seen: &Observed,
    name: &str,
    host: &BaremetalHost,
    faults: &mut Vec<Fault>,
) -> Option<Secret<Value>> {
    if host.adopt {
        return None;
    }
    let version = seen.machines.as_ref().map(|it| it.version).ok();
    let found = member(seen, name, host).ramdisk(version);
    found.map_err(|it| faults.extend(it.iter().map(Fault::of))).ok().flatten()
}

fn member<'a>(seen: &'a Observed, name: &'a str, host: &'a BaremetalHost) -> Member<'a> {
    let Observed { set, namespace, texts, .. } = seen;
    Member { set: &set.spec, namespace, name, host, texts }
}

/// Returns the removed hosts, as known from the status and the machines.
fn leaving<'a>(seen: &'a Observed, uid: &str) -> Vec<Host<'a>> {
    let reported = seen.set.status.iter().flat_map(|it| &it.baremetal_hosts);
    // An entry of another provisioner's machine is no reservation here.
    let had = |it: &HostStatus| it.bmh_ref != UNASSIGNED || it.instance.is_some();
    let reported = reported.filter(|(_, it)| had(it)).map(|(name, _)| name.as_str());
    let nodes = seen.machines.iter().flat_map(|it| it.nodes.iter());
    let mut found: BTreeSet<&str> =
        reported.chain(nodes.filter_map(|it| host_of(it, uid, ""))).collect();
    for (name, _) in seen.wanted() {
        found.remove(name);
    }
    let host = |name: &str| Host {
        name: name.to_owned(),
        instance: instance_uuid(uid, name, ""),
        desired: None,
        drive: None,
        ramdisk: None,
        faults: Vec::new(),
        state: HostState::Unseen,
    };
    found.into_iter().map(host).collect()
}

/// Finds each host's machine and its next step.
fn place<'a>(
    seen: &'a Observed,
    machines: &'a Machines,
    ironic: &Ironic,
    hosts: &mut [Host<'a>],
    now: Timestamp,
) {
    let mine: BTreeMap<&str, &Node> =
        machines.nodes.iter().filter_map(|it| Some((it.instance_uuid.as_deref()?, it))).collect();
    let mut without: BTreeMap<String, Terms> = BTreeMap::new();
    for host in &mut *hosts {
        let node = mine.get(host.instance.as_str()).copied();
        let is_faulty = matches!(host.state, HostState::Faulty(_));
        host.state = match (host.desired, node) {
            (None, Some(node)) if seen.is_taken_out_by_hand(&host.name) => HostState::Kept(node),
            (None, Some(node)) => given_back(seen, node, &host.instance),
            (None, None) => match left(seen, machines, host) {
                Some(node) => given_back(seen, node, &host.instance),
                None => unknown(seen, machines, &host.name),
            },
            (Some(_), Some(node)) if seen.is_needed() => HostState::Kept(node),
            (Some(_), Some(node)) if is_faulty && node.provision_state != State::Active => {
                HostState::Faulty(Some(node))
            }
            (Some(expected), Some(node)) => {
                let wish = desired(seen, ironic, host, expected, Some(node));
                HostState::At(node, next(node, &wish, now))
            }
            (Some(expected), None) => match lost(seen, machines, &host.name) {
                Some(lost) => lost,
                None if seen.is_needed() => HostState::Released,
                None if is_faulty => HostState::Faulty(None),
                None => {
                    let Ironic { machine, provide, .. } = ironic;
                    let (adopt, provide) = (expected.adopt, *provide);
                    let terms =
                        Terms { adopt, provide, ..Terms::merged(machine, &expected.machine) };
                    without.insert(host.name.clone(), terms);
                    continue;
                }
            },
        };
    }
    // Avoid a machine whose failed request only a user can fix, if another one fits.
    let stuck = seen.refused.iter().filter(|(_, it)| !it.error.heals());
    let avoided = stuck.map(|(uuid, _)| uuid.as_str()).collect();
    let mut taken = assign(&without, &machines.nodes, &avoided);
    for host in hosts {
        let (Some(taken), Some(expected)) = (taken.remove(&host.name), host.desired) else {
            continue;
        };
        host.state = match taken {
            Ok(node) => {
                HostState::At(node, next(node, &desired(seen, ironic, host, expected, None), now))
            }
            Err(none) => HostState::Without(none),
        };
    }
}

/// Returns the desired state of a host's machine. If faults prevent a config drive, the present
/// drive counts as desired.
fn desired(
    seen: &Observed,
    ironic: &Ironic,
    host: &Host<'_>,
    desired: &BaremetalHost,
    node: Option<&Node>,
) -> Wish {
    let present = || node.and_then(DeployRecord::of).map(|it| it.drive).unwrap_or_default();
    let drive = match &host.drive {
        Some(drive) => drive.digest(&seen.keys),
        None if desired.adopt => Digest::default(),
        None => present().into(),
    };
    Wish {
        instance: host.instance.clone(),
        host: host.name.clone(),
        image: ironic.image.clone(),
        root_device: ironic.root_device.clone(),
        drive,
        ramdisk: host.ramdisk.clone(),
        adopt: desired.adopt,
        provide: ironic.provide,
        attempts: u32::try_from(ironic.deploy_attempts).unwrap_or(1),
    }
}

/// Returns a machine that went away while it was running. It is not replaced automatically, because
/// it may still answer at the host's address. An undeployed machine is no loss: it is deployed
/// again.
fn lost<'a>(seen: &'a Observed, machines: &'a Machines, name: &str) -> Option<HostState<'a>> {
    let reported = seen.set.told(name)?;
    let node = machines.nodes.iter().find(|it| it.uuid == reported.bmh_ref);
    let may_run = node.is_none_or(|it| !it.provision_state.is_undeployed());
    (reported.installed && may_run).then_some(HostState::Lost(&reported.bmh_ref, node))
}

/// Returns the former machine of a removed host that is no longer reserved for it.
fn left<'a>(seen: &Observed, machines: &'a Machines, host: &Host<'_>) -> Option<&'a Node> {
    let reported = seen.set.told(&host.name);
    let was_its = |it: &Node| reported.is_some_and(|reported| reported.bmh_ref == it.uuid);
    let mut nodes = machines.nodes.iter();
    nodes.find(|it| is_left(it, &host.instance) || it.instance_uuid.is_none() && was_its(it))
}

/// Returns the state of a removed host without a reserved machine. If Ironic does not show its
/// recorded machine, giving it back was not observed: these credentials may not see it, or this is
/// another Ironic.
fn unknown<'a>(seen: &'a Observed, machines: &Machines, name: &str) -> HostState<'a> {
    let reported = seen.set.told(name);
    let had = reported.map(|it| it.bmh_ref.as_str()).filter(|it| *it != UNASSIGNED);
    let is_shown = |uuid: &&str| machines.nodes.iter().any(|it| it.uuid == *uuid);
    had.filter(|it| !is_shown(it)).map_or(HostState::Released, |uuid| HostState::Lost(uuid, None))
}

/// Returns the state of a removed host that has a machine.
fn given_back<'a>(seen: &Observed, node: &'a Node, instance: &str) -> HostState<'a> {
    let policy = policy(node, seen.set.spec.deprovision_policy);
    match release(Some(node), instance, policy) {
        Next::Done { .. } => HostState::Released,
        next @ (Next::Do(_) | Next::Wait { .. } | Next::Stop(_)) => HostState::At(node, next),
    }
}

/// A request to Ironic for a host.
#[derive(Clone, Debug)]
pub struct Order {
    /// The host's name.
    pub host: String,
    /// The machine's UUID.
    pub node: String,
    /// The machine's state when the request was decided.
    pub state: State,
    /// The request.
    pub request: Request,
}

/// Returns the requests to send to Ironic now.
///
/// # Guarantees
/// No request is sent before the set has its finalizer, so that no machine is forgotten, and none
/// for a machine in backoff. Machines without a failed request come first, then those that failed
/// longest ago, so that a few unresponsive machines do not block the others.
pub fn orders(seen: &Observed, now: Timestamp) -> Vec<Order> {
    let Ok(machines) = &seen.machines else { return Vec::new() };
    if !seen.is_held() {
        return Vec::new();
    }
    let order = |host: &Host<'_>| {
        let HostState::At(node, Next::Do(step)) = &host.state else { return None };
        let refused = seen.refused.get(&node.uuid);
        if refused.is_some_and(|it| it.left(now).is_some()) {
            return None;
        }
        let drive = match step {
            Step::Deploy => {
                let expected = seen.set.spec.config_drive_format;
                host.drive.as_ref()?.configdrive(expected, machines.version).ok()?
            }
            Step::Reserve(_)
            | Step::Record(_)
            | Step::Tell(_)
            | Step::PowerOn
            | Step::Unreserve(_) => Secret::new(Value::Null),
        };
        let given = Given { drive, ramdisk: host.ramdisk.clone() };
        let order = Order {
            host: host.name.clone(),
            node: node.uuid.clone(),
            state: node.provision_state.clone(),
            request: step.request(node, &host.instance, &given),
        };
        Some((refused.map(|it| it.at), order))
    };
    let evaluated = evaluate(seen, now);
    let mut orders: Vec<(Option<Timestamp>, Order)> =
        evaluated.hosts.iter().filter_map(order).collect();
    orders.sort_by_key(|(refused_at, _)| *refused_at);
    orders.into_iter().map(|(_, it)| it).collect()
}
