//! What a user does about a fault of a service of OpenStack.

use openstack_client::{Error, Fault};

/// Returns the cause and what a user does about it, as sentences; `secret` is the cell's Secret with
/// the credentials.
pub fn explained(fault: &Fault, secret: &str) -> String {
    format!("{}. {}", cause(fault), next_step(fault, secret))
}

/// Returns the cause without a full stop, which a service may have put there.
pub fn cause(fault: &Fault) -> String {
    fault.to_string().trim_end_matches('.').to_owned()
}

/// Returns what a user does about a fault; `secret` is the cell's Secret with the credentials.
pub fn next_step(fault: &Fault, secret: &str) -> String {
    match &fault.error {
        Error::Unauthorized if fault.is_of_token() => format!(
            "Look at [keystone_authtoken], the clock and the log of {}; it checks the token with a \
             Keystone of its own.",
            fault.service.name()
        ),
        Error::Unauthorized => format!(
            "Correct ServicePassword in Secret {secret}, or ACID and ACSecret there if it has them."
        ),
        Error::Forbidden(_) => {
            "Give the user of the cell the role admin in its project, which reading and \
             changing what nova has of hosts needs."
                .to_owned()
        }
        Error::NoEndpoint { .. } => {
            format!("Correct RegionName in Secret {secret}, or Keystone's catalog.")
        }
        Error::Untrusted(_) => format!("Correct CABundle in Secret {secret}."),
        Error::NotUrl
        | Error::Unreachable(_)
        | Error::NotTheService
        | Error::TooLarge(_)
        | Error::NoMemory
        | Error::Version { .. }
        | Error::NotFound
        | Error::Conflict(_)
        | Error::Busy(_)
        | Error::Refused(_)
        | Error::Failed(..)
        | Error::NotLeader => {
            format!("Look at {} and its log.", fault.service.name())
        }
    }
}
