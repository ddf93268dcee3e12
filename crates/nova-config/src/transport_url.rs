//! oslo.messaging's `transport_url`, parsed as oslo.messaging does it; no output contains a secret.

use std::fmt;

use percent_encoding::percent_decode_str;

use crate::oslo::boolean;

/// The port of a broker without one in the URL.
const DEFAULT_PORT: u16 = 5672;
/// The most brokers of a URL, each of which is logged in to; clusters of RabbitMQ have three to five.
const MOST_BROKERS: usize = 32;
/// The most bytes of a URL.
const LONGEST: usize = 64 * 1024;

/// A message bus: the brokers that a service may log in to, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportUrl {
    /// The brokers in the URL's order, at least one.
    pub brokers: Vec<Broker>,
    /// The virtual host; `/` when the URL names none.
    pub virtual_host: String,
    /// Whether `?ssl=1` (or `true`, `on`, `yes`) requests TLS.
    pub tls: bool,
}

/// One broker and its credentials in the URL.
#[derive(Clone, PartialEq, Eq)]
pub struct Broker {
    /// Host name or address, an IPv6 address without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// User; `guest` when the URL names none.
    pub user: String,
    /// Password; `guest` when the URL names none.
    pub password: String,
}

impl Broker {
    /// Returns `host:port`, with brackets around an IPv6 address.
    pub fn address(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Broker({})", self.address())
    }
}

/// Why a text is not a `transport_url`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlFault {
    /// A space or a line break at one of its ends, which would be a part of a name.
    Blank,
    /// No `rabbit://` at its beginning.
    NotRabbit,
    /// More bytes than a URL with the most brokers needs.
    TooLong,
    /// No host at all, or an empty one.
    NoHost,
    /// More brokers than are logged in to.
    TooManyBrokers,
    /// A port that is not a number from 1 to 65535.
    Port,
    /// The apparent host is a part of the credentials, which contain an unescaped character.
    Unescaped,
    /// An opening bracket of an IPv6 address without the closing one.
    Bracket,
    /// A virtual host that is too long for AMQP.
    VirtualHost,
    /// A value of `ssl` that is not a boolean.
    Ssl,
}

/// The cause and the correction, without any part of the URL.
impl fmt::Display for UrlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blank => {
                "begins or ends with a space or a line break, which would be a part of a name; remove \
                 it"
            }
            Self::NotRabbit => {
                "does not begin with rabbit://; write rabbit://USER:PASSWORD@HOST:PORT/VHOST"
            }
            Self::TooLong => "is longer than 64 KiB; name at most 32 brokers",
            Self::TooManyBrokers => "names more than 32 brokers; name some of them",
            Self::NoHost => "names no host; write rabbit://USER:PASSWORD@HOST:PORT/VHOST",
            Self::Port => {
                "has a port that is not a number from 1 to 65535; if a user or password holds one \
                 of / ? # @ , : % write that character percent-encoded"
            }
            Self::Unescaped => {
                "has an @ behind the first / ? or # and none in the last host before it; write \
                 these characters percent-encoded in a user or password, and @ in a virtual host \
                 as %40"
            }
            Self::Bracket => "has an IPv6 address whose bracket is not closed, as in [::1]:5672",
            Self::VirtualHost => "has a virtual host longer than 255 bytes",
            Self::Ssl => "has an ssl parameter that is neither true nor false",
        })
    }
}

impl TransportUrl {
    /// Parses a URL as `oslo_messaging.TransportURL.parse` does, which takes a blank at an end too.
    pub fn parse(url: &str) -> Result<Self, UrlFault> {
        if url.len() > LONGEST {
            return Err(UrlFault::TooLong);
        }
        if url.trim() != url {
            return Err(UrlFault::Blank);
        }
        let (scheme, rest) = url.split_once("://").ok_or(UrlFault::NotRabbit)?;
        if !["rabbit", "kombu"].contains(&scheme.to_ascii_lowercase().as_str()) {
            return Err(UrlFault::NotRabbit);
        }
        // Otherwise a part of a password would be taken for a port, shown and connected to.
        let (before, behind) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if behind.contains('@') && !before.rsplit(',').next().is_some_and(|it| it.contains('@')) {
            return Err(UrlFault::Unescaped);
        }
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let hosts = hosts.split(',').filter(|it| !it.is_empty());
        if hosts.clone().count() > MOST_BROKERS {
            return Err(UrlFault::TooManyBrokers);
        }
        let brokers = hosts.map(broker).collect::<Result<Vec<_>, _>>()?;
        if brokers.is_empty() {
            return Err(UrlFault::NoHost);
        }
        Ok(Self { brokers, virtual_host: virtual_host(path)?, tls: wants_tls(query)? })
    }

    /// Returns whether both are one message bus, with whatever login: a virtual host of the same broker.
    pub fn is_same_bus(&self, other: &Self) -> bool {
        let is_here = |it: &Broker| {
            self.brokers.iter().any(|own| own.address().eq_ignore_ascii_case(&it.address()))
        };
        self.virtual_host == other.virtual_host && other.brokers.iter().any(is_here)
    }
}

fn broker(netloc: &str) -> Result<Broker, UrlFault> {
    // A user may contain an `@`, so the last one separates.
    let (credentials, address) = match netloc.rsplit_once('@') {
        Some((credentials, address)) => (Some(credentials), address),
        None => (None, netloc),
    };
    let (host, port) = host_and_port(address)?;
    let (user, password) = match credentials.map(|it| it.split_once(':').ok_or(it)) {
        Some(Ok((user, password))) => (Some(user), Some(password)),
        Some(Err(user)) => (Some(user), None),
        None => (None, None),
    };
    let or_guest = |it: Option<&str>| match it {
        Some(it) if !it.is_empty() => decoded(it),
        // Without credentials, oslo.messaging's rabbit driver logs in as RabbitMQ's default user.
        _ => "guest".to_owned(),
    };
    Ok(Broker { host, port, user: or_guest(user), password: or_guest(password) })
}

fn host_and_port(address: &str) -> Result<(String, u16), UrlFault> {
    let (host, port) = if let Some(bracketed) = address.strip_prefix('[') {
        let (host, rest) = bracketed.split_once(']').ok_or(UrlFault::Bracket)?;
        (host, rest.strip_prefix(':'))
    } else {
        match address.split_once(':') {
            // More than one colon: an IPv6 address without brackets, which can carry no port.
            Some((_, rest)) if rest.contains(':') => (address, None),
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        }
    };
    if host.is_empty() {
        return Err(UrlFault::NoHost);
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => port.parse().ok().filter(|it| *it != 0).ok_or(UrlFault::Port)?,
    };
    Ok((host.to_owned(), port))
}

fn virtual_host(path: &str) -> Result<String, UrlFault> {
    let name = decoded(path);
    match name.len() {
        0 => Ok("/".to_owned()),
        1..=255 => Ok(name),
        _ => Err(UrlFault::VirtualHost),
    }
}

fn wants_tls(query: &str) -> Result<bool, UrlFault> {
    let value = query
        .split('&')
        .filter_map(|it| it.split_once('='))
        .rfind(|(key, value)| *key == "ssl" && !value.is_empty());
    value.map_or(Ok(false), |(_, value)| boolean(&decoded(value)).ok_or(UrlFault::Ssl))
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Broker, TransportUrl, UrlFault};

    #[track_caller]
    fn check(url: &str, brokers: &[(&str, u16, &str, &str)], virtual_host: &str, tls: bool) {
        let brokers = brokers
            .iter()
            .map(|&(host, port, user, password)| Broker {
                host: host.to_owned(),
                port,
                user: user.to_owned(),
                password: password.to_owned(),
            })
            .collect();
        let expected = TransportUrl { brokers, virtual_host: virtual_host.to_owned(), tls };
        // assert_eq! would hide the difference: Debug omits the password.
        assert!(TransportUrl::parse(url).unwrap() == expected, "{:?}", TransportUrl::parse(url));
    }

    #[test]
    fn brokers_credentials_and_the_virtual_host_are_read_as_oslo_messaging_reads_them() {
        let guest = ("guest", "guest");
        let (up, of) = (("u", "p"), |host, port, (user, password)| (host, port, user, password));
        let one = |host, port, login| vec![of(host, port, login)];
        for (url, brokers, virtual_host, tls) in [
            ("rabbit://nova:pw@h:5673/cell1", one("h", 5673, ("nova", "pw")), "cell1", false),
            // An @ in a virtual host is none of the credentials.
            ("rabbit://u:p@h/a@b", one("h", 5672, up), "a@b", false),
            ("rabbit://h/a%40b", one("h", 5672, guest), "a@b", false),
            // Each of several brokers has its own credentials.
            (
                "rabbit://u:p@h1:5672,v:q@h2:5673/vhost?ssl=1",
                vec![of("h1", 5672, up), of("h2", 5673, ("v", "q"))],
                "vhost",
                true,
            ),
            ("rabbit://u:p@h1,h2/", vec![of("h1", 5672, up), of("h2", 5672, guest)], "/", false),
            // Percent-encoding is undone; a plus and a bad escape stay.
            (
                "rabbit://us%40er:p%2Fw%23%2C%25%C3%A9@h/a%2Fb",
                one("h", 5672, ("us@er", "p/w#,%é")),
                "a/b",
                false,
            ),
            ("rabbit://u:a+b%zz@h/v", one("h", 5672, ("u", "a+b%zz")), "v", false),
            // A user may hold an @, and a password a colon.
            ("rabbit://u@realm:p:q@h:1/v", one("h", 1, ("u@realm", "p:q")), "v", false),
            ("rabbit://u:p@[fd00::1]:5673/v", one("fd00::1", 5673, up), "v", false),
            ("rabbit://u:p@[fd00::1]/v", one("fd00::1", 5672, up), "v", false),
            ("rabbit://u:p@fd00::1/v", one("fd00::1", 5672, up), "v", false),
            // The virtual host defaults to the root.
            ("rabbit://u:p@h", one("h", 5672, up), "/", false),
            ("rabbit://u:p@h//", one("h", 5672, up), "/", false),
            ("rabbit://u:p@h?ssl=true", one("h", 5672, up), "/", true),
            ("rabbit://u:p@h/?ssl=0", one("h", 5672, up), "/", false),
            ("rabbit://u:p@h/?a=b&ssl=yes", one("h", 5672, up), "/", true),
        ] {
            check(url, &brokers, virtual_host, tls);
        }
        let url = TransportUrl::parse("rabbit://u:p@[fd00::1]/v").unwrap();
        assert_eq!(url.brokers[0].address(), "[fd00::1]:5672");
    }

    #[test]
    fn a_password_of_digits_with_an_unescaped_slash_is_not_taken_for_a_port() {
        for url in [
            "rabbit://nova:123/45@h:5672/v",
            "rabbit://nova:1?2@h",
            "rabbit://nova:1#2@h/",
            "rabbit://u:p@h1,nova:123/45@h2:5672/v",
        ] {
            assert_eq!(TransportUrl::parse(url), Err(UrlFault::Unescaped), "{url}");
            assert!(!UrlFault::Unescaped.to_string().contains("123"));
        }
    }

    #[test]
    fn what_is_no_transport_url_says_why() {
        for (url, fault) in [
            ("rabbit://u:p@h/v ", UrlFault::Blank),
            ("rabbit://u:p@h/v\n", UrlFault::Blank),
            (" rabbit://u:p@h/v", UrlFault::Blank),
            ("", UrlFault::NotRabbit),
            ("amqp://u:p@h/", UrlFault::NotRabbit),
            ("rabbit:u:p@h/", UrlFault::NotRabbit),
            ("rabbit:///v", UrlFault::NoHost),
            ("rabbit://u:p@/v", UrlFault::NoHost),
            ("rabbit://u:p@:5672/v", UrlFault::NoHost),
            ("rabbit://u:p@h:/v", UrlFault::Port),
            ("rabbit://u:p@h:0/v", UrlFault::Port),
            ("rabbit://u:p@h:65536/v", UrlFault::Port),
            ("rabbit://u:pass#word@h:5672/v", UrlFault::Unescaped),
            ("rabbit://u:pass/word@h:5672/v", UrlFault::Unescaped),
            ("rabbit://u:p@[::1/v", UrlFault::Bracket),
            ("rabbit://u:p@h/?ssl=maybe", UrlFault::Ssl),
        ] {
            assert_eq!(TransportUrl::parse(url), Err(fault), "{url}");
        }
        let long = format!("rabbit://u:p@h/{}", "v".repeat(256));
        assert_eq!(TransportUrl::parse(&long), Err(UrlFault::VirtualHost));
    }

    #[test]
    fn a_url_has_at_most_32_brokers_and_64_kib() {
        let brokers = |n: usize| format!("rabbit://{}/v", vec!["u:p@h"; n].join(","));
        assert_eq!(TransportUrl::parse(&brokers(32)).unwrap().brokers.len(), 32);
        assert_eq!(TransportUrl::parse(&brokers(33)), Err(UrlFault::TooManyBrokers));
        let long = |n: usize| format!("rabbit://u:{}@h/v", "p".repeat(n - "rabbit://u:@h/v".len()));
        assert!(TransportUrl::parse(&long(65536)).is_ok());
        assert_eq!(TransportUrl::parse(&long(65537)), Err(UrlFault::TooLong));
    }

    #[test]
    fn debug_tells_no_secret() {
        let url = TransportUrl::parse("rabbit://nova:hunter2@h/v").unwrap();
        assert!(!format!("{url:?}").contains("hunter2"));
    }
}
