//! Keystone's catalog: where the services of a region answer.

use serde::Deserialize;

use crate::error::Service;
use crate::text::footprint;

/// The interfaces that are used, the first one that exists: the operator is inside the deployment.
const INTERFACES: [&str; 2] = ["internal", "public"];

/// The endpoints of the services of this crate; others are not kept.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Catalog(Vec<Endpoint>);

#[derive(Clone, Debug, Eq, PartialEq)]
struct Endpoint {
    service: Service,
    region: String,
    interface: &'static str,
    url: String,
}

/// A service of the catalog, as a token's description has it.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    #[serde(rename = "type")]
    type_: String,
    #[serde(default)]
    endpoints: Vec<EntryEndpoint>,
}

#[derive(Debug, Deserialize)]
struct EntryEndpoint {
    interface: String,
    // Keystone sends both names of the region, and null where the endpoint has none.
    region_id: Option<String>,
    region: Option<String>,
    url: String,
}

impl Catalog {
    /// Keeps the endpoints that may be used.
    pub(crate) fn of(entries: Vec<Entry>) -> Self {
        let mut kept = Vec::new();
        for entry in entries {
            let service = Service::ALL.into_iter().find(|it| it.catalog_type() == entry.type_);
            let Some(service) = service else { continue };
            for endpoint in entry.endpoints {
                let interface = INTERFACES.into_iter().find(|it| *it == endpoint.interface);
                let region = endpoint.region_id.or(endpoint.region);
                let (Some(interface), Some(region)) = (interface, region) else { continue };
                kept.push(Endpoint { service, region, interface, url: endpoint.url });
            }
        }
        Self(kept)
    }

    /// Returns an upper estimate of its memory in bytes.
    pub(crate) fn footprint(&self) -> usize {
        let of =
            |it: &Endpoint| 2 * size_of::<Endpoint>() + footprint(&it.region) + footprint(&it.url);
        self.0.iter().map(of).sum()
    }

    /// Returns the URL of a service in a region: internal, else public.
    pub fn endpoint(&self, service: Service, region: &str) -> Option<&str> {
        let of_service = || self.0.iter().filter(|it| it.service == service && it.region == region);
        INTERFACES
            .into_iter()
            .find_map(|interface| of_service().find(|it| it.interface == interface))
            .map(|it| it.url.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn catalog() -> Catalog {
        let endpoint = |interface: &str, region: &str| {
            json!({
                "interface": interface, "region": region, "region_id": region,
                "url": format!("http://{interface}.{region}:8774/v2.1"),
            })
        };
        let entries = json!([
            {"type": "compute", "name": "nova", "endpoints": [
                endpoint("public", "one"), endpoint("internal", "one"), endpoint("admin", "two"),
                endpoint("public", "three"),
                {"interface": "internal", "region": null, "region_id": null, "url": "http://x"},
            ]},
            {"type": "image", "endpoints": [endpoint("internal", "one")]},
            {"type": "identity"},
        ]);
        Catalog::of(serde_json::from_value(entries).unwrap())
    }

    #[test]
    fn the_internal_endpoint_of_the_region_is_used_else_the_public_one() {
        let url = |region| catalog().endpoint(Service::Compute, region).map(str::to_owned);
        assert_eq!(url("one").as_deref(), Some("http://internal.one:8774/v2.1"));
        assert_eq!(url("three").as_deref(), Some("http://public.three:8774/v2.1"));
    }

    #[test]
    fn no_other_interface_region_or_service_is_used() {
        assert_eq!(catalog().endpoint(Service::Compute, "two"), None);
        assert_eq!(catalog().endpoint(Service::Compute, "four"), None);
        assert_eq!(catalog().endpoint(Service::Identity, "one"), None);
    }
}
