//! The hosts of a set, evaluated alike whatever provisions their machines, and what the flow of a
//! set leaves to Ironic or Metal3: see [`Provisioner`]. The flow itself is in [`crate::decide`].

use std::time::Duration;

use api::baremetal::{BaremetalHost, HostStatus};
use api::conditions::ConditionDraft;
use api::problem::Problem;
use api::secret::Secret;
use config_drive::Drive;
use config_drive::from_baremetal_set::{Member, NO_SECRET};
use ironic::instance_uuid;
use jiff::Timestamp;
use operator_core::plan::Step;
use serde_json::Value;

use crate::addresses;
use crate::observe::Observed;
use crate::reasons::{INVALID_INPUT, SECRET_NOT_FOUND};

/// Who provisions the machines of a set.
pub(crate) trait Provisioner: Sized {
    /// A machine, as observed.
    type Machine: 'static;
    /// The next step for a machine.
    type Next;

    /// Returns all hosts with their machines and the next step for each.
    fn evaluate(seen: &Observed, now: Timestamp) -> Evaluated<'_, Self>;

    /// Returns whether all machines are given back, or no longer can be.
    fn is_over(seen: &Observed, hosts: &[Host<'_, Self>]) -> bool;

    /// Returns the writes to other objects than the set. Without any, machines advance by requests,
    /// which were sent before.
    fn writes(_seen: &Observed, _hosts: &[Host<'_, Self>]) -> Vec<Step> {
        Vec::new()
    }

    /// Returns the requeue interval.
    fn pace(seen: &Observed, hosts: &[Host<'_, Self>], now: Timestamp) -> Duration;

    /// Returns the condition on the provisioner itself.
    fn server(seen: &Observed) -> ConditionDraft;

    /// Returns the name of a machine for users.
    fn title(machine: &Self::Machine) -> String;

    /// Returns whether a machine that needs no further step has the present config drive; `None`
    /// for any other machine.
    fn is_current(next: &Self::Next) -> Option<bool>;

    /// Returns what keeps a host with that machine from being ready, with at most `words` bytes of
    /// the provisioner's text; `None` if nothing does.
    fn matter(
        seen: &Observed,
        host: &Host<'_, Self>,
        at: (&Self::Machine, &Self::Next),
        words: usize,
    ) -> Option<Problem>;

    /// Returns the status entry of a host with that machine, made from its `blank` one. Without a
    /// next step, the machine waits.
    fn entry(
        seen: &Observed,
        host: &Host<'_, Self>,
        at: (&Self::Machine, Option<&Self::Next>),
        blank: HostStatus,
        words: usize,
    ) -> HostStatus;
}

/// A present or former host of the set.
pub(crate) struct Host<'a, P: Provisioner> {
    /// Its name.
    pub name: String,
    /// The UUID that its config drive names, and by which Ironic reserves its machine.
    pub instance: String,
    /// Its entry in the spec; `None` once it was removed.
    pub desired: Option<&'a BaremetalHost>,
    /// Its config drive; `None` if it is adopted or removed, or has faults.
    pub drive: Option<Drive>,
    /// The network data of its machine's ramdisk, if Ironic gets any and it has no faults.
    pub ramdisk: Option<Secret<Value>>,
    /// The faults of its inputs.
    pub faults: Vec<Problem>,
    /// Its state.
    pub state: HostState<'a, P>,
}

/// The state of a host.
pub(crate) enum HostState<'a, P: Provisioner> {
    /// No machine is known.
    Unseen,
    /// Its inputs have faults; its machine, which waits, if it has one.
    Faulty(Option<&'a P::Machine>),
    /// No machine can be taken, and why; `None` if none is taken because the set is being deleted.
    Without(Option<Problem>),
    /// Its machine was taken away while it ran, or is unknown when it is to be given back.
    Lost(Problem),
    /// It has a machine, takes one, or gives it back.
    At(&'a P::Machine, P::Next),
    /// Its machine stays as it is, because another owner still needs it: the set is being deleted,
    /// or the host was removed by hand.
    Kept(&'a P::Machine),
    /// It was removed, or its set is being deleted, and no machine is reserved for it.
    Released,
}

/// Returns a fault of the hosts' inputs that no Secret fixes: field, cause, and valid alternatives.
pub(crate) fn invalid(text: String) -> Problem {
    Problem::new(&INVALID_INPUT, text)
}

fn fault(found: &config_drive::Fault) -> Problem {
    let reason = if found.cause == NO_SECRET { &SECRET_NOT_FOUND } else { &INVALID_INPUT };
    Problem::new(reason, found.to_string())
}

/// All hosts by name, and their faults.
pub(crate) struct Evaluated<'a, P: Provisioner> {
    /// The present and the former hosts.
    pub hosts: Vec<Host<'a, P>>,
    /// Each fault once, however many hosts have it.
    pub faults: Vec<Problem>,
}

impl<'a, P: Provisioner> Evaluated<'a, P> {
    /// Returns the hosts in order, with their faults and those of the set.
    pub(crate) fn new(mut hosts: Vec<Host<'a, P>>, of_set: Vec<Problem>) -> Self {
        hosts.sort_by(|a, b| a.name.cmp(&b.name));
        let mut faults = of_set;
        faults.extend(hosts.iter().flat_map(|it| it.faults.iter().cloned()));
        faults.sort_by_key(|it| (*it.reason == SECRET_NOT_FOUND, it.message.clone()));
        faults.dedup();
        Self { hosts, faults }
    }
}

impl<'a, P: Provisioner> Host<'a, P> {
    /// Returns a removed host.
    pub(crate) fn removed(seen: &Observed, name: &str, state: HostState<'a, P>) -> Self {
        Host {
            name: name.to_owned(),
            instance: instance_uuid(&seen.uid(), name),
            desired: None,
            drive: None,
            ramdisk: None,
            faults: Vec::new(),
            state,
        }
    }

    /// Makes what its machine is deployed with, or adds the faults of that.
    fn read(&mut self, seen: &Observed, member: &Member<'_>) {
        match drive(seen, member, &self.instance) {
            Ok(drive) => self.drive = Some(drive),
            Err(faults) => self.faults.extend(faults.iter().map(fault)),
        }
        // Metal3 reads the network data of the ramdisk by itself.
        if seen.is_of_ironic() {
            match member.ramdisk(seen.version()) {
                Ok(ramdisk) => self.ramdisk = ramdisk,
                Err(faults) => self.faults.extend(faults.iter().map(fault)),
            }
        }
    }
}

/// Returns the desired hosts with their inputs, before their machines are looked for. `of_set` are
/// the faults that each of them has, and `own` returns what the provisioner finds wrong with one.
pub(crate) fn wanted<'a, P: Provisioner>(
    seen: &'a Observed,
    of_set: &[Problem],
    own: impl Fn(&str, &BaremetalHost) -> Vec<Problem>,
) -> Vec<Host<'a, P>> {
    let mut shared = addresses::faults(seen);
    let Observed { set, namespace, texts, .. } = seen;
    let host = |(name, expected): (&'a str, &'a BaremetalHost)| {
        let mut host = Host::removed(seen, name, HostState::Unseen);
        host.desired = Some(expected);
        host.faults = own(name, expected);
        if !expected.adopt {
            host.read(seen, &Member { set: &set.spec, namespace, name, host: expected, texts });
        }
        host.faults.extend(shared.remove(name).map(invalid));
        host.faults.extend(of_set.iter().cloned());
        host.drive = host.drive.filter(|_| host.faults.is_empty());
        host
    };
    seen.wanted().map(host).collect()
}

fn drive(
    seen: &Observed,
    member: &Member<'_>,
    instance: &str,
) -> Result<Drive, Vec<config_drive::Fault>> {
    let drive = member.drive(instance)?;
    let format = seen.set.spec.config_drive_format;
    match seen.version().and_then(|it| drive.form_fault(format, it)) {
        None => Ok(drive),
        Some(fault) => {
            Err(vec![config_drive::Fault { path: format!("spec.{}", fault.path), ..fault }])
        }
    }
}
