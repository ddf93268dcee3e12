//! How each host of a set stands: its machine, and what comes next for it.

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

/// The state of a machine that was a host and is not the set's any more.
pub const GONE: &str = "gone";
/// The state of a machine that is deployed and not powered on yet.
pub const POWERING_ON: &str = "powering on";

/// A host of the set, or one that was.
#[derive(Debug)]
pub struct Host<'a> {
    /// Its name.
    pub name: String,
    /// By what its machine is reserved.
    pub instance: String,
    /// What the set says of it; nothing once it was taken out.
    pub desired: Option<&'a BaremetalHost>,
    /// Its drive; none of a host that is adopted, taken out, or has faults.
    pub drive: Option<Drive>,
    /// The network data of its machine's ramdisk, where it names one and has no faults.
    pub ramdisk: Option<Secret<Value>>,
    /// What is wrong with what it is made from.
    pub faults: Vec<Fault>,
    /// How it stands.
    pub state: HostState<'a>,
}

/// How a host stands.
#[derive(Debug)]
pub enum HostState<'a> {
    /// Nothing is known of any machine.
    Unseen,
    /// Something is wrong with what it is made from; its machine, which waits, if it has one.
    Faulty(Option<&'a Node>),
    /// No machine can be taken.
    Without(NoMachine),
    /// It had this machine, by UUID, which was taken away while it ran, or is not known any more when it
    /// is to be given back; the machine, if it is known.
    Lost(&'a str, Option<&'a Node>),
    /// It has a machine, or takes one.
    At(&'a Node, Next),
    /// It has this machine, which stays as it is: the set is being deleted, or the host was taken out by
    /// hand, and somebody still needs it.
    Kept(&'a Node),
    /// It was taken out, or its set goes, and no machine is reserved for it.
    Released,
}

/// Something that is wrong with what the hosts are made from.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Fault {
    /// Whether it goes when a Secret appears.
    pub is_missing: bool,
    /// Where, what, and the legal way.
    pub text: String,
}

impl Fault {
    fn of(fault: &config_drive::Fault) -> Self {
        Self { is_missing: fault.cause == NO_SECRET, text: fault.to_string() }
    }
}

/// All hosts by name, and what is wrong with them.
#[derive(Debug)]
pub struct EvaluatedHost<'a> {
    /// Those that are to be and those that were.
    pub hosts: Vec<Host<'a>>,
    /// Each fault once, however many hosts have it.
    pub faults: Vec<Fault>,
}

/// Judges all hosts.
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
        // What cannot be seen stays as it was told, whatever is wrong with its input.
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

/// The drive of a host, or what is wrong with it.
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

/// The network data of a host's ramdisk, or what is wrong with it.
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

/// Hosts that were taken out, as status and machines tell of them.
fn leaving<'a>(seen: &'a Observed, uid: &str) -> Vec<Host<'a>> {
    let reported = seen.set.status.iter().flat_map(|it| &it.baremetal_hosts);
    // Another provisioner's machine has no reservation here.
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

/// Finds each host's machine, and the next step of it.
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
                    let terms = Terms::merged(machine, &expected.machine, expected.adopt, *provide);
                    without.insert(host.name.clone(), terms);
                    continue;
                }
            },
        };
    }
    // One that only a human could have Ironic give keeps no host from another one.
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

/// What a host's machine shall be. Where its faults let nobody tell the drive, it is what it is.
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

/// A machine that goes away while it runs is not replaced by itself: it may still answer at the host's
/// address. Who undeployed it meant it to be deployed again.
fn lost<'a>(seen: &'a Observed, machines: &'a Machines, name: &str) -> Option<HostState<'a>> {
    let reported = seen.set.told(name)?;
    let node = machines.nodes.iter().find(|it| it.uuid == reported.bmh_ref);
    let may_run = node.is_none_or(|it| !it.provision_state.is_undeployed());
    (reported.installed && may_run).then_some(HostState::Lost(&reported.bmh_ref, node))
}

/// The machine that a host had which was taken out, and which is not reserved for it any more.
fn left<'a>(seen: &Observed, machines: &'a Machines, host: &Host<'_>) -> Option<&'a Node> {
    let reported = seen.set.told(&host.name);
    let was_its = |it: &Node| reported.is_some_and(|reported| reported.bmh_ref == it.uuid);
    let mut nodes = machines.nodes.iter();
    nodes.find(|it| is_left(it, &host.instance) || it.instance_uuid.is_none() && was_its(it))
}

/// A host that was taken out and has no machine. One that it had and that Ironic does not show was not
/// seen to be given back: these credentials may not see it, or this may be another Ironic.
fn unknown<'a>(seen: &'a Observed, machines: &Machines, name: &str) -> HostState<'a> {
    let reported = seen.set.told(name);
    let had = reported.map(|it| it.bmh_ref.as_str()).filter(|it| *it != UNASSIGNED);
    let is_shown = |uuid: &&str| machines.nodes.iter().any(|it| it.uuid == *uuid);
    had.filter(|it| !is_shown(it)).map_or(HostState::Released, |uuid| HostState::Lost(uuid, None))
}

/// A host that was taken out and has a machine.
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
    /// The machine's state when it was decided.
    pub state: State,
    /// What is asked.
    pub request: Request,
}

/// What is asked of Ironic now.
///
/// # Guarantees
/// Nothing before the set is held by its finalizer, so that no machine is forgotten. Nothing for a
/// machine that pauses; and who was refused longest ago comes after who was not, so that a few machines
/// that never answer take nobody's turn.
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
