//! Addresses, gateways, routes and name servers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use api::names::is_dns_subdomain;
use ipnet::IpNet;
use serde_json::{Value, json};

use super::link_lookup::{bond_of, is_card, link, one_of};
use crate::fault::Fault;
use crate::input::{Network, Route, Subnet};

/// Maximum number of name servers (MAXNS of the C library).
const DNS_LIMIT: usize = 3;
/// Minimum MTU of a link with IPv6 (RFC 8200, 5).
const IPV6_MTU: i64 = 1280;

/// Why an address is rejected, and a valid alternative.
type Wrong = (&'static str, &'static str);

/// Returns the entry of the address at that index; `None` if it is invalid.
pub(super) fn data(idx: usize, it: &Subnet) -> Option<Value> {
    let net = address(it).ok()?;
    let default = it.gateway.as_ref().map(|gateway| (every(&net), gateway.as_str()));
    let others =
        it.routes.iter().filter_map(|it| Some((it.destination.parse().ok()?, &*it.gateway)));
    let routes = default.into_iter().chain(others).map(
        |(to, gateway)| json!({"network": to.addr(), "netmask": to.netmask(), "gateway": gateway}),
    );
    let mut entry = json!({
        "id": format!("network{idx}"),
        "type": if net.addr().is_ipv4() { "ipv4" } else { "ipv6" },
        "link": it.link,
        "ip_address": net.addr(),
        "netmask": net.netmask(),
        "routes": routes.collect::<Vec<_>>(),
    });
    if !it.dns_servers.is_empty() {
        entry["dns_nameservers"] = json!(it.dns_servers);
    }
    if !it.dns_search.is_empty() {
        entry["dns_search"] = json!(it.dns_search);
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

/// Returns the address of an entry, if a host may have it.
pub(super) fn address(it: &Subnet) -> Result<IpNet, Wrong> {
    const WAY: &str = "write address and prefix length, as in 192.0.2.10/24 or 2001:db8::a/64";
    if it.address.is_empty() {
        return Err(("is missing", WAY));
    }
    let net: IpNet =
        it.address.parse().map_err(|_| ("is not an address with a prefix length", WAY))?;
    let way = "use one between the first and the last of its subnet";
    if usable(&net, net.addr()) { Ok(net) } else { Err(("is not a host address", way)) }
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

/// Returns all faults of the addresses, routes and name servers.
pub(super) fn faults(network: &Network) -> Vec<Fault> {
    let mut faults = Vec::new();
    if network.networks.is_empty() {
        let way = "give the host an address, or leave network out to use the image's DHCP";
        faults.push(Fault::hidden("networks", "has no entry", way));
    }
    for (idx, it) in network.networks.iter().enumerate() {
        let before = &network.networks[..idx];
        let mut own: Vec<Fault> = of_link(it, network).into_iter().collect();
        match address(it) {
            Ok(net) => {
                own.extend(of_address(it, &net, before));
                own.extend(of_gateway(it, &net, before));
                own.extend(of_routes(it, network));
            }
            Err((cause, way)) if it.address.is_empty() => {
                own.push(Fault::hidden("address", cause, way));
            }
            Err((cause, way)) => own.push(Fault::new("address", &it.address, cause, way)),
        }
        own.extend(of_dns(it));
        faults.extend(own.into_iter().map(|fault| fault.below(&format!("networks[{idx}]"))));
    }
    faults
}

fn of_link(it: &Subnet, network: &Network) -> Option<Fault> {
    let links = &network.links;
    let fault = |cause: String, way: String| Some(Fault::new("link", &it.link, cause, way));
    let Some(below) = link(links, &it.link) else {
        return fault("is not the id of a link".into(), one_of(links.iter()));
    };
    if let Some(bond) = bond_of(links, &it.link).filter(|_| is_card(below)) {
        return fault(format!("is a member of {}", bond.id), format!("name {}", bond.id));
    }
    let is_narrow = below.mtu < IPV6_MTU && address(it).is_ok_and(|it| it.addr().is_ipv6());
    is_narrow.then(|| {
        let cause = format!("has an MTU of {}, too small for IPv6", below.mtu);
        Fault::new("link", &it.link, cause, "raise the link's mtu to 1280 or more")
    })
}

fn of_address(it: &Subnet, net: &IpNet, before: &[Subnet]) -> Option<Fault> {
    let is_again = |it: &Subnet| address(it).is_ok_and(|it| it.addr() == net.addr());
    let again = before.iter().position(is_again)?;
    let cause = format!("is also the address of networks[{again}]");
    Some(Fault::new("address", &it.address, cause, "give each entry its own"))
}

fn of_gateway(it: &Subnet, net: &IpNet, before: &[Subnet]) -> Option<Fault> {
    let text = it.gateway.as_ref()?;
    let fault = |cause: String, way: &str| Some(Fault::new("gateway", text, cause, way));
    let Ok(gateway) = text.parse::<IpAddr>() else {
        return fault(
            "is not an address".into(),
            "write an address without a prefix length, or none",
        );
    };
    if !is_link_local(gateway) && !net.contains(&gateway) {
        let cause = format!("is outside the subnet {}", net.trunc());
        return fault(cause, "give a router of that subnet, or none");
    }
    if gateway == net.addr()
        || gateway.is_ipv4() != net.addr().is_ipv4()
        || !may_route(net, gateway)
    {
        return fault("is not another host of the subnet".into(), "give the router's own address");
    }
    let is_same_family =
        |it: &Subnet| address(it).is_ok_and(|it| it.addr().is_ipv4() == gateway.is_ipv4());
    let other = before.iter().position(|it| it.gateway.is_some() && is_same_family(it))?;
    let cause = format!("is a second default gateway, after that of networks[{other}]");
    fault(cause, "keep one for each family, and write routes for the rest")
}

/// IPv6 routers often have the first address of a subnet, and respond on it.
fn may_route(net: &IpNet, gateway: IpAddr) -> bool {
    usable(net, gateway)
        || (gateway.is_ipv6() && gateway == net.network() && net.prefix_len() < 127)
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(it) if it.is_unicast_link_local())
}

fn of_routes(it: &Subnet, network: &Network) -> Vec<Fault> {
    let siblings = network.networks.iter().filter(|other| other.link == it.link);
    let on_link: Vec<IpNet> = siblings.filter_map(|it| address(it).ok()).collect();
    let each = it.routes.iter().enumerate();
    each.filter_map(|(idx, it)| Some(of_route(it, &on_link)?.below(&format!("routes[{idx}]"))))
        .collect()
}

fn of_route(it: &Route, on_link: &[IpNet]) -> Option<Fault> {
    let Route { destination, gateway } = it;
    let fault = |cause, way: String| Some(Fault::new("destination", destination, cause, way));
    let Ok(to) = destination.parse::<IpNet>() else {
        return fault("is not a network", "write it as in 198.51.100.0/24".into());
    };
    if to.trunc() != to {
        return fault("is an address within a network", format!("write {}", to.trunc()));
    }
    if to.prefix_len() == 0 {
        return fault("is the default route", "write it as gateway of the network".into());
    }
    let fault = |cause, way| Some(Fault::new("gateway", gateway, cause, way));
    let Ok(through) = gateway.parse::<IpAddr>() else {
        return fault("is not an address", "write an address without a prefix length");
    };
    if through.is_ipv4() != to.addr().is_ipv4() {
        return fault(
            "is of a different address family than the destination",
            "give a router of that family",
        );
    }
    let is_near = |net: &IpNet| net.contains(&through) && net.addr() != through;
    (!is_link_local(through) && !on_link.iter().any(is_near)).then(|| {
        let cause = "is not another host in a subnet of this link";
        Fault::new("gateway", gateway, cause, "give a router that the link reaches")
    })
}

fn of_dns(it: &Subnet) -> Vec<Fault> {
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
