//! Versions: which microversion each service is used with, and whether an API supports it.

use hyper::body::Bytes;
use serde::Deserialize;

use crate::error::{Error, Service};
use crate::response::parsed;

/// The header by which both sides state the microversion.
pub(crate) const HEADER: &str = "OpenStack-API-Version";

/// The microversion of nova.
///
/// From 2.53 on, services and hypervisors have UUIDs; from 2.69 on, the services of a cell whose
/// database does not answer are listed as UNKNOWN. From 2.88 on, nova may ask each host for its
/// uptime when hypervisors are listed, which takes too long for thousands.
const COMPUTE: Microversion = Microversion { service: Service::Compute, text: "2.69" };
/// The microversion of placement.
///
/// From 1.28 on, a consumer's allocations have a generation, and are emptied by an empty object;
/// from 1.38 on, they have a type, which older releases do not have. Train to Wallaby end at 1.36.
const PLACEMENT: Microversion = Microversion { service: Service::Placement, text: "1.36" };

/// The microversion of every request to a service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Microversion {
    service: Service,
    /// Both numbers with a dot.
    pub text: &'static str,
}

/// The description of an API's versions: nova's of one version, placement's of all that it has.
#[derive(Deserialize)]
#[serde(untagged)]
enum Document {
    One { version: Described },
    All { versions: Vec<Described> },
}

#[derive(Deserialize)]
struct Described {
    /// The newest microversion; empty where there are none.
    #[serde(alias = "version")]
    max_version: String,
    min_version: String,
}

/// Neutron's description of itself.
#[derive(Deserialize)]
struct NeutronDocument {
    versions: Vec<NeutronVersion>,
}

#[derive(Deserialize)]
struct NeutronVersion {
    id: String,
}

/// Checks that the API that describes itself so is that of the service, in a version that is used.
pub(crate) fn check(service: Service, document: &Bytes) -> Result<(), Error> {
    if let Some(microversion) = Microversion::of(service) {
        return microversion.check(document);
    }
    let versions = parsed::<NeutronDocument>(document)?.versions;
    if versions.iter().any(|it| it.id == "v2.0") { Ok(()) } else { Err(Error::NotTheService) }
}

impl Microversion {
    /// Returns the microversion for a service; `None` for one that has none.
    pub(crate) const fn of(service: Service) -> Option<Self> {
        match service {
            Service::Compute => Some(COMPUTE),
            Service::Placement => Some(PLACEMENT),
            Service::Identity | Service::Network => None,
        }
    }

    /// Returns the header's value.
    pub(crate) fn header_value(self) -> String {
        format!("{} {}", self.service.catalog_type(), self.text)
    }

    /// Checks that the API that describes itself so supports the microversion.
    pub(crate) fn check(self, document: &Bytes) -> Result<(), Error> {
        let described = match parsed(document)? {
            Document::One { version } => version,
            Document::All { mut versions } if versions.len() == 1 => versions.remove(0),
            Document::All { .. } => return Err(Error::NotTheService),
        };
        let (min, max) = (numbers(&described.min_version), numbers(&described.max_version));
        let needed = numbers(self.text);
        let supported = match (min, max) {
            (Some(_), Some(_)) if min <= needed && max >= needed => return Ok(()),
            (Some(min), Some(max)) => format!("{}.{} to {}.{}", min.0, min.1, max.0, max.1),
            _ => "none".to_owned(),
        };
        Err(Error::Version { needed: self.text, supported })
    }
}

fn numbers(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(service: Service, document: &str, supported: Option<&str>) {
        let microversion = Microversion::of(service).unwrap();
        let found = microversion.check(&Bytes::copy_from_slice(document.as_bytes()));
        let expected = supported.map_or(Ok(()), |it| {
            Err(Error::Version { needed: microversion.text, supported: it.to_owned() })
        });
        assert_eq!(found, expected, "{document}");
    }

    #[test]
    fn the_needed_microversion_is_between_the_oldest_and_the_newest() {
        for (min, max, supported) in [
            ("2.1", "2.100", None),
            ("2.69", "2.69", None),
            ("2.1", "2.60", Some("2.1 to 2.60")),
            ("2.70", "2.100", Some("2.70 to 2.100")),
            ("", "", Some("none")),
        ] {
            let document = format!(
                r#"{{"version": {{"id": "v2.1", "version": "{max}", "min_version": "{min}"}}}}"#
            );
            check(Service::Compute, &document, supported);
        }
    }

    #[test]
    fn placement_describes_its_only_version_in_a_list() {
        let document = |max: &str| {
            format!(
                r#"{{"versions": [{{"id": "v1.0", "max_version": "{max}", "min_version": "1.0",
                "status": "CURRENT", "links": []}}]}}"#
            )
        };
        check(Service::Placement, &document("1.39"), None);
        check(Service::Placement, &document("1.30"), Some("1.0 to 1.30"));
        let microversion = Microversion::of(Service::Placement).unwrap();
        let none = microversion.check(&Bytes::from_static(br#"{"versions": []}"#));
        assert_eq!(none, Err(Error::NotTheService));
    }

    #[test]
    fn neutron_describes_its_version_without_a_microversion() {
        let check =
            |it: &'static str| super::check(Service::Network, &Bytes::from_static(it.as_bytes()));
        let links = r#"{"versions": [{"id": "v2.0", "status": "CURRENT", "links": []}]}"#;
        assert_eq!(check(links), Ok(()));
        for other in [r#"{"versions": []}"#, r#"{"versions": [{"id": "v2.1"}]}"#, "{}", "<html>"] {
            assert_eq!(check(other), Err(Error::NotTheService), "{other}");
        }
    }
}
