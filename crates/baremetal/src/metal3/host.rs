//! A host of a set, and the next step for its machine at Metal3.

use api::metal3::Image;
use api::problem::Problem;

use crate::hosts;

/// Metal3 as the provisioner of a set.
pub(crate) struct BareMetalHosts;

/// A host whose machine is Metal3's.
pub(super) type Host<'a> = hosts::Host<'a, BareMetalHosts>;
/// The state of such a host.
pub(super) type HostState<'a> = hosts::HostState<'a, BareMetalHosts>;

/// The next step for a machine.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Next {
    /// Write its Secrets.
    Secrets,
    /// Reserve it, or update it before it is provisioned.
    Reserve(Image),
    /// Remove image, data and power.
    TakeBack,
    /// Release it from the set.
    Free,
    /// Wait for Metal3.
    Wait,
    /// It is provisioned, and not powered on.
    Off,
    /// It is provisioned.
    Done {
        /// Whether it has the present config drive.
        is_current: bool,
    },
    /// A user must act.
    Stop(Problem),
}
