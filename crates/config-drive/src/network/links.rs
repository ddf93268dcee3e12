//! Network cards, bonds and VLANs.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::link_lookup::{bond_of, is_card, link, one_of};
use crate::fault::Fault;
use crate::input::{Link, LinkKind, Network};

/// MTUs that Linux accepts for an Ethernet device, in bytes (`ETH_MIN_MTU`, `ETH_MAX_MTU`).
const MTU: std::ops::RangeInclusive<i64> = 68..=65535;
/// VLAN ids; 0 and 4095 are reserved (IEEE 802.1Q).
const VLAN: std::ops::RangeInclusive<i64> = 1..=4094;
/// Maximum length of an interface's name (IFNAMSIZ without the terminator).
const NAME_LIMIT: usize = 15;
/// Maximum length of an id.
const ID_LIMIT: usize = 64;

/// The kernel's bonding modes.
const MODES: [&str; 7] = [
    "802.3ad",
    "active-backup",
    "balance-alb",
    "balance-rr",
    "balance-tlb",
    "balance-xor",
    "broadcast",
];
/// The kernel's other bonding options that cloud-init passes on.
const OPTIONS: [&str; 14] = [
    "ad_select",
    "arp_interval",
    "arp_ip_target",
    "arp_validate",
    "downdelay",
    "fail_over_mac",
    "lacp_rate",
    "miimon",
    "min_links",
    "num_grat_arp",
    "primary",
    "primary_reselect",
    "updelay",
    "xmit_hash_policy",
];
/// Default interval in milliseconds at which a bond monitors its members.
const MIIMON: &str = "100";

/// Returns the entry of a link. Id and name are equal if the input has the name.
pub(super) fn data(it: &Link, network: &Network) -> Value {
    let mut entry = json!({"id": it.id, "mtu": it.mtu, "type": "phy"});
    match &it.kind {
        LinkKind::Mac(_) => entry["ethernet_mac_address"] = json!(mac(it)),
        LinkKind::Name(name) => entry["name"] = json!(name),
        LinkKind::Bond { members, mode, options } => {
            entry["type"] = json!("bond");
            entry["name"] = json!(it.id);
            entry["bond_links"] = json!(members);
            entry["bond_mode"] = json!(mode);
            if !options.contains_key("miimon") && !options.contains_key("arp_interval") {
                entry["bond_miimon"] = json!(MIIMON);
            }
            for (name, value) in options {
                entry[format!("bond_{name}")] = json!(value);
            }
        }
        LinkKind::Vlan { parent, vlan_id } => {
            entry["type"] = json!("vlan");
            entry["vlan_link"] = json!(parent);
            entry["vlan_id"] = json!(vlan_id);
            // cloud-init requires the key, and null if the parent's address is unknown.
            entry["vlan_mac_address"] = json!(link(&network.links, parent).and_then(mac));
        }
    }
    entry
}

/// Returns the lower-case MAC address of a link that is identified by it; `None` otherwise.
pub(super) fn mac(link: &Link) -> Option<String> {
    let LinkKind::Mac(text) = &link.kind else { return None };
    let bytes: Vec<u8> = text.split(':').filter_map(|it| u8::from_str_radix(it, 16).ok()).collect();
    let is_form = text.len() == 17 && text.split(':').all(|it| it.len() == 2 && !it.contains('+'));
    // Multicast addresses and zero belong to no card.
    let is_card = bytes.len() == 6 && bytes[0] & 1 == 0 && bytes.iter().any(|it| *it != 0);
    (is_form && is_card).then(|| text.to_ascii_lowercase())
}

/// Returns all faults of the links.
pub(super) fn faults(links: &[Link]) -> Vec<Fault> {
    let mut faults = Vec::new();
    if links.is_empty() {
        let way = "list the links, or leave network out to use the image's DHCP";
        faults.push(Fault::hidden("links", "has no entry", way));
    }
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    let mut n_bonds = 0;
    for (idx, it) in links.iter().enumerate() {
        let mut own = common(it, &links[..idx]);
        match &it.kind {
            LinkKind::Mac(text) => own.extend(of_mac(it, text)),
            LinkKind::Name(name) => own.extend(of_name(name)),
            LinkKind::Bond { members, mode, options } => {
                own.extend(of_bond_id(it, n_bonds));
                own.extend(of_members(it, members, links));
                own.extend(of_options(mode, options, members, links));
                n_bonds += 1;
            }
            LinkKind::Vlan { parent, vlan_id } => own.extend(of_vlan(it, parent, *vlan_id, links)),
        }
        if let Some((path, name)) = name(it, links)
            && let Some(other) = names.insert(name.clone(), &it.id)
        {
            let way = "write one link for each card, bond and VLAN";
            own.push(Fault::new(path, name, format!("is the same as link {other}"), way));
        }
        faults.extend(own.into_iter().map(|fault| fault.below(&format!("links[{idx}]"))));
    }
    faults
}

/// Returns what identifies a link among the others, and its field.
fn name(it: &Link, links: &[Link]) -> Option<(&'static str, String)> {
    match &it.kind {
        LinkKind::Mac(_) => Some(("kind.mac", mac(it)?)),
        LinkKind::Name(name) => Some(("kind.name", name.clone())),
        LinkKind::Bond { .. } => Some(("id", it.id.clone())),
        LinkKind::Vlan { parent, vlan_id } => {
            let parent = name(link(links, parent).filter(|it| !is_vlan(it))?, links)?.1;
            Some(("kind.vlan.vlanId", format!("{parent}.{vlan_id}")))
        }
    }
}

fn is_vlan(link: &Link) -> bool {
    matches!(link.kind, LinkKind::Vlan { .. })
}

fn common(it: &Link, before: &[Link]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let is_inner = |it: u8| it.is_ascii_alphanumeric() || b"._-".contains(&it);
    if it.id.is_empty() || it.id.len() > ID_LIMIT || !it.id.bytes().all(is_inner) {
        let way = "use 1 to 64 of a-z, A-Z, 0-9, '.', '_' and '-'";
        faults.push(Fault::new("id", &it.id, "is not a valid id", way));
    } else if link(before, &it.id).is_some() {
        faults.push(Fault::new("id", &it.id, "is listed twice", "give each link its own id"));
    }
    if !MTU.contains(&it.mtu) {
        let way = "use 68 to 65535 bytes, mostly 1500 or 9000";
        faults.push(Fault::new("mtu", it.mtu, "is out of range", way));
    }
    faults
}

fn of_mac(it: &Link, text: &str) -> Option<Fault> {
    let way = "write six bytes in hexadecimal with colons, as in 52:54:00:12:34:56";
    mac(it).is_none().then(|| Fault::new("kind.mac", text, "is not the MAC address of a card", way))
}

fn of_name(name: &str) -> Option<Fault> {
    let is_inner = |it: u8| it.is_ascii_graphic() && !b"/:%".contains(&it);
    let is_good = (1..=NAME_LIMIT).contains(&name.len()) && name.bytes().all(is_inner);
    let is_reserved = ["lo", ".", ".."].contains(&name);
    let way = "use the name that Linux gives the card, such as eno1";
    (!is_good || is_reserved).then(|| Fault::new("kind.name", name, "is not a card name", way))
}

fn of_bond_id(it: &Link, n_before: usize) -> Option<Fault> {
    let expected = format!("bond{n_before}");
    let cause = "is not the name that cloud-init gives this bond, by its position among the bonds";
    let way = format!("use {expected}");
    (it.id != expected).then(|| Fault::new("id", &it.id, cause, way))
}

fn of_members(it: &Link, members: &[String], links: &[Link]) -> Vec<Fault> {
    let mut faults = Vec::new();
    if members.len() < 2 {
        let text = members.join(", ");
        let way = "name at least two, or give the addresses to the card itself";
        faults.push(Fault::new("kind.bond.members", text, "are fewer than two", way));
    }
    for (idx, id) in members.iter().enumerate() {
        let path = format!("kind.bond.members[{idx}]");
        let mut wrong = |cause: String, way: &str| {
            faults.push(Fault::new(&path, id, cause, way));
        };
        let Some(member) = link(links, id).filter(|it| is_card(it)) else {
            let cards = one_of(links.iter().filter(|it| is_card(it)));
            wrong("is the id of no network card".into(), &cards);
            continue;
        };
        let owner = bond_of(links, id).unwrap_or(it);
        if members[..idx].contains(id) {
            wrong("is listed twice".into(), "name each card once");
        } else if owner.id != it.id {
            wrong(format!("already belongs to {}", owner.id), "keep it in only one of them");
        } else if member.mtu < it.mtu {
            let cause = format!("has an MTU of {}, less than its bond's {}", member.mtu, it.mtu);
            wrong(cause, "raise the card's, or lower the bond's");
        }
    }
    faults
}

fn of_options(
    mode: &str,
    options: &BTreeMap<String, String>,
    members: &[String],
    links: &[Link],
) -> Vec<Fault> {
    let mut faults = Vec::new();
    if !MODES.contains(&mode) {
        let way = format!("use one of {}", MODES.join(", "));
        faults.push(Fault::new("kind.bond.mode", mode, "is not a bond mode", way));
    }
    for (name, value) in options {
        let path = format!("kind.bond.options.{name}");
        let is_inner = |it: u8| it.is_ascii_alphanumeric() || b"._+,:-".contains(&it);
        let names = members.iter().filter_map(|it| match &link(links, it)?.kind {
            LinkKind::Name(name) => Some(name),
            LinkKind::Mac(_) | LinkKind::Bond { .. } | LinkKind::Vlan { .. } => None,
        });
        if !OPTIONS.contains(&name.as_str()) {
            let way = format!("use one of {}", OPTIONS.join(", "));
            faults.push(Fault::new(path, name, "is not a bond option", way));
        } else if value.is_empty() || !value.bytes().all(is_inner) {
            let way = "write it as the kernel's documentation of bonds does";
            faults.push(Fault::new(path, value, "is not a valid value for this option", way));
        } else if name == "primary" && !names.clone().any(|it| it == value) {
            let cause = "is not a member known by name";
            let way =
                "name the interface, and give that link by its name instead of its MAC address";
            faults.push(Fault::new(path, value, cause, way));
        }
    }
    faults
}

fn of_vlan(it: &Link, parent: &str, vlan_id: i64, links: &[Link]) -> Vec<Fault> {
    let mut faults = Vec::new();
    if !VLAN.contains(&vlan_id) {
        let cause = "is not a VLAN ID";
        faults.push(Fault::new("kind.vlan.vlanId", vlan_id, cause, "use 1 to 4094"));
    }
    let path = "kind.vlan.parent";
    let may = |it: &&Link| !is_vlan(it) && bond_of(links, &it.id).is_none();
    let Some(below) = link(links, parent).filter(may) else {
        let cause = "is not the id of a bond or of a card outside a bond";
        faults.push(Fault::new(path, parent, cause, one_of(links.iter().filter(may))));
        return faults;
    };
    if it.mtu > below.mtu {
        let cause = format!("is more than the {} of {parent} below", below.mtu);
        faults.push(Fault::new("mtu", it.mtu, cause, "lower it, or raise the other"));
    }
    let known = match &below.kind {
        LinkKind::Name(name) => Some(name),
        LinkKind::Bond { .. } => Some(&below.id),
        LinkKind::Mac(_) | LinkKind::Vlan { .. } => None,
    };
    let name = known.map(|it| format!("{it}.{vlan_id}")).unwrap_or_default();
    if name.len() > NAME_LIMIT {
        let cause = format!("gives the VLAN the name {name}, but Linux allows 15 characters");
        faults.push(Fault::new(path, parent, cause, "give the card a shorter name, or use a bond"));
    }
    faults
}
