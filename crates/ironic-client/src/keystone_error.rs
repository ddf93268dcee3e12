//! Errors of the Keystone in front of an Ironic, as errors of requests to that Ironic.

use ironic::Error;
use openstack_client::Error as KeystoneError;

/// Converts an error of Keystone; its text says that it comes from there.
pub(crate) fn of_keystone(error: KeystoneError) -> Error {
    match error {
        KeystoneError::NotUrl => Error::NotUrl,
        KeystoneError::Unreachable(cause) => Error::Unreachable(format!("its Keystone: {cause}")),
        KeystoneError::Untrusted(cause) => {
            Error::Untrusted(format!("that of its Keystone: {cause}"))
        }
        KeystoneError::TooLarge(_) => Error::TooLarge("its Keystone's answer".into()),
        KeystoneError::NoMemory => Error::NoMemory,
        KeystoneError::NotFound
        | KeystoneError::NotTheService
        | KeystoneError::NoEndpoint { .. }
        | KeystoneError::Version { .. } => {
            Error::Credentials("what answers at authURL is no Keystone of version 3".into())
        }
        KeystoneError::Unauthorized => Error::Unauthorized,
        KeystoneError::Forbidden(message) => Error::Forbidden(message),
        KeystoneError::Conflict(message) => Error::Conflict(message),
        KeystoneError::Busy(message) => Error::Busy(message),
        KeystoneError::Refused(message) => Error::Refused(message),
        KeystoneError::Failed(status, message) => Error::Broken(status, message),
        // A login needs no leadership, so it never fails like this.
        KeystoneError::NotLeader => Error::Unreachable("another replica leads now".into()),
    }
}
