//! Instructions for users about a lost machine of Metal3.

use crate::hosts::{Fault, Reason};
use crate::observe::Observed;
use crate::remediation::forgotten;

/// Why a host's machine is gone.
pub(super) enum Loss {
    /// It was deleted, or its labels were removed.
    Gone,
    /// Another consumer uses it, as `Kind namespace/name`.
    Taken(String),
    /// Its namespace is no longer watched.
    Unwatched,
    /// It belongs to another provisioner.
    Elsewhere,
}

/// Returns what to do about a lost machine; `machine` is as the status names it.
///
/// An owner that requests the set would restore a removed host, so the user removes the status
/// entry instead, which is all that holds the host back.
pub(super) fn lost(seen: &Observed, host: &str, machine: &str, loss: &Loss) -> Reason {
    let namespace = machine.split_once('/').map_or(machine, |(namespace, _)| namespace);
    let (reason, text) = match loss {
        Loss::Taken(other) => (
            "MachineTaken",
            format!(
                "its BareMetalHost {machine} is used by {other} now; have it given back there, or make \
                 sure that nothing of {host} runs on it"
            ),
        ),
        Loss::Gone => (
            "MachineGone",
            format!(
                "its BareMetalHost {machine} was deleted or taken from the set while it ran, so that two \
                 could answer at one address if another was taken; make sure that it is off"
            ),
        ),
        Loss::Unwatched => (
            "MachineGone",
            format!(
                "nobody sees its BareMetalHost {machine} any more, for the operators do not watch that \
                 namespace; add {namespace} to watchNamespaces of the chart, or give it back by hand"
            ),
        ),
        Loss::Elsewhere => (
            "MachineGone",
            format!(
                "its machine {machine} is no BareMetalHost, so another provisioner gave it; set \
                 spec.provisioner to what it was, or give it back there"
            ),
        ),
    };
    (reason, format!("{text}, and then {}", forgotten(seen, host)))
}

/// Returns the fault of a host whose Secret name belongs to another object.
pub(super) fn taken_secret(namespace: &str, name: &str) -> Fault {
    Fault::invalid(format!(
        "metadata.name: Secret {namespace}/{name} is another's, maybe another set's of the same name; \
         call set or host differently, or delete the Secret"
    ))
}
