//! Faults among several hosts: values that must be unique to one host.

use std::collections::BTreeMap;

use crate::fault::Fault;
use crate::input::Host;
use crate::network;

/// Returns addresses, MAC addresses, names and identities that two hosts of a set share.
///
/// Each is reported for the later host. The keys are the names by which users know the hosts.
///
/// # Assumptions
/// [`crate::faults`] reports the faults of each single host; invalid addresses are ignored here.
pub fn faults_among(hosts: &BTreeMap<String, &Host>) -> Vec<Fault> {
    let mut owners: BTreeMap<(&'static str, String), &str> = BTreeMap::new();
    let mut faults = Vec::new();
    for (key, host) in hosts {
        for (what, path, value) in own(host) {
            // A duplicate within one host is another fault.
            let owner = *owners.entry((what, value.clone())).or_insert(key);
            if owner != key {
                let (path, cause) =
                    (format!("hosts[{key}].{path}"), format!("is also {what} of {owner}"));
                faults.push(Fault::new(path, value, cause, "give each host its own"));
            }
        }
    }
    faults
}

/// Returns the values that must be unique to one host: what it is, its field, and the value.
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
        // Link-local addresses may occur on several hosts.
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
