//! Instructions for users about machines of Ironic: how a host gets one, or loses it, and what its
//! errors mean.

use ironic::{Error, NoMachine, Node, State};

use super::Nodes;
use crate::hosts::Host;
use crate::observe::Observed;
use crate::remediation::forgotten;

/// Returns what to do about a host for which there is no machine.
pub(crate) fn remedy(seen: &Observed, host: &Host<'_, Nodes>, none: &NoMachine) -> String {
    let is_provided = seen.set.spec.ironic.as_ref().is_some_and(|it| it.provide);
    let would_do = |(lack, _): &(String, usize)| {
        [State::Enroll, State::Manageable].iter().any(|it| *lack == format!("in state {it}"))
    };
    let is_adopted = host.desired.is_some_and(|it| it.adopt);
    let provide = if !is_provided && !is_adopted && none.excluded.iter().any(would_do) {
        "set spec.ironic.provide to true to clean and use machines that are not available, "
    } else {
        ""
    };
    format!(
        "{provide}enroll another machine, free or repair one of these, or correct the requirements \
         in spec.ironic.machine and spec.baremetalHosts[{}].machine",
        host.name
    )
}

/// Describes a machine that went away while it was running, or before it was given back.
pub(crate) fn gone(
    seen: &Observed,
    host: &Host<'_, Nodes>,
    uuid: &str,
    node: Option<&Node>,
) -> String {
    let name = &host.name;
    let what = match node {
        None => format!("its machine {uuid} no longer exists in Ironic"),
        Some(node) => {
            let whose = match &node.instance_uuid {
                None => "no longer reserved for it".to_owned(),
                Some(other) => format!("now reserved by instance {other}"),
            };
            format!("its machine {} is {} and {whose}", node.title(), node.provision_state)
        }
    };
    let is_others = node.is_some_and(|it| it.instance_uuid.is_some());
    let risk = match host.desired {
        Some(_) if is_others => format!(
            "; check whether it was redeployed there or still answers at the address of {name}, \
             and once that address is free"
        ),
        Some(_) => {
            ", so two machines could answer at one address if another was chosen; make sure that \
             it is off, and then"
                .to_owned()
        }
        None => ", so it is unknown whether it was released; check that spec.ironic and its \
                 credentials are those with which it was reserved; if it is permanently gone,"
            .to_owned(),
    };
    format!("{what}{risk} {}", forgotten(seen, name))
}

/// Returns what to do about an error.
pub(crate) fn next_step(error: &Error) -> &'static str {
    match error {
        Error::NotUrl => "correct spec.ironic.endpoint",
        Error::Unreachable(_) => {
            "check spec.ironic.endpoint and the network path; it is retried automatically"
        }
        Error::Untrusted(_) => "name a Secret with its CA certificate in spec.ironic.caSecret",
        Error::NotIronic => "correct spec.ironic.endpoint: it is the API's URL without a version",
        Error::TooLarge(_) => {
            "if spec.ironic.endpoint is right, let the user of spec.ironic.secret see fewer machines, \
             or remove large values from their extra and properties"
        }
        Error::Version { .. } => "use another Ironic, or another release of these operators",
        Error::Unauthorized => "correct the Secret that spec.ironic.secret names",
        Error::Forbidden(_) => "give the user of spec.ironic.secret the role of an administrator",
        Error::Credentials(_) => "correct the Secret",
        Error::NoMemory
        | Error::NotFound
        | Error::Conflict(_)
        | Error::Busy(_)
        | Error::Broken(..) => "it is retried automatically",
        Error::Refused(_) => "correct what it names",
    }
}
