//! What is known of the machine of a host that is provisioned for it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine of a host, as the `OpenStackBaremetalSet` of its role, node or node set reports it.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own that a status reports")]
pub struct HostMachine {
    /// The name by which a set was asked for it; absent where no set has the host any more. It stays,
    /// whatever the host is called later: under another name another machine would be taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub host: Option<String>,
    /// On a node set: the key in `spec.nodes` of the host that has it. The host keeps it, whatever its
    /// `hostName` says later.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub node: Option<String>,
    /// UUID of Ironic's node, or name of the `BareMetalHost`; absent while none is chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Its state, in the provisioner's words; `requested` while there are none.
    pub state: String,
    /// When the state was first seen.
    pub since: Time,
    /// Which installation is on it: another value is another system under the same name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installation: Option<String>,
    /// When the installation was first seen complete, in whole seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<Time>,
    /// Whether the installation ran before and was adopted: what was deployed to it stays deployed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    /// Whether the host's ssh server was seen to answer since then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reachable: bool,
    /// Whether services may begin on the host: the machine is there, and its ssh server has answered
    /// or was waited for long enough.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ready: bool,
    /// Fingerprint of the ssh key of the installation before, which is accepted no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub former_key: Option<String>,
}

impl HostMachine {
    /// Whether a name was given to a machine by which it stays known: before one is chosen, the name can
    /// be corrected.
    pub fn is_chosen(&self) -> bool {
        self.machine.is_some() || self.installation.is_some()
    }

    /// Which installation was made for the host; none while it runs on one that was there before.
    pub fn own_installation(&self) -> Option<&str> {
        self.installation.as_deref().filter(|_| !self.adopted)
    }
}
