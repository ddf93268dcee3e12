//! Instructions for users: how a host gets a machine, keeps it, loses it, or has its record
//! removed.

use api::baremetal::set::FOR;
use ironic::{Error, NoMachine, Node, State};
use kube::ResourceExt;
use operator_core::applied::APPLIED;

use crate::ironic::hosts::Host;
use crate::observe::Observed;

/// Returns what to do about a host for which there is no machine.
pub(crate) fn remedy(seen: &Observed, host: &Host<'_>, none: &NoMachine) -> String {
    let is_provided = seen.set.spec.ironic.as_ref().is_some_and(|it| it.provide);
    let would_do = |(lack, _): &(String, usize)| {
        [State::Enroll, State::Manageable].iter().any(|it| *lack == format!("in state {it}"))
    };
    let is_adopted = host.desired.is_some_and(|it| it.adopt);
    let provide = if !is_provided && !is_adopted && none.excluded.iter().any(would_do) {
        "set spec.ironic.provide to true to have machines cleaned and used that are not available, "
    } else {
        ""
    };
    format!(
        "{provide}enroll another machine, free or mend one of these, or correct what is asked for in \
         spec.ironic.machine and spec.baremetalHosts[{}].machine",
        host.name
    )
}

/// Describes a machine that went away while it was running, or before it was given back.
pub(crate) fn gone(seen: &Observed, host: &Host<'_>, uuid: &str, node: Option<&Node>) -> String {
    let name = &host.name;
    let what = match node {
        None => format!("Ironic does not know its machine {uuid} any more"),
        Some(node) => match &node.instance_uuid {
            None => format!(
                "its machine {} is {} and not reserved for it any more",
                node.title(),
                node.provision_state
            ),
            Some(other) => format!(
                "its machine {} is {} and reserved by instance {other} now",
                node.title(),
                node.provision_state
            ),
        },
    };
    let is_others = node.is_some_and(|it| it.instance_uuid.is_some());
    let risk = match host.desired {
        Some(_) if is_others => format!(
            "; see whether it was deployed anew there or still answers at the address of {name}, and \
             once that is free"
        ),
        Some(_) => {
            ", so that two could answer at one address if another was taken; make sure that it \
                    is off, and then"
                .to_owned()
        }
        None => ", so that nobody knows whether it was given back; see that spec.ironic and its \
                 credentials are those by which it was taken, and if it is gone for good"
            .to_owned(),
    };
    format!("{what}{risk} have it forgotten by `{}`", forget(seen, name))
}

/// Returns how to redeploy one host or several.
pub(crate) fn anew(seen: &Observed, host: &str) -> String {
    if seen.set.labels().contains_key(FOR) {
        // Its hosts are written by the owner and would reappear.
        return format!(
            "delete the node of {host}, or take it out of its node set, and make it again once {host} is \
             not in status.baremetalHosts"
        );
    }
    format!(
        "take {host} out of spec.baremetalHosts, and put it in again once it is not in \
         status.baremetalHosts"
    )
}

/// Returns the command that removes the record of a host's machine.
pub(crate) fn forget(seen: &Observed, host: &str) -> String {
    // Escaped as in JSON pointers (RFC 6901).
    let key = host.replace('~', "~0").replace('/', "~1");
    format!(
        "kubectl -n {} patch openstackbaremetalset {} --subresource=status --type=json -p \
         '[{{\"op\": \"remove\", \"path\": \"/status/baremetalHosts/{key}\"}}]'",
        seen.namespace,
        seen.set.name_any()
    )
}

/// Describes a host that was removed by someone other than its requesting owner.
pub(crate) fn in_use(host: &str, machine: &str) -> String {
    format!(
        "machine {machine} stays as it is, for the host was taken out of the set, and whoever the set was made \
         for still asks for it: take {host} out there, or, where nobody asks any more, the annotation \
         {APPLIED} off the set"
    )
}

/// Describes a machine that is given up and keeps running.
pub(crate) fn retained(seen: &Observed, host: &str, machine: &str) -> String {
    let reported = seen.set.told(host);
    let addresses: Vec<&str> =
        reported.iter().flat_map(|it| it.ip_addresses.values()).map(String::as_str).collect();
    let at = if addresses.is_empty() {
        String::new()
    } else {
        format!(" and answers at {}: give that address to no other host", addresses.join(", "))
    };
    format!("machine {machine} is given up as it is: it runs on{at}")
}

/// Returns what to do about an error.
pub(crate) fn next_step(error: &Error) -> &'static str {
    match error {
        Error::NotUrl => "correct spec.ironic.endpoint",
        Error::Unreachable(_) => "check spec.ironic.endpoint and the way there; it is tried again",
        Error::Untrusted(_) => {
            "name a Secret with its authority's certificate in spec.ironic.caSecret"
        }
        Error::NotIronic => "correct spec.ironic.endpoint: it is the API's URL without a version",
        Error::TooLarge(_) => {
            "if spec.ironic.endpoint is right, let the user of spec.ironic.secret see fewer machines, \
             or take what is large out of their extra and properties"
        }
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
