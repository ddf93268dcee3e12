//! Why what nova has of a host is unknown.

use api::conditions::Reason;

use crate::nova::drain::progress::HostProgress;
use crate::nova::fault::explained;
use crate::reasons;

/// Returns the reason, and the cause with what a user does about it; `None` where the last pass has
/// found something, or none has ended. `secret` is the cell's Secret with the credentials.
pub fn unknown(progress: &HostProgress, secret: &str) -> Option<(&'static Reason, String)> {
    let (silent, failing) =
        (&reasons::drain::CELL_NOT_ANSWERING, &reasons::drain::NOVA_NOT_ANSWERING);
    match progress {
        HostProgress::Fails(fault) => Some((failing, explained(fault, secret))),
        HostProgress::Unread { cell } => {
            let text = format!(
                "nova's API cannot be read without all inputs of NovaCell {cell}: see its \
                 condition InputReady."
            );
            Some((failing, text))
        }
        HostProgress::CellUnknown => {
            let text = "its cell is not known: see CellMatches of its NovaExternalCompute.";
            Some((&reasons::drain::CELL_UNKNOWN, text.to_owned()))
        }
        HostProgress::CellNotAnswering => {
            let text = "the database of its cell does not answer nova's API: start that database.";
            Some((silent, text.to_owned()))
        }
        HostProgress::CellNotConfirmed => {
            let text = "nova has no service of it, and no other host shows that the database of \
                        its cell answers: look whether it runs, and whether keystoneAuthURL and \
                        RegionName of the cell are those of its nova.";
            Some((silent, text.to_owned()))
        }
        HostProgress::OtherIdentity(cause) => {
            Some((&reasons::drain::OTHER_IDENTITY, cause.clone()))
        }
        HostProgress::Pending
        | HostProgress::NotFound
        | HostProgress::Occupied(_)
        | HostProgress::Drained
        | HostProgress::DisabledByNova
        | HostProgress::Empty
        | HostProgress::OtherService { .. }
        | HostProgress::OtherHost { .. }
        | HostProgress::NotReporting
        | HostProgress::Released
        | HostProgress::Removing(_)
        | HostProgress::Identity(_) => None,
    }
}
