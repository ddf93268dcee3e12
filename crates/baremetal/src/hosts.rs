//! The hosts of a set, evaluated alike whatever provisions their machines.

use api::baremetal::BaremetalHost;
use config_drive::from_baremetal_set::{Member, NO_SECRET};
use config_drive::{Drive, Secret};
use ironic::instance_uuid;
use serde_json::Value;

use crate::addresses;
use crate::observe::Observed;

/// A reason in CamelCase, then cause and next step.
pub type Reason = (&'static str, String);

/// A present or former host of the set, with its machine `M` and the next step `N` for it.
#[derive(Debug)]
pub struct Host<'a, M, N> {
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
    pub faults: Vec<Fault>,
    /// Its state.
    pub state: HostState<'a, M, N>,
}

/// The state of a host.
#[derive(Debug)]
pub enum HostState<'a, M, N> {
    /// No machine is known.
    Unseen,
    /// Its inputs have faults; its machine, which waits, if it has one.
    Faulty(Option<&'a M>),
    /// No machine can be taken, and why; `None` if none is taken because the set is being deleted.
    Without(Option<Reason>),
    /// Its machine was taken away while it ran, or is unknown when it is to be given back.
    Lost(Reason),
    /// It has a machine, takes one, or gives it back.
    At(&'a M, N),
    /// Its machine stays as it is, because another owner still needs it: the set is being deleted,
    /// or the host was removed by hand.
    Kept(&'a M),
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
    /// Returns a fault that no Secret fixes.
    pub fn invalid(text: String) -> Self {
        Self { is_missing: false, text }
    }

    fn of(fault: &config_drive::Fault) -> Self {
        Self { is_missing: fault.cause == NO_SECRET, text: fault.to_string() }
    }
}

/// All hosts by name, and their faults.
#[derive(Debug)]
pub struct Evaluated<'a, M, N> {
    /// The present and the former hosts.
    pub hosts: Vec<Host<'a, M, N>>,
    /// Each fault once, however many hosts have it.
    pub faults: Vec<Fault>,
}

impl<'a, M, N> Evaluated<'a, M, N> {
    /// Returns the hosts in order, with their faults and those of the set.
    pub fn new(mut hosts: Vec<Host<'a, M, N>>, of_set: Vec<Fault>) -> Self {
        hosts.sort_by(|a, b| a.name.cmp(&b.name));
        let mut faults = of_set;
        faults.extend(hosts.iter().flat_map(|it| it.faults.iter().cloned()));
        faults.sort();
        faults.dedup();
        Self { hosts, faults }
    }
}

impl<M, N> Host<'_, M, N> {
    /// Returns a removed host.
    pub fn removed<'a>(seen: &Observed, name: &str, state: HostState<'a, M, N>) -> Host<'a, M, N> {
        Host {
            name: name.to_owned(),
            instance: instance_uuid(&seen.uid(), name, ""),
            desired: None,
            drive: None,
            ramdisk: None,
            faults: Vec::new(),
            state,
        }
    }
}

/// Returns the desired hosts with their inputs, before their machines are looked for. `of_set` are
/// the faults that each of them has, and `own` returns what the provisioner finds wrong with one.
pub(crate) fn wanted<'a, M, N>(
    seen: &'a Observed,
    of_set: &[Fault],
    own: impl Fn(&str, &BaremetalHost) -> Vec<Fault>,
) -> Vec<Host<'a, M, N>> {
    let mut shared = addresses::faults(seen);
    let host = |(name, expected): (&str, &'a BaremetalHost)| {
        let mut host = Host::removed(seen, name, HostState::Unseen);
        let mut faults = own(name, expected);
        let drive = drive(seen, name, expected, &host.instance, &mut faults);
        host.ramdisk = ramdisk(seen, name, expected, &mut faults);
        faults.extend(shared.remove(name).map(Fault::invalid));
        faults.extend(of_set.iter().cloned());
        host.drive = drive.filter(|_| faults.is_empty());
        Host { desired: Some(expected), faults, ..host }
    };
    seen.wanted().map(host).collect()
}

/// Returns the config drive of a host, or adds its faults.
fn drive(
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

/// Returns the network data of a host's ramdisk, or adds its faults. Metal3 reads it by itself.
fn ramdisk(
    seen: &Observed,
    name: &str,
    host: &BaremetalHost,
    faults: &mut Vec<Fault>,
) -> Option<Secret<Value>> {
    if host.adopt || !seen.is_of_ironic() {
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
