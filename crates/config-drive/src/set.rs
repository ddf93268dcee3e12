//! Faults that only several hosts together have: what must be one host's own.

use std::collections::BTreeMap;

use crate::fault::Fault;
use crate::input::Host;
use crate::network;

/// Addresses, MAC addresses, names and identities that two hosts of a set have, told of the later one;
/// hosts by the keys under which their humans know them.
///
/// # Assumptions
/// Faults of each host alone are told by [`crate::faults`]; what is no address is none here.
pub fn faults_among(hosts: &BTreeMap<String, &Host>) -> Vec<Fault> {
    let mut owners: BTreeMap<(&'static str, String), &str> = BTreeMap::new();
    let mut faults = Vec::new();
    for (key, host) in hosts {
        for (what, path, value) in own(host) {
            // Of one host alone, twice is another fault.
            let owner = *owners.entry((what, value.clone())).or_insert(key);
            if owner != key {
                let (path, cause) =
                    (format!("hosts[{key}].{path}"), format!("is {what} of {owner} too"));
                faults.push(Fault::new(path, value, cause, "give each host its own"));
            }
        }
    }
    faults
}

/// What only one host may have: what it is, where it stands, and the value.
fn own(host: &Host) -> Vec<(&'static str, String, String)> {
    let mut own = vec![
        ("the instance", "instanceUuid".to_owned(), host.instance_uuid.clone()),
        match &host.fqdn {
            Some(fqdn) => ("the name", "fqdn".to_owned(), fqdn.clone()),
            None => ("the name", "hostName".to_owned(), host.host_name.clone()),
        },
    ];
    let network = host.network.iter().filter(|_| host.given.network_data.is_none());
    for it in network {
        // Addresses of one link alone are no host's own.
        let is_own = |it: &std::net::IpAddr| match it {
            std::net::IpAddr::V4(it) => !it.is_link_local(),
            std::net::IpAddr::V6(it) => !it.is_unicast_link_local(),
        };
        let addresses = network::addresses(it).filter(|it| is_own(&it.1));
        own.extend(addresses.map(|(path, it)| ("the address", path, it.to_string())));
        own.extend(network::macs(it).map(|(path, it)| ("the MAC address", path, it)));
    }
    own
}
