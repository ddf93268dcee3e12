//! Which addresses of servers that users name are connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Addresses of the metadata services of clouds outside of the link-local networks.
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];
/// What those addresses are that are not connected to, for messages.
pub(crate) const REFUSED: &str = "its address is a loopback, link-local or metadata address, and \
                                  allowedEndpointNetworks of the chart has no network with it";

/// The networks in which a server may have a loopback, link-local or metadata address; every other
/// address is allowed.
#[derive(Clone, Debug, Default)]
pub struct AllowedNetworks(Vec<IpNet>);

impl AllowedNetworks {
    /// Allows these networks too.
    pub const fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    /// Whether an address may be connected to.
    pub(crate) fn allows(&self, address: IpAddr) -> bool {
        let address = reached(address);
        !is_special(address) || self.0.iter().any(|it| it.contains(&address))
    }
}

/// Returns the IPv4 address that an IPv6 address stands for, if it does so: mapped, compatible, or
/// translated (RFC 6052).
fn reached(address: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = address else { return address };
    let [.., high, low] = six.segments();
    let prefix = six.segments();
    let is_of_four = matches!(prefix, [0, 0, 0, 0, 0, 0 | 0xffff, ..])
        || prefix.starts_with(&[0x64, 0xff9b, 0, 0, 0, 0]);
    if !is_of_four || six.is_loopback() || six.is_unspecified() {
        return address;
    }
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

fn is_special(address: IpAddr) -> bool {
    let is_local = match address {
        IpAddr::V4(it) => {
            it.is_loopback() || it.is_link_local() || it.octets()[0] == 0 || it.is_broadcast()
        }
        IpAddr::V6(it) => it.is_loopback() || it.is_unspecified() || it.is_unicast_link_local(),
    };
    is_local || address.is_multicast() || METADATA.contains(&address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_host_itself_and_of_metadata_are_not_connected_to() {
        let networks = AllowedNetworks::default();
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "169.254.20.10",
            "100.100.100.200",
            "168.63.129.16",
            "255.255.255.255",
            "224.0.0.1",
            "::",
            "::1",
            "fe80::1",
            "febf::1",
            "ff02::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
        ] {
            assert!(!networks.allows(address.parse().unwrap()), "{address}");
        }
        for address in
            ["10.0.0.1", "192.168.0.1", "100.64.0.1", "8.8.8.8", "fd00::1", "::ffff:10.0.0.1"]
        {
            assert!(networks.allows(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn a_network_that_the_setting_names_is_allowed_in_each_form_of_its_addresses() {
        let networks = AllowedNetworks::new(vec!["127.0.0.0/8".parse().unwrap()]);
        for (address, is_allowed) in [
            ("127.0.0.1", true),
            ("::ffff:127.0.0.1", true),
            ("::1", false),
            ("169.254.1.1", false),
        ] {
            assert_eq!(networks.allows(address.parse().unwrap()), is_allowed, "{address}");
        }
    }
}
