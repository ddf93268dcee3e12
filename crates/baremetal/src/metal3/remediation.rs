//! Instructions for users about a lost machine of Metal3.

use crate::ironic::hosts::Fault;
use crate::ironic::remediation::forget;
use crate::metal3::host::Loss;
use crate::observe::Observed;

/// Returns the reason in CamelCase, and cause and next step; `machine` is as the status names it.
///
/// An owner that requests the set would restore a removed host, so the user removes the status
/// entry instead, which is all that holds the host back.
pub(super) fn lost(
    seen: &Observed,
    host: &str,
    machine: &str,
    loss: &Loss,
) -> (&'static str, String) {
    let forget = forget(seen, host);
    let namespace = machine.split_once('/').map_or(machine, |(namespace, _)| namespace);
    match loss {
        Loss::Taken(other) => {
            let text = format!(
                "its BareMetalHost {machine} is used by {other} now; have it given back there, or make \
                 sure that nothing of {host} runs on it, and then have it forgotten by `{forget}`"
            );
            ("MachineTaken", text)
        }
        Loss::Gone => {
            let text = format!(
                "its BareMetalHost {machine} was deleted or taken from the set while it ran, so that two \
                 could answer at one address if another was taken; make sure that it is off, and then \
                 have it forgotten by `{forget}`"
            );
            ("MachineGone", text)
        }
        Loss::Unwatched => {
            let text = format!(
                "nobody sees its BareMetalHost {machine} any more, for the operators do not watch that \
                 namespace; add {namespace} to watchNamespaces of the chart, or give it back by hand, and \
                 then have it forgotten by `{forget}`"
            );
            ("MachineGone", text)
        }
        Loss::Elsewhere => {
            let text = format!(
                "its machine {machine} is no BareMetalHost, so another provisioner gave it; set \
                 spec.provisioner to what it was, or give it back there, and then have it forgotten by \
                 `{forget}`"
            );
            ("MachineGone", text)
        }
    }
}

/// Returns the fault of a host whose Secret name belongs to another object.
pub(super) fn taken_secret(namespace: &str, name: &str) -> Fault {
    let text = format!(
        "metadata.name: Secret {namespace}/{name} is another's, maybe another set's of the same name; \
         call set or host differently, or delete the Secret"
    );
    Fault { is_missing: false, text }
}
