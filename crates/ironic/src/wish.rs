//! What a host's machine shall be: what set, host and Secrets together ask of it.

use std::collections::BTreeMap;

use api::baremetal::Image;
use config_drive::Secret;
use operator_core::keyed::Digest;
use serde_json::Value;

/// What a host's machine shall be.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Wish {
    /// By what it is reserved, [`crate::instance_uuid`].
    pub instance: String,
    /// The host's name.
    pub host: String,
    /// The image; what `instance_info` already says where absent.
    pub image: Option<Image>,
    /// Which disk gets it; Ironic's own choice where empty.
    pub root_device: BTreeMap<String, String>,
    /// Hash of its config drive; empty where it is adopted, for then it gets none.
    pub drive: Digest,
    /// The network data of its ramdisk; what others wrote, or DHCP, where absent.
    pub ramdisk: Option<Secret<Value>>,
    /// Whether it runs already, and is only taken over.
    pub adopt: bool,
    /// Whether it may be managed and cleaned first, if it is not available.
    pub provide: bool,
    /// How often it is deployed before a human is asked; at least 1.
    pub attempts: u32,
}
