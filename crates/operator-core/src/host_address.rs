//! Canonical addresses of hosts, so that two spellings of one address are the same host.
//!
//! Only the text is compared. Nothing is resolved, so a name and its address stay different hosts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The default ssh port, which is omitted.
pub const SSH_PORT: i32 = 22;

/// Returns the canonical form of a name or an IP address without a port.
///
/// Names are in lower case and without a trailing dot. IPv6 addresses are written as in RFC 5952,
/// without brackets; IPv4-mapped ones become the IPv4 address. A zone is kept only on link-local
/// addresses. Anything else, such as an IPv4 address with leading zeros, is only put in lower case.
pub fn host(text: &str) -> String {
    let text = trimmed(text);
    let inner = text.strip_prefix('[').and_then(|it| it.strip_suffix(']')).map(trimmed);
    match inner.and_then(ip).or_else(|| ip(text)) {
        Some(ip) => ip,
        None => text.to_ascii_lowercase(),
    }
}

/// Returns the canonical form of `host`, `host:port`, `[IPv6]:port` or `IPv6:port`.
///
/// IPv6 addresses are written in brackets, because their last group could be a port otherwise; so
/// `2001:db8::1:22` is read as the address `2001:db8::1`. Port 22 is omitted.
pub fn endpoint(text: &str) -> String {
    let text = trimmed(text);
    match split(text) {
        Some((host, port)) => with_port(host, port),
        None => with_port(text, SSH_PORT),
    }
}

/// Returns the canonical form of a host and its port, as [`endpoint`] does.
pub fn with_port(host: &str, port: i32) -> String {
    let host = self::host(host);
    let is_ipv6 = host.contains(':') && ip(&host).is_some();
    let host = if is_ipv6 { format!("[{host}]") } else { host };
    if port == SSH_PORT { host } else { format!("{host}:{port}") }
}

/// Removes surrounding whitespace and trailing dots.
fn trimmed(text: &str) -> &str {
    text.trim_start().trim_end_matches(|it: char| it == '.' || it.is_whitespace())
}

/// Splits the text into host and port; `None` when it has no port.
fn split(text: &str) -> Option<(&str, i32)> {
    let (host, port) = text.rsplit_once(':')?;
    let is_number = !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit());
    let port: u16 = port.parse().ok().filter(|_| is_number)?;
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    let is_host = !trimmed(host).is_empty() && !host.contains(':');
    (is_host || is_bracketed || ip(trimmed(host)).is_some()).then_some((host, port.into()))
}

/// Returns the canonical form of an IP address; `None` when the text is not one.
fn ip(text: &str) -> Option<String> {
    if let Ok(ip) = text.parse::<Ipv4Addr>() {
        return Some(ip.to_string());
    }
    let (ip, zone) = text.split_once('%').map_or((text, None), |(ip, zone)| (ip, Some(zone)));
    let ip: Ipv6Addr = ip.parse().ok()?;
    let is_zone = |it: &str| {
        !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphanumeric() || b"._-@".contains(&it))
    };
    if zone.is_some_and(|it| !is_zone(it)) {
        return None;
    }
    let plain = IpAddr::V6(ip).to_canonical();
    match zone.filter(|_| ip.is_unicast_link_local()) {
        Some(zone) => Some(format!("{plain}%{zone}")),
        None => Some(plain.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_spelling_of_a_host_has_one_form() {
        for (spellings, expected) in [
            (&["n0", "N0", "n0.", " n0 "][..], "n0"),
            (&["n0.Example.org", "n0.example.ORG."], "n0.example.org"),
            (&["192.0.2.1", "[192.0.2.1]", "::ffff:192.0.2.1", "::FFFF:c000:201"], "192.0.2.1"),
            (&["[::ffff:192.0.2.1]", "0:0:0:0:0:ffff:192.0.2.1%1"], "192.0.2.1"),
            (
                &["2001:db8::1", "2001:DB8:0:0:0:0:0:1", "[2001:db8::1]", "2001:0db8::0001%eth0"],
                "2001:db8::1",
            ),
            (&["2001:db8:0:1:0:0:0:1", "2001:db8:0:1::1"], "2001:db8:0:1::1"),
            (&["::1", "[::1]"], "::1"),
            (&["fe80::1%Eth0", "[FE80:0::1%Eth0]"], "fe80::1%Eth0"),
            (&["fe80::1"], "fe80::1"),
        ] {
            for spelling in spellings {
                assert_eq!(host(spelling), expected, "{spelling:?}");
            }
        }
    }

    #[test]
    fn what_is_no_plain_address_stays_as_it_is_in_small_letters() {
        for (text, expected) in [
            ("010.0.0.1", "010.0.0.1"),
            ("0xC0.0.2.1", "0xc0.0.2.1"),
            ("3221225985", "3221225985"),
            ("192.0.2", "192.0.2"),
            ("[n0]", "[n0]"),
            ("fe80::1%", "fe80::1%"),
            ("fe80::1%a:b", "fe80::1%a:b"),
            ("1:2:3", "1:2:3"),
            ("", ""),
        ] {
            assert_eq!(host(text), expected, "{text:?}");
        }
    }

    #[test]
    fn every_spelling_of_a_host_with_its_port_has_one_form() {
        for (spellings, expected) in [
            (&["n0", "N0:22", "n0.:22", "n0:022"][..], "n0"),
            (&["N0:2022", "n0.:2022"], "n0:2022"),
            (
                &["192.0.2.1", "192.0.2.1:22", "[::ffff:192.0.2.1]:22", "::ffff:192.0.2.1:22"],
                "192.0.2.1",
            ),
            (&["192.0.2.1:2022", "[::FFFF:192.0.2.1]:2022"], "192.0.2.1:2022"),
            (
                &["2001:db8::1", "2001:db8::1:22", "[2001:DB8:0::1]:22", "2001:db8:0:0:0:0:0:1"],
                "[2001:db8::1]",
            ),
            (&["2001:db8::1:2022", "[2001:db8::1]:2022"], "[2001:db8::1]:2022"),
            (&["[2001:db8::5:1]", "2001:db8::5:1:22"], "[2001:db8::5:1]"),
            (&["fe80::1%eth0:22", "[fe80::1%eth0]"], "[fe80::1%eth0]"),
            (&["010.0.0.1:22"], "010.0.0.1"),
            (&["n0:99999"], "n0:99999"),
            (&["n0:ssh"], "n0:ssh"),
            (&[":22"], ":22"),
        ] {
            for spelling in spellings {
                assert_eq!(endpoint(spelling), expected, "{spelling:?}");
            }
        }
    }

    #[test]
    fn a_host_and_its_port_are_the_same_apart_as_in_one_text() {
        assert_eq!(with_port("2001:DB8::1", 22), endpoint("2001:db8::1:22"));
        assert_eq!(with_port("2001:DB8::1", 2022), endpoint("[2001:db8::1]:2022"));
        assert_eq!(with_port("N0.", 2022), endpoint("n0:2022"));
        assert_ne!(with_port("n0", 22), with_port("n0", 2022));
    }

    /// Generates texts from pieces of addresses, so that many are almost valid.
    fn text() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "[",
            "]",
            ":",
            "::",
            ".",
            "%",
            " ",
            "0",
            "22",
            "022",
            "1",
            "ffff",
            "fe80",
            "a",
            "B",
            "192.0.2.1",
            "::ffff:",
            "2001:db8::",
            "eth0",
            "-",
            "@",
            "\u{a0}",
            "é",
            "+",
        ]);
        prop_oneof![prop::collection::vec(piece, 0..8).prop_map(|it| it.concat()), ".*"]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

        #[test]
        fn a_canonical_form_is_its_own_canonical_form(text in text()) {
            let (host, endpoint) = (host(&text), endpoint(&text));
            prop_assert_eq!(&super::host(&host), &host);
            prop_assert_eq!(&super::endpoint(&endpoint), &endpoint);
        }

        #[test]
        fn every_ip_address_is_one_host_however_it_is_written(
            ip in any::<u128>().prop_map(Ipv6Addr::from),
            v4 in any::<[u8; 4]>().prop_map(Ipv4Addr::from),
            port in 1..=u16::MAX,
        ) {
            let long = ip.segments().map(|it| format!("{it:04X}")).join(":");
            prop_assert_eq!(host(&long), host(&ip.to_string()));
            let expected = with_port(&ip.to_string(), port.into());
            for text in [format!("{ip}:{port}"), format!("[{long}]:{port}"), format!("{long}:{port}")] {
                prop_assert_eq!(endpoint(&text), expected.clone(), "{}", text);
            }
            let mapped = v4.to_ipv6_mapped();
            prop_assert_eq!(endpoint(&format!("[{mapped}]:{port}")), endpoint(&format!("{v4}:{port}")));
        }
    }
}
