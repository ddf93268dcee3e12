//! The desired state of a host's machine, from set, host and Secrets.

use std::collections::BTreeMap;

use api::baremetal::Image;
use api::secret::Secret;
use operator_core::keyed::Digest;
use serde_json::Value;

/// The desired state of a host's machine.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DesiredMachine {
    /// The UUID that reserves it, [`crate::instance_uuid`].
    pub instance: String,
    /// The host's name.
    pub host: String,
    /// The image; `None` keeps what `instance_info` has.
    pub image: Option<Image>,
    /// Hints for the disk that gets the image; empty leaves the choice to Ironic.
    pub root_device: BTreeMap<String, String>,
    /// Digest of its config drive; empty for an adopted machine, which gets none.
    pub drive: Digest,
    /// The network data of its ramdisk; `None` leaves that of others, or DHCP.
    pub ramdisk: Option<Secret<Value>>,
    /// Whether the machine already runs and is only adopted.
    pub adopt: bool,
    /// Whether the machine may be managed and cleaned first, if it is not available.
    pub provide: bool,
    /// How often it is deployed before the user has to act; at least 1.
    pub attempts: u32,
}
