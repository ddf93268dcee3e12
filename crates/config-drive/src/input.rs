//! The input of a drive: the description of a host, not validated yet.
//!
//! Values stay as users wrote them; [`crate::faults`] validates them.

use std::collections::BTreeMap;

use serde::Deserialize;

use api::secret::Secret;

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
    /// Users who may log in; each may become root without a password.
    pub users: Vec<User>,
    /// The password of root; `None` means that root has none.
    pub root_password: Option<RootPassword>,
    /// Keeps the root partition as large as in the image; otherwise it grows to the end of its
    /// disk.
    pub keep_root_size: bool,
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

/// Root's password.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum RootPassword {
    /// The hash that `mkpasswd` prints: `$6$…`, `$y$…`.
    Hash(Secret<String>),
    /// The password in plain text.
    Plain(Secret<String>),
}

/// Links, and the addresses on them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Network {
    /// Network cards, bonds and VLANs.
    pub links: Vec<Link>,
    /// One entry for each address.
    pub networks: Vec<Subnet>,
}

/// A network card, a bond or a VLAN.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Link {
    /// The id in references; for a bond also its name on the host, see [`LinkKind::Bond`].
    pub id: String,
    /// The largest packet in bytes. It is required, because Ironic may replace network data without
    /// it.
    pub mtu: i64,
    /// Its kind.
    pub kind: LinkKind,
}

/// The kind of a link.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum LinkKind {
    /// The network card with this MAC address, regardless of its name.
    Mac(String),
    /// The network card with this name.
    Name(String),
    /// A bond of network cards. cloud-init names bonds itself, beginning with `bond0`, so the id
    /// must be that.
    Bond {
        /// Ids of its links; at least two.
        members: Vec<String>,
        /// The kernel's name of the mode, such as `802.3ad`.
        mode: String,
        /// Other options of the kernel, such as `lacp_rate`; `miimon` defaults to 100 unless
        /// `arp_interval` is set.
        #[serde(default)]
        options: BTreeMap<String, String>,
    },
    /// A VLAN on a network card or a bond.
    Vlan {
        /// Id of the underlying link.
        parent: String,
        /// The VLAN id, 1 to 4094.
        vlan_id: i64,
    },
}

/// An address of the host, with its routes and name servers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Subnet {
    /// Id of the link with this address.
    pub link: String,
    /// Address and prefix length, as in `192.0.2.10/24` or `2001:db8::a/64`.
    pub address: String,
    /// The default gateway of this address family.
    pub gateway: Option<String>,
    /// Further routes.
    pub routes: Vec<Route>,
    /// Name servers, at most three.
    pub dns_servers: Vec<String>,
    /// Domains in which short names are looked up.
    pub dns_search: Vec<String>,
}

/// A route.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Route {
    /// The destination network, as in `198.51.100.0/24`.
    pub destination: String,
    /// The address of the gateway.
    pub gateway: String,
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
