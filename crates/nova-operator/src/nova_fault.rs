//! What a user does about a fault of a service of OpenStack.

use openstack_client::{Error, Fault};

/// Returns what a user does about a fault; `secret` is the cell's Secret with the credentials.
pub fn next_step(fault: &Fault, secret: &str) -> String {
    match &fault.error {
        Error::Unauthorized => format!("Correct ServicePassword in Secret {secret}."),
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
        | Error::Version { .. }
        | Error::NotFound
        | Error::Conflict(_)
        | Error::Busy(_)
        | Error::Refused(_)
        | Error::Failed(..) => {
            format!("Look at {} and its log.", fault.service.name())
        }
    }
}
