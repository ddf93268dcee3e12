//! The input of a drive: the description of a host, not validated yet.
//!
//! Values stay as users wrote them; [`crate::Drive::of`] validates them.

use std::slice;

use api::baremetal::template::Bond;
use api::secret::Secret;
use serde::Deserialize;

/// A host that is to be deployed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Host {
    /// The host's name, one DNS label.
    pub host_name: String,
    /// The fully qualified name, at most 64 characters.
    pub fqdn: Option<String>,
    /// Identifies this deployment of the machine; with another one cloud-init starts over.
    pub instance_uuid: String,
    /// The user who may log in, and may become root without a password.
    pub user: User,
    /// The password of root, or the hash of it that `mkpasswd` prints: `$6$…`, `$y$…`. `None` means
    /// that root has none.
    pub root_password: Option<Secret<String>>,
    /// The network; `None` leaves it to the image, which mostly uses DHCP.
    pub network: Option<Network>,
    /// The user's texts, which replace or extend what is made here.
    pub given: UserTexts,
}

/// A user who may log in with a key.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct User {
    /// The login name.
    pub name: String,
    /// Lines as in `~/.ssh/authorized_keys`, one key each.
    pub authorized_keys: Vec<String>,
}

/// The address of a host, and the links that lead to it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Network {
    /// The network card, or the bond of several.
    pub uplink: Uplink,
    /// The VLAN on the uplink that has the address, 1 to 4094; `None` when the uplink has it.
    #[serde(default)]
    pub vlan_id: Option<i64>,
    /// The largest packet of all links in bytes. It is required, because Ironic may replace network
    /// data without it.
    pub mtu: i64,
    /// Address and prefix length, as in `192.0.2.10/24` or `2001:db8::a/64`.
    pub address: String,
    /// The default gateway.
    #[serde(default)]
    pub gateway: Option<String>,
    /// Name servers, at most three.
    #[serde(default)]
    pub dns_servers: Vec<String>,
    /// Domains in which short names are looked up.
    #[serde(default)]
    pub dns_search: Vec<String>,
}

/// What connects a host.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Uplink {
    /// The network card with this name.
    Card(String),
    /// A bond of network cards.
    Bond(Bond),
}

impl Uplink {
    /// Returns the names of the network cards.
    pub(crate) fn cards(&self) -> &[String] {
        match self {
            Self::Card(name) => slice::from_ref(name),
            Self::Bond(bond) => &bond.bond_interfaces,
        }
    }
}

/// Texts from the user's own Secrets. They may be secret, so no fault repeats them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct UserTexts {
    /// Replaces the generated cloud-config; in any form that cloud-init reads.
    pub user_data: Option<Secret<String>>,
    /// Replaces the network data; YAML or JSON, with `links` and `networks` as in OpenStack.
    pub network_data: Option<Secret<String>>,
    /// Keys that extend the metadata or override its own; YAML or JSON.
    pub meta_data: Option<Secret<String>>,
    /// The vendor data; YAML or JSON. Without it there is none.
    pub vendor_data: Option<Secret<String>>,
}
