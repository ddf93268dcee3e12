//! `network_data.json` of OpenStack: links and the address, with their validation.

mod address;
mod links;

use serde_json::{Value, json};

use crate::fault::Fault;
use crate::input::Network;

/// Returns the network data, and adds all faults of the input; it is only valid without faults.
pub(crate) fn data(network: &Network, faults: &mut Vec<Fault>) -> Value {
    let own = links::faults(network).into_iter().chain(address::faults(network));
    faults.extend(own.map(|it| it.below("network")));
    json!({
        "links": links::data(network),
        "networks": address::data(network).as_slice(),
        // Name servers are part of the networks. From here, cloud-init would make NetworkManager
        // leave resolv.conf alone forever.
        "services": [],
    })
}
