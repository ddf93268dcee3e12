//! Which proxy leads to the cluster, by kubectl's rules: those of Go's `net/http`.

use std::net::IpAddr;

use http::Uri;
use http::uri::Scheme;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use ipnet::IpNet;

use crate::error::{Error, Result};

/// The variables of the environment that name proxies.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// The proxy of `https` servers.
    pub https: Option<String>,
    /// The proxy of `http` servers.
    pub http: Option<String>,
    /// The servers that are reached without a proxy.
    pub none: Option<String>,
}

impl Variables {
    /// Reads them; an empty one counts as absent.
    #[expect(
        clippy::disallowed_methods,
        reason = "proxies are no arguments: kubectl reads them there"
    )]
    pub fn read() -> Self {
        let first = |names: [&str; 2]| {
            let values = names.into_iter().filter_map(|it| std::env::var(it).ok());
            values.into_iter().find(|it| !it.is_empty())
        };
        Self {
            https: first(["HTTPS_PROXY", "https_proxy"]),
            http: first(["HTTP_PROXY", "http_proxy"]),
            none: first(["NO_PROXY", "no_proxy"]),
        }
    }

    /// Returns the proxy that leads to a server. The one that the kubeconfig names is used whatever
    /// the environment says.
    pub fn proxy_of(&self, server: &Uri, configured: Option<&str>) -> Result<Option<Intercept>> {
        if let Some(proxy) = configured.filter(|it| !it.is_empty()) {
            return parsed(proxy, "proxy-url of the kubeconfig").map(Some);
        }
        let is_http = server.scheme() == Some(&Scheme::HTTP);
        let (proxy, name) =
            if is_http { (&self.http, "HTTP_PROXY") } else { (&self.https, "HTTPS_PROXY") };
        let Some(proxy) = proxy else { return Ok(None) };
        let port = server.port_u16().unwrap_or(if is_http { 80 } else { 443 });
        let excluded = self.none.as_deref().unwrap_or_default();
        if is_direct(server.host().unwrap_or_default(), port, excluded) {
            return Ok(None);
        }
        parsed(proxy, name).map(Some)
    }
}

/// Reads the text of a proxy: a URL, or host and port, which stand for `http`.
fn parsed(text: &str, source: &str) -> Result<Intercept> {
    // The text may hold a password, so it is not repeated.
    let fault = || {
        Error::message(format!(
            "{source} is not the URL of a proxy: http, https or socks5, then ://HOST:PORT"
        ))
    };
    let any = Uri::from_static("https://server");
    let proxy = Matcher::builder().all(text).build().intercept(&any).ok_or_else(fault)?;
    let is_known =
        matches!(proxy.uri().scheme_str(), Some("http" | "https" | "socks5" | "socks5h"));
    if is_known { Ok(proxy) } else { Err(fault()) }
}

/// Whether a server is reached without a proxy: it is this machine, or `NO_PROXY` names it.
fn is_direct(host: &str, port: u16, excluded: &str) -> bool {
    let host = host.trim_matches(['[', ']']).to_lowercase();
    let address: Option<IpAddr> = host.parse().ok();
    if host == "localhost" || address.is_some_and(|it| it.is_loopback()) {
        return true;
    }
    let mut entries = excluded.split(',').map(|it| it.trim().to_lowercase());
    entries.any(|it| names(&it, &host, address, port))
}

/// Whether an entry of `NO_PROXY` names a server.
fn names(entry: &str, host: &str, address: Option<IpAddr>, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    if let Ok(network) = entry.parse::<IpNet>() {
        return address.is_some_and(|it| network.contains(&it));
    }
    let (name, only) = split_port(entry);
    if name.is_empty() || only.is_some_and(|it| it != port.to_string()) {
        return false;
    }
    match (name.parse::<IpAddr>(), address) {
        (Ok(own), Some(address)) => own == address,
        (Ok(_), None) | (Err(_), Some(_)) => false,
        (Err(_), None) => match name.strip_prefix("*.").or_else(|| name.strip_prefix('.')) {
            Some(domain) => is_below(host, domain),
            None => host == name || is_below(host, name),
        },
    }
}

fn is_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|it| it.ends_with('.'))
}

/// Splits `HOST:PORT` and `[ADDRESS]:PORT`; an IPv6 address without brackets has no port.
fn split_port(entry: &str) -> (&str, Option<&str>) {
    let (name, port) = match entry.rsplit_once(':') {
        Some((name, port)) if entry.parse::<IpAddr>().is_err() => (name, Some(port)),
        _ => (entry, None),
    };
    match name.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        Some(address) => (address, port),
        None => (name, port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direct(server: &str, excluded: &str) -> bool {
        let variables = Variables {
            https: Some("http://proxy:3128".into()),
            http: Some("http://plain:3128".into()),
            none: Some(excluded.into()),
        };
        variables.proxy_of(&server.parse().unwrap(), None).unwrap().is_none()
    }

    #[test]
    fn no_proxy_is_read_as_go_reads_it() {
        for (server, excluded) in [
            ("https://api.example.org:6443", "example.org"),
            ("https://api.example.org:6443", " .example.org , other"),
            ("https://api.example.org:6443", "*.example.org"),
            ("https://API.example.org:6443", "api.Example.org:6443"),
            ("https://example.org", "example.org:443"),
            ("https://10.1.2.3:6443", "localhost,10.0.0.0/8,"),
            ("https://10.1.2.3:6443", "10.1.2.3"),
            ("https://[2001:db8::1]:6443", "2001:db8::1"),
            ("https://[2001:db8::1]:6443", "[2001:db8::1]:6443"),
            ("https://api.example.org", "*"),
            // A cluster on this machine is never asked through a proxy.
            ("https://127.0.0.1:6443", ""),
            ("https://[::1]:6443", ""),
            ("https://localhost:6443", ""),
        ] {
            assert!(direct(server, excluded), "{server} {excluded}");
        }
        for (server, excluded) in [
            ("https://api.example.org:6443", ""),
            ("https://api.example.org:6443", "notexample.org,,:6443"),
            ("https://badexample.org", "example.org"),
            ("https://example.org", ".example.org"),
            ("https://api.example.org:6443", "api.example.org:443"),
            ("https://10.1.2.3:6443", "10.1.2.3:443,192.168.0.0/16,3"),
            ("https://api.example.org:6443", "10.0.0.0/8"),
        ] {
            assert!(!direct(server, excluded), "{server} {excluded}");
        }
    }

    #[test]
    fn the_kubeconfigs_proxy_wins_over_the_environment() {
        let variables = Variables {
            https: Some("http://proxy:3128".into()),
            none: Some("*".into()),
            http: None,
        };
        let server = Uri::from_static("https://api:6443");
        let proxy = variables.proxy_of(&server, Some("socks5://jump:1080")).unwrap().unwrap();
        assert_eq!(proxy.uri(), "socks5://jump:1080/");
        assert!(variables.proxy_of(&server, Some("")).unwrap().is_none());
    }

    #[test]
    fn a_proxy_is_http_unless_it_says_otherwise_and_its_password_is_not_repeated() {
        let of = |https: &str| {
            let variables = Variables { https: Some(https.into()), ..Variables::default() };
            variables.proxy_of(&Uri::from_static("https://api"), None)
        };
        assert_eq!(of("proxy:3128").unwrap().unwrap().uri(), "http://proxy:3128/");
        let proxy = of("http://me:p%40ss@proxy:3128").unwrap().unwrap();
        assert_eq!(proxy.basic_auth().unwrap(), "Basic bWU6cEBzcw==");
        let proxy = of("socks5h://me:secret@proxy:1080").unwrap().unwrap();
        assert_eq!(proxy.raw_auth(), Some(("me", "secret")));
        for wrong in ["ftp://me:secret@proxy", "socks4://proxy:1", "http://", "http://a b"] {
            let text = of(wrong).unwrap_err().to_string();
            assert!(text.starts_with("error: HTTPS_PROXY is not the URL of a proxy"), "{text}");
            assert!(!text.contains("secret"), "{text}");
        }
    }
}
