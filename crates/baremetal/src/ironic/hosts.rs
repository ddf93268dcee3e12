//! The state of each host of a set: its Ironic node, and the next step for it.

use std::collections::{BTreeMap, BTreeSet};

use api::baremetal::{BaremetalHost, HostStatus, Ironic, UNASSIGNED};
use api::problem::Problem;
use api::secret::Secret;
use ironic::ramdisk::is_left;
use ironic::{
    DeployRecord, DesiredMachine, Next, Node, Request, RequestValues, State, Step, Terms, assign,
    host_of, next, policy, release,
};
use jiff::Timestamp;
use operator_core::keyed::Digest;
use serde_json::Value;

use super::Nodes;
use super::remediation::{gone, remedy};
use crate::hosts::{self, Evaluated, wanted};
use crate::observe::{Machines, Observed};
use crate::reasons;

/// A host whose machine is Ironic's.
pub(super) type Host<'a> = hosts::Host<'a, Nodes>;
/// The state of such a host.
pub(super) type HostState<'a> = hosts::HostState<'a, Nodes>;

/// Evaluates all hosts.
pub(super) fn evaluate(seen: &Observed, now: Timestamp) -> Evaluated<'_, Nodes> {
    let mut hosts = wanted(seen, &[], |_, _| Vec::new());
    hosts.extend(leaving(seen));
    if let (Ok(machines), Some(ironic)) = (&seen.machines, &seen.set.spec.ironic) {
        place(seen, machines, ironic, &mut hosts, now);
    }
    Evaluated::new(hosts, Vec::new())
}

/// Returns the removed hosts, as known from the status and the machines.
fn leaving(seen: &Observed) -> Vec<Host<'_>> {
    let uid = seen.uid();
    let reported = seen.set.status.iter().flat_map(|it| &it.baremetal_hosts);
    // An entry of another provisioner's machine is no reservation here.
    let had = |it: &HostStatus| it.bmh_ref != UNASSIGNED || it.instance.is_some();
    let reported = reported.filter(|(_, it)| had(it)).map(|(name, _)| name.as_str());
    let nodes = seen.machines.iter().flat_map(|it| it.nodes.iter());
    let mut found: BTreeSet<&str> =
        reported.chain(nodes.filter_map(|it| host_of(it, &uid))).collect();
    for (name, _) in seen.wanted() {
        found.remove(name);
    }
    found.into_iter().map(|it| Host::removed(seen, it, HostState::Unseen)).collect()
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
        let is_faulty = !host.faults.is_empty();
        host.state = match (host.desired, node) {
            (None, Some(node)) if seen.is_taken_out_by_hand(&host.name) => HostState::Kept(node),
            (None, Some(node)) => given_back(seen, node, &host.instance),
            (None, None) => match left(seen, machines, host) {
                Some(node) => given_back(seen, node, &host.instance),
                None => unknown(seen, machines, host),
            },
            (Some(_), Some(node)) if seen.is_needed() => HostState::Kept(node),
            (Some(_), Some(node)) if is_faulty && node.provision_state != State::Active => {
                HostState::Faulty(Some(node))
            }
            (Some(expected), Some(node)) => {
                let desired = desired(seen, ironic, host, expected, Some(node));
                HostState::At(node, next(node, &desired, now))
            }
            (Some(expected), None) => match lost(seen, machines, host) {
                Some(lost) => lost,
                None if seen.is_needed() => HostState::Released,
                None if is_faulty => HostState::Faulty(None),
                None => {
                    let (adopt, provide) = (expected.adopt, ironic.provide);
                    let terms = Terms::merged(&ironic.machine, &expected.machine);
                    without.insert(host.name.clone(), Terms { adopt, provide, ..terms });
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
        let Some((expected, taken)) = host.desired.zip(taken.remove(&host.name)) else { continue };
        host.state = match taken {
            Ok(node) => {
                HostState::At(node, next(node, &desired(seen, ironic, host, expected, None), now))
            }
            Err(none) => {
                let text = format!("{none}; {}", remedy(seen, host, &none));
                HostState::Without(Some(Problem::new(&reasons::NO_MACHINE, text)))
            }
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
) -> DesiredMachine {
    let present = || node.and_then(DeployRecord::of).map(|it| it.drive).unwrap_or_default();
    let drive = match &host.drive {
        Some(drive) => drive.digest(&seen.keys),
        None if desired.adopt => Digest::default(),
        None => present().into(),
    };
    DesiredMachine {
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
fn lost<'a>(seen: &Observed, machines: &Machines, host: &Host<'_>) -> Option<HostState<'a>> {
    let reported = seen.set.host_status(&host.name)?;
    let node = machines.nodes.iter().find(|it| it.uuid == reported.bmh_ref);
    let may_run = node.is_none_or(|it| !it.provision_state.is_undeployed());
    let is_lost = reported.installed && may_run;
    is_lost.then(|| {
        HostState::Lost(Problem::new(
            &reasons::MACHINE_GONE,
            gone(seen, host, &reported.bmh_ref, node),
        ))
    })
}

/// Returns the former machine of a removed host that is no longer reserved for it.
fn left<'a>(seen: &Observed, machines: &'a Machines, host: &Host<'_>) -> Option<&'a Node> {
    let reported = seen.set.host_status(&host.name);
    let was_its = |it: &Node| reported.is_some_and(|reported| reported.bmh_ref == it.uuid);
    let mut nodes = machines.nodes.iter();
    nodes.find(|it| is_left(it, &host.instance) || it.instance_uuid.is_none() && was_its(it))
}

/// Returns the state of a removed host without a reserved machine. If Ironic does not show its
/// recorded machine, giving it back was not observed: these credentials may not see it, or this is
/// another Ironic.
fn unknown<'a>(seen: &Observed, machines: &Machines, host: &Host<'_>) -> HostState<'a> {
    let reported = seen.set.host_status(&host.name);
    let had = reported.map(|it| it.bmh_ref.as_str()).filter(|it| *it != UNASSIGNED);
    let is_shown = |uuid: &&str| machines.nodes.iter().any(|it| it.uuid == *uuid);
    had.filter(|it| !is_shown(it)).map_or(HostState::Released, |uuid| {
        HostState::Lost(Problem::new(&reasons::MACHINE_GONE, gone(seen, host, uuid, None)))
    })
}

/// Returns the state of a removed host that has a machine.
fn given_back<'a>(seen: &Observed, node: &'a Node, instance: &str) -> HostState<'a> {
    let policy = policy(node, seen.set.spec.deprovision_policy);
    match release(node, instance, policy) {
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
        let given = RequestValues { drive, ramdisk: host.ramdisk.clone() };
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
