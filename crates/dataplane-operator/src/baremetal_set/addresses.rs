//! Addresses that several hosts want: one has it, of one set or of several in a namespace.

use std::collections::BTreeMap;
use std::net::IpAddr;

use common::api::baremetal::{BaremetalHost, BaremetalSet, UNASSIGNED};
use jiff::Timestamp;
use kube::ResourceExt;

use crate::baremetal_set::observe::Observed;

/// A host that wants an address. Whoever has a machine goes before whoever has none, then the older set
/// before the newer one, then names decide.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Claim {
    has_no_machine: bool,
    created: Option<Timestamp>,
    set: String,
    host: String,
}

/// What is wrong with the addresses of a set's hosts, by host.
pub fn faults(seen: &Observed) -> BTreeMap<String, String> {
    let mut owners: BTreeMap<IpAddr, Claim> = BTreeMap::new();
    let own = seen.wanted().map(|(name, host)| (&*seen.set, name, host));
    let others = seen.neighbours.iter().flat_map(|set| {
        let hosts = set.spec.baremetal_hosts.iter();
        hosts.map(|(name, host)| (&**set, name.as_str(), host))
    });
    for (set, name, host) in own.chain(others) {
        let Some(address) = address(host) else { continue };
        let claim = claim(set, name);
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
        let text = format!(
            "spec.baremetalHosts[{name}].ctlPlaneIP: \"{address}\" is the address of host {}{of} too; \
             give each host its own",
            owner.host
        );
        Some((name.to_owned(), text))
    };
    seen.wanted().filter_map(fault).collect()
}

fn claim(set: &BaremetalSet, host: &str) -> Claim {
    let told = set.status.as_ref().and_then(|it| it.baremetal_hosts.get(host));
    Claim {
        has_no_machine: told.is_none_or(|it| it.bmh_ref == UNASSIGNED),
        created: set.creation_timestamp().map(|it| it.0),
        set: set.name_any(),
        host: host.to_owned(),
    }
}

fn address(host: &BaremetalHost) -> Option<IpAddr> {
    host.ctl_plane_ip.as_ref()?.split('/').next()?.parse().ok()
}
