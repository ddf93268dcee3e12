//! `network_data.json` of OpenStack: links, the addresses on them, and what is wrong with either.

mod links;
mod subnets;

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::Fault;
use crate::input::{Link, LinkKind, Network};

/// The network data, with every fault of the input. It is of use only without faults.
pub(crate) fn data(network: &Network, faults: &mut Vec<Fault>) -> Value {
    let mut own = links::faults(&network.links);
    own.extend(subnets::faults(network));
    faults.extend(own.into_iter().map(|it| it.below("network")));
    let networks = network.networks.iter().enumerate();
    json!({
        "links": network.links.iter().map(|it| links::data(it, network)).collect::<Vec<_>>(),
        "networks": networks.filter_map(|(idx, it)| subnets::data(idx, it)).collect::<Vec<_>>(),
        // Name servers stand in the networks: from here, cloud-init would have NetworkManager leave
        // resolv.conf alone for ever.
        "services": [],
    })
}

/// The addresses of a network, each with its path.
pub(crate) fn addresses(network: &Network) -> impl Iterator<Item = (String, IpAddr)> {
    let path = |idx| format!("network.networks[{idx}].address");
    let all = network.networks.iter().enumerate();
    all.filter_map(move |(idx, it)| Some((path(idx), subnets::address(it).ok()?.addr())))
}

/// The MAC addresses of a network, each with its path.
pub(crate) fn macs(network: &Network) -> impl Iterator<Item = (String, String)> {
    let path = |idx| format!("network.links[{idx}].kind.mac");
    let all = network.links.iter().enumerate();
    all.filter_map(move |(idx, it)| Some((path(idx), links::mac(it)?)))
}

/// The link of that id.
fn link<'a>(links: &'a [Link], id: &str) -> Option<&'a Link> {
    links.iter().find(|it| it.id == id)
}

/// The ids that a reference may name, as the legal way of a fault.
fn one_of<'a>(links: impl Iterator<Item = &'a Link>) -> String {
    let ids: Vec<&str> = links.map(|it| it.id.as_str()).collect();
    if ids.is_empty() {
        "write links first".into()
    } else {
        format!("name one of {}", ids.join(", "))
    }
}

/// Whether it is a network card, which bonds and VLANs may lie on.
fn is_card(link: &Link) -> bool {
    matches!(link.kind, LinkKind::Mac(_) | LinkKind::Name(_))
}

/// The bond that a link belongs to.
fn bond_of<'a>(links: &'a [Link], id: &str) -> Option<&'a Link> {
    let has = |it: &&Link| matches!(&it.kind, LinkKind::Bond { members, .. } if members.iter().any(|it| it == id));
    links.iter().find(has)
}
