//! `network_data.json` of OpenStack: links and addresses, with their validation.

mod link_lookup;
mod links;
mod subnets;

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::fault::Fault;
use crate::input::Network;

/// Returns the network data, and adds all faults of the input; it is only valid without faults.
pub(crate) fn data(network: &Network, faults: &mut Vec<Fault>) -> Value {
    let mut own = links::faults(&network.links);
    own.extend(subnets::faults(network));
    faults.extend(own.into_iter().map(|it| it.below("network")));
    let networks = network.networks.iter().enumerate();
    json!({
        "links": network.links.iter().map(|it| links::data(it, network)).collect::<Vec<_>>(),
        "networks": networks.filter_map(|(idx, it)| subnets::data(idx, it)).collect::<Vec<_>>(),
        // Name servers are part of the networks. From here, cloud-init would make NetworkManager
        // leave resolv.conf alone forever.
        "services": [],
    })
}

/// Returns the addresses of a network, each with its path.
pub(crate) fn addresses(network: &Network) -> impl Iterator<Item = (String, IpAddr)> {
    let path = |idx| format!("network.networks[{idx}].address");
    let all = network.networks.iter().enumerate();
    all.filter_map(move |(idx, it)| Some((path(idx), subnets::address(it).ok()?.addr())))
}

/// Returns the MAC addresses of a network, each with its path.
pub(crate) fn macs(network: &Network) -> impl Iterator<Item = (String, String)> {
    let path = |idx| format!("network.links[{idx}].kind.mac");
    let all = network.links.iter().enumerate();
    all.filter_map(move |(idx, it)| Some((path(idx), links::mac(it)?)))
}
