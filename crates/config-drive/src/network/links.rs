//! The network cards, their bond, and the VLAN on it.

use std::collections::BTreeMap;

use api::baremetal::template::Bond;
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::input::{Network, Uplink};

/// MTUs that Linux accepts for an Ethernet device, in bytes (`ETH_MIN_MTU`, `ETH_MAX_MTU`).
const MTU: std::ops::RangeInclusive<i64> = 68..=65535;
/// VLAN ids; 0 and 4095 are reserved (IEEE 802.1Q).
const VLAN: std::ops::RangeInclusive<i64> = 1..=4094;
/// Maximum length of an interface's name (IFNAMSIZ without the terminator).
const NAME_LIMIT: usize = 15;

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

/// The id and the name of the bond, which is what cloud-init calls the first one.
const BOND: &str = "bond0";

/// Returns the id of a network card, by its place among the cards.
///
/// It is not the card's name, so that a name that cannot be used is reported once.
fn card_id(idx: usize) -> String {
    format!("nic{idx}")
}

/// Returns the ids of all network cards.
fn card_ids(uplink: &Uplink) -> Vec<String> {
    (0..uplink.cards().len()).map(card_id).collect()
}

/// Returns the id of the card or the bond.
fn uplink_id(network: &Network) -> String {
    match &network.uplink {
        Uplink::Card(_) => card_id(0),
        Uplink::Bond(_) => BOND.to_owned(),
    }
}

/// Returns the id of the link with the address.
pub(super) fn id(network: &Network) -> String {
    network.vlan_id.map_or_else(|| uplink_id(network), |it| format!("vlan{it}"))
}

/// Returns the entries of all links, each before those on it.
pub(super) fn data(network: &Network) -> Vec<Value> {
    let Network { uplink, mtu, vlan_id, .. } = network;
    let card = |(idx, name): (usize, &String)| {
        let id = card_id(idx);
        json!({"id": id, "mtu": mtu, "type": "phy", "name": name})
    };
    let mut links: Vec<Value> = uplink.cards().iter().enumerate().map(card).collect();
    if let Uplink::Bond(Bond { bond_mode, bond_options, .. }) = uplink {
        let mut bond = json!({
            "id": BOND, "mtu": mtu, "type": "bond", "name": BOND, "bond_links": card_ids(uplink),
            "bond_mode": bond_mode,
        });
        if !["miimon", "arp_interval"].iter().any(|it| bond_options.contains_key(*it)) {
            bond["bond_miimon"] = json!(MIIMON);
        }
        for (name, value) in bond_options {
            bond[format!("bond_{name}")] = json!(value);
        }
        links.push(bond);
    }
    links.extend(vlan_id.map(|vlan_id| {
        json!({
            "id": id(network), "mtu": mtu, "type": "vlan", "vlan_link": uplink_id(network),
            // cloud-init requires the key, and null where the address of the link below is unknown.
            "vlan_id": vlan_id, "vlan_mac_address": null,
        })
    }));
    links
}

/// Returns all faults of the links.
pub(super) fn faults(network: &Network) -> Vec<Fault> {
    let Network { uplink, mtu, vlan_id, .. } = network;
    let mut faults = Vec::new();
    if !MTU.contains(mtu) {
        let way = "use 68 to 65535 bytes, mostly 1500 or 9000";
        faults.push(Fault::new("mtu", mtu, "is out of range", way));
    }
    faults.extend(uplink.cards().iter().filter_map(|it| of_card(it)));
    if let Uplink::Bond(Bond { bond_interfaces, bond_mode, bond_options }) = uplink {
        if bond_interfaces.len() < 2 {
            let way = "name at least two, or give the addresses to the card itself";
            let ids = card_ids(uplink).join(", ");
            faults.push(Fault::new("cards", ids, "are fewer than two", way));
        }
        if !MODES.contains(&bond_mode.as_str()) {
            let way = format!("use one of {}", MODES.join(", "));
            faults.push(Fault::new("bond.mode", bond_mode, "is not a bond mode", way));
        }
        faults.extend(of_options(bond_options, bond_interfaces));
    }
    faults.extend(vlan_id.iter().flat_map(|it| of_vlan(network, *it)));
    faults.extend(of_names(network));
    faults
}

fn of_card(name: &str) -> Option<Fault> {
    let is_inner = |it: u8| it.is_ascii_graphic() && !b"/:%".contains(&it);
    let is_good = (1..=NAME_LIMIT).contains(&name.len()) && name.bytes().all(is_inner);
    let is_reserved = ["lo", ".", ".."].contains(&name);
    let way = "use the name that Linux gives the card, such as eno1";
    (!is_good || is_reserved).then(|| Fault::new("cards", name, "is not a card name", way))
}

fn of_options(options: &BTreeMap<String, String>, cards: &[String]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (name, value) in options {
        let path = format!("bond.options.{name}");
        let is_inner = |it: u8| it.is_ascii_alphanumeric() || b"._+,:-".contains(&it);
        if !OPTIONS.contains(&name.as_str()) {
            let way = format!("use one of {}", OPTIONS.join(", "));
            faults.push(Fault::new(path, name, "is not a bond option", way));
        } else if value.is_empty() || !value.bytes().all(is_inner) {
            let way = "write it as the kernel's documentation of bonds does";
            faults.push(Fault::new(path, value, "is not a valid value for this option", way));
        } else if name == "primary" && !cards.contains(value) {
            let cause = "is no card of the bond";
            let way = "name one of the cards of the bond";
            faults.push(Fault::new(path, value, cause, way));
        }
    }
    faults
}

/// Returns the name that the host gives the VLAN.
fn vlan_name(uplink: &Uplink, vlan_id: i64) -> String {
    match uplink {
        Uplink::Card(name) => format!("{name}.{vlan_id}"),
        Uplink::Bond(_) => format!("{BOND}.{vlan_id}"),
    }
}

fn of_vlan(network: &Network, vlan_id: i64) -> Vec<Fault> {
    let mut faults = Vec::new();
    if !VLAN.contains(&vlan_id) {
        faults.push(Fault::new("vlanId", vlan_id, "is not a VLAN ID", "use 1 to 4094"));
    }
    let name = vlan_name(&network.uplink, vlan_id);
    if name.len() > NAME_LIMIT {
        let cause = format!("gives the VLAN the name {name}, but Linux allows 15 characters");
        let way = "give the card a shorter name, or use a bond";
        faults.push(Fault::new("vlanId", uplink_id(network), cause, way));
    }
    faults
}

/// Returns the faults of links that have one name.
fn of_names(network: &Network) -> Vec<Fault> {
    let Network { uplink, vlan_id, .. } = network;
    let cards = uplink.cards().iter().cloned().zip(card_ids(uplink)).map(|it| ("cards", it));
    let bond = matches!(uplink, Uplink::Bond(_));
    let bond = bond.then(|| ("cards", (BOND.to_owned(), BOND.to_owned())));
    let vlan = vlan_id.map(|it| ("vlanId", (vlan_name(uplink, it), id(network))));
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    let again = cards.chain(bond).chain(vlan).filter_map(|(path, (name, id))| {
        let other = known.insert(name.clone(), id)?;
        let way = "write one link for each card, bond and VLAN";
        Some(Fault::new(path, name, format!("is the same as link {other}"), way))
    });
    again.collect()
}
