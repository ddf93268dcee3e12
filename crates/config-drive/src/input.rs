//! What a drive is made from: a host as whoever deploys it describes it, not judged yet.
//!
//! Values that humans write stay as they wrote them; [`crate::faults`] says what is wrong with them.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::secret::Secret;

/// A host that is to be deployed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Host {
    /// The host's name, one DNS label.
    pub host_name: String,
    /// The whole name with its domain, at most 64 characters.
    pub fqdn: Option<String>,
    /// Names this deployment of the machine; another one makes cloud-init begin anew.
    pub instance_uuid: String,
    /// Who may log in; each may become root without a password.
    pub users: Vec<User>,
    /// The password of root; none without it.
    pub root_password: Option<RootPassword>,
    /// Leaves the root partition as large as the image made it; else it grows to the end of its disk.
    pub keep_root_size: bool,
    /// The network; without one the image's own way holds, which is mostly DHCP.
    pub network: Option<Network>,
    /// What a human gives in place of what is made here, or on top of it.
    pub given: Given,
}

/// Somebody who may log in with a key.
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
    /// As `mkpasswd` prints it: `$6$…`, `$y$…`.
    Hash(Secret<String>),
    /// As it is typed.
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
    /// How other entries refer to it; of a bond also its name on the host, see [`LinkKind::Bond`].
    pub id: String,
    /// The largest packet in bytes. Always given: Ironic may replace network data without it.
    pub mtu: i64,
    /// What it is.
    pub kind: LinkKind,
}

/// What a link is.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum LinkKind {
    /// The network card with this MAC address, whatever its name is.
    Mac(String),
    /// The network card with this name.
    Name(String),
    /// Several network cards as one. cloud-init names bonds itself, `bond0` first: so must its id.
    Bond {
        /// Ids of the links that belong to it; at least two.
        members: Vec<String>,
        /// The kernel's name of the mode, such as `802.3ad`.
        mode: String,
        /// The kernel's other options, such as `lacp_rate`; `miimon` is 100 unless it is given, or
        /// `arp_interval` is.
        #[serde(default)]
        options: BTreeMap<String, String>,
    },
    /// A VLAN on a network card or a bond.
    Vlan {
        /// Id of the link below.
        parent: String,
        /// Its number, 1 to 4094.
        vlan_id: i64,
    },
}

/// An address of the host, and what goes with it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Subnet {
    /// Id of the link that has it.
    pub link: String,
    /// Address and prefix length, as in `192.0.2.10/24` or `2001:db8::a/64`.
    pub address: String,
    /// The default gateway of this family of addresses.
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
    /// The network that it leads to, as in `198.51.100.0/24`.
    pub destination: String,
    /// The address that it leads through.
    pub gateway: String,
}

/// Contents of the human's own Secrets, as texts. They may be secret, so no fault repeats them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Given {
    /// Takes the place of the cloud-config that would be made; any form that cloud-init knows.
    pub user_data: Option<Secret<String>>,
    /// Takes the place of the network data; YAML or JSON, `links` and `networks` as in OpenStack.
    pub network_data: Option<Secret<String>>,
    /// Keys that are added to the metadata, or replace its own; YAML or JSON.
    pub meta_data: Option<Secret<String>>,
    /// The vendor data; YAML or JSON. There is none without it.
    pub vendor_data: Option<Secret<String>>,
}
