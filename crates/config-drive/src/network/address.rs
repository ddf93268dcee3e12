//! The address with its gateway and name servers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use api::names::is_dns_subdomain;
use ipnet::IpNet;
use serde_json::{Value, json};

use super::links;
use crate::fault::Fault;
use crate::input::Network;

/// Maximum number of name servers (MAXNS of the C library).
const DNS_LIMIT: usize = 3;
/// Minimum MTU of a link with IPv6 (RFC 8200, 5).
const IPV6_MTU: i64 = 1280;

/// Returns the entry of the address; `None` if it is invalid.
pub(super) fn data(network: &Network) -> Option<Value> {
    let net = address(&network.address).ok()?;
    let to = every(&net);
    let route = |it: &String| json!({"network": to.addr(), "netmask": to.netmask(), "gateway": it});
    let mut entry = json!({
        "id": "network0",
        "type": if net.addr().is_ipv4() { "ipv4" } else { "ipv6" },
        "link": links::id(network),
        "ip_address": net.addr(),
        "netmask": net.netmask(),
        "routes": network.gateway.iter().map(route).collect::<Vec<_>>(),
    });
    if !network.dns_servers.is_empty() {
        entry["dns_nameservers"] = json!(network.dns_servers);
    }
    if !network.dns_search.is_empty() {
        entry["dns_search"] = json!(network.dns_search);
    }
    Some(entry)
}

/// Returns the network of all addresses of that family.
fn every(net: &IpNet) -> IpNet {
    match net {
        IpNet::V4(_) => IpNet::new_assert(Ipv4Addr::UNSPECIFIED.into(), 0),
        IpNet::V6(_) => IpNet::new_assert(Ipv6Addr::UNSPECIFIED.into(), 0),
    }
}

/// Returns the address if a host may have it, else its fault.
fn address(text: &str) -> Result<IpNet, Fault> {
    let fault = |cause, way| Fault::new("address", text, cause, way);
    let Ok(net) = text.parse::<IpNet>() else {
        let way = "write address and prefix length, as in 192.0.2.10/24 or 2001:db8::a/64";
        return Err(fault("is not an address with a prefix length", way));
    };
    let way = "use one between the first and the last of its subnet";
    if usable(&net, net.addr()) { Ok(net) } else { Err(fault("is not a host address", way)) }
}

/// Returns whether a host in that subnet may have the address.
fn usable(net: &IpNet, address: IpAddr) -> bool {
    let is_special = address.is_unspecified() || address.is_multicast() || address.is_loopback();
    let is_edge = match net {
        // Subnets of two and of one have no network and broadcast addresses (RFC 3021).
        IpNet::V4(net) => {
            let is_edge = address == net.network() || address == net.broadcast();
            net.prefix_len() < 31 && is_edge || address == Ipv4Addr::BROADCAST
        }
        // The address of the subnet's routers (RFC 4291, 2.6.1).
        IpNet::V6(net) => net.prefix_len() < 127 && address == net.network(),
    };
    !is_special && !is_edge
}

/// Returns all faults of the address, its gateway and name servers.
pub(super) fn faults(network: &Network) -> Vec<Fault> {
    let mut faults = Vec::new();
    match address(&network.address) {
        Ok(net) => {
            if network.mtu < IPV6_MTU && net.addr().is_ipv6() {
                let cause = format!("has an MTU of {}, too small for IPv6", network.mtu);
                let way = "raise the link's mtu to 1280 or more";
                faults.push(Fault::new("address", links::id(network), cause, way));
            }
            faults.extend(of_gateway(network, &net));
        }
        Err(fault) => faults.push(fault),
    }
    faults.extend(of_dns(network));
    faults
}

fn of_gateway(it: &Network, net: &IpNet) -> Option<Fault> {
    let text = it.gateway.as_ref()?;
    let fault = |cause: String, way: &str| Some(Fault::new("gateway", text, cause, way));
    let Ok(gateway) = text.parse::<IpAddr>() else {
        return fault(
            "is not an address".into(),
            "write an address without a prefix length, or none",
        );
    };
    let is_link_local = matches!(gateway, IpAddr::V6(it) if it.is_unicast_link_local());
    if !is_link_local && !net.contains(&gateway) {
        let cause = format!("is outside the subnet {}", net.trunc());
        return fault(cause, "give a router of that subnet, or none");
    }
    let is_other = gateway != net.addr() && gateway.is_ipv4() == net.addr().is_ipv4();
    if !is_other || !may_route(net, gateway) {
        return fault("is not another host of the subnet".into(), "give the router's own address");
    }
    None
}

/// IPv6 routers often have the first address of a subnet, and respond on it.
fn may_route(net: &IpNet, gateway: IpAddr) -> bool {
    usable(net, gateway)
        || (gateway.is_ipv6() && gateway == net.network() && net.prefix_len() < 127)
}

fn of_dns(it: &Network) -> Vec<Fault> {
    let mut faults = Vec::new();
    let n = it.dns_servers.len();
    if n > DNS_LIMIT {
        let way = "keep the first three: a host queries no more";
        faults.push(Fault::new("dnsServers", it.dns_servers.join(", "), format!("are {n}"), way));
    }
    for (idx, server) in it.dns_servers.iter().enumerate() {
        if server.parse::<IpAddr>().is_err() {
            let path = format!("dnsServers[{idx}]");
            faults.push(Fault::new(
                path,
                server,
                "is not an address",
                "write the server's address",
            ));
        }
    }
    for (idx, domain) in it.dns_search.iter().enumerate() {
        if !is_dns_subdomain(domain) {
            let way = "write one such as example.org, in lower case";
            faults.push(Fault::new(format!("dnsSearch[{idx}]"), domain, "is not a domain", way));
        }
    }
    faults
}
