//! Conflicts of addresses: of several hosts that claim one address, in one set or in several sets
//! of a namespace, one has it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use api::baremetal::{BaremetalHost, BaremetalSet, UNASSIGNED};
use jiff::Timestamp;
use kube::ResourceExt;

use crate::observe::Observed;

/// A host that claims an address, ordered by precedence: hosts with a machine first, then hosts
/// that stay before removed ones, then older sets, then names. A removed host keeps its claim until
/// its machine is given back.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Claim {
    has_no_machine: bool,
    leaves: bool,
    created: Option<Timestamp>,
    set: String,
    host: String,
}

/// Returns the address conflicts of a set's hosts, by host.
pub fn faults(seen: &Observed) -> BTreeMap<String, String> {
    let mut owners: BTreeMap<IpAddr, Claim> = BTreeMap::new();
    let own =
        seen.wanted().filter_map(|(name, host)| Some((claim(&seen.set, name), address(host)?)));
    let others = seen.neighbours.iter().flat_map(|set| {
        let hosts = set.spec.baremetal_hosts.iter();
        hosts.filter_map(|(name, host)| Some((claim(set, name), address(host)?)))
    });
    let sets = || seen.neighbours.iter().map(|it| &**it).chain([&*seen.set]);
    for (claim, address) in own.chain(others).chain(sets().flat_map(leaving)) {
        let owner = owners.entry(address).or_insert_with(|| claim.clone());
        if claim < *owner {
            *owner = claim;
        }
    }
    let set = seen.set.name_any();
    let fault = |(name, host): (&str, &BaremetalHost)| {
        let address = address(host)?;
        let owner = owners.get(&address).filter(|it| it.set != set || it.host != name)?;
        let is_own = owner.set == set;
        let of =
            if is_own { String::new() } else { format!(" of OpenStackBaremetalSet {}", owner.set) };
        let (whose, way) = if owner.leaves {
            ("still the address of the machine of host", "wait until it is released, or give")
        } else {
            ("the address of host", "give")
        };
        let too = if owner.leaves { "" } else { " too" };
        let text = format!(
            "spec.baremetalHosts[{name}].ctlPlaneIP: \"{address}\" is {whose} {}{of}{too}; {way} each \
             host its own",
            owner.host
        );
        Some((name.to_owned(), text))
    };
    seen.wanted().filter_map(fault).collect()
}

fn claim(set: &BaremetalSet, host: &str) -> Claim {
    let reported = set.host_status(host);
    Claim {
        has_no_machine: reported.is_none_or(|it| it.bmh_ref == UNASSIGNED),
        leaves: false,
        created: set.creation_timestamp().map(|it| it.0),
        set: set.name_any(),
        host: host.to_owned(),
    }
}

/// Returns the addresses of removed hosts whose machines are not given back yet.
fn leaving(set: &BaremetalSet) -> impl Iterator<Item = (Claim, IpAddr)> {
    let reported = set.status.iter().flat_map(|it| &it.baremetal_hosts);
    let gone = reported.filter(|(name, it)| {
        it.bmh_ref != UNASSIGNED && !set.spec.baremetal_hosts.contains_key(*name)
    });
    gone.flat_map(move |(name, it)| {
        let claim = Claim { leaves: true, ..claim(set, name) };
        it.ip_addresses.values().filter_map(move |text| Some((claim.clone(), parsed(text)?)))
    })
}

fn address(host: &BaremetalHost) -> Option<IpAddr> {
    parsed(host.ctl_plane_ip.as_ref()?)
}

/// Parses an address that may have a prefix length.
fn parsed(text: &str) -> Option<IpAddr> {
    text.split('/').next()?.parse().ok()
}
