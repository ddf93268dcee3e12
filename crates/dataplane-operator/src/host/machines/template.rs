//! Parses the user's machine template, which has no schema of its own, as the spec of a baremetal
//! set.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use api::baremetal::{BaremetalHost, BaremetalSet, BaremetalSetSpec};
use api::problem::Problem;
use api::shared::AnyMap;
use kube::CustomResourceExt as _;
use serde_json::{Value, json};

use crate::reasons;

/// Field of upstream's first templates with the netmask of all addresses.
const NETMASK: &str = "ctlplaneNetmask";
/// Default prefix length of IPv4 addresses: upstream's default mask.
const PREFIX_V4: u32 = 24;
/// Default prefix length of IPv6 addresses.
const PREFIX_V6: u32 = 64;

/// A parsed template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// The fields that the user wrote, without defaults, so that the field manager owns no
    /// defaults.
    pub fields: AnyMap,
    /// All fields, with defaults.
    pub spec: BaremetalSetSpec,
    netmask: Option<Ipv4Addr>,
}

impl Template {
    /// Parses a template; `place` is its path for messages.
    ///
    /// An unknown field is a fault: with a misspelt requirement any machine would match.
    pub fn read(given: &AnyMap, place: &str) -> Result<Self, Problem> {
        let mut fields = given.clone();
        // An explicit null states nothing.
        fields.retain(|_, it| !it.is_null());
        let netmask = fields.remove(NETMASK);
        let value = json!(fields);
        let wrong = |what: String| {
            let text = format!(
                "{place} cannot be what an OpenStackBaremetalSet says: {what}. Correct it; kubectl \
                 explain openstackbaremetalset.spec lists the fields."
            );
            Problem::new(&reasons::machines::TEMPLATE_INVALID, text)
        };
        if let Some(path) = unknown(&SCHEMA, &value, "") {
            return Err(wrong(format!("it has no field {}", path.trim_start_matches('.'))));
        }
        let spec: BaremetalSetSpec =
            serde_json::from_value(value).map_err(|it| wrong(it.to_string()))?;
        if spec.template.ctlplane_interface.is_empty() {
            return Err(wrong("missing field `ctlplaneInterface`".to_owned()));
        }
        let netmask = netmask.as_ref().map(|it| mask(it).ok_or_else(|| wrong(bad_mask(it))));
        Ok(Self { fields, spec, netmask: netmask.transpose()? })
    }

    /// Appends the prefix length to an address. Returns `None` if it is not an address.
    pub fn with_prefix(&self, address: &str) -> Option<String> {
        with_prefix(address, self.netmask)
    }

    /// Returns the template's entry for a host.
    pub fn host(&self, name: &str) -> Option<&BaremetalHost> {
        self.spec.baremetal_hosts.get(name)
    }
}

/// Appends the prefix length to an address: from the netmask, or upstream's default without one.
/// Returns `None` if it is not an address.
pub fn with_prefix(address: &str, netmask: Option<Ipv4Addr>) -> Option<String> {
    if address.contains('/') {
        return Some(address.to_owned());
    }
    let prefix = match address.parse().ok()? {
        IpAddr::V4(_) => netmask.map_or(PREFIX_V4, |it| it.to_bits().count_ones()),
        IpAddr::V6(_) => PREFIX_V6,
    };
    Some(format!("{address}/{prefix}"))
}

/// Merges two entries of a host. Fields of the second one win.
pub fn merged(first: Option<&BaremetalHost>, second: Option<&BaremetalHost>) -> BaremetalHost {
    let fields = |it: &BaremetalHost| -> BTreeMap<String, Value> {
        let value = serde_json::to_value(it).unwrap_or_default();
        let mut fields: BTreeMap<String, Value> = serde_json::from_value(value).unwrap_or_default();
        // An explicit `false` cannot be distinguished from the default.
        fields.retain(|_, it| *it != json!(false));
        fields
    };
    let all: BTreeMap<String, Value> =
        [first, second].into_iter().flatten().flat_map(fields).collect();
    serde_json::from_value(json!(all)).unwrap_or_default()
}

fn mask(value: &Value) -> Option<Ipv4Addr> {
    let mask: Ipv4Addr = value.as_str()?.parse().ok()?;
    let bits = mask.to_bits();
    (bits.leading_ones() == bits.count_ones()).then_some(mask)
}

fn bad_mask(value: &Value) -> String {
    format!("{NETMASK} is {value}, and must be a mask as in 255.255.255.0")
}

/// The OpenAPI schema of a baremetal set's spec.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let definition = serde_json::to_value(BaremetalSet::crd()).unwrap_or_default();
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    definition.pointer(spec).cloned().unwrap_or_default()
});

/// Returns the path of the first field that the schema does not know.
fn unknown(schema: &Value, value: &Value, path: &str) -> Option<String> {
    match value {
        Value::Object(map) => map.iter().find_map(|(key, it)| {
            let path = format!("{path}.{key}");
            let known = schema.pointer("/properties").and_then(|it| it.get(key));
            match known.or_else(|| schema.get("additionalProperties")) {
                Some(schema) => unknown(schema, it, &path),
                None => Some(path),
            }
        }),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(idx, it)| unknown(&schema["items"], it, &format!("{path}[{idx}]"))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(template: Value) -> Result<Template, String> {
        let given: AnyMap = serde_json::from_value(template).map_err(|it| it.to_string())?;
        Template::read(&given, "spec.baremetalSetTemplate of OpenStackDataPlaneRole compute")
            .map_err(|it| it.message)
    }

    #[test]
    fn what_was_written_is_kept_and_nothing_is_added() {
        let template = json!({ "ctlplaneInterface": "eth0", "bmhLabelSelector": { "any": "x" },
            "ironic": { "endpoint": "http://i", "machine": { "capabilities": { "a": "b" } } },
            "baremetalHosts": { "n0": { "machine": { "node": "m" }, "adopt": true } },
            "passwordSecret": null });
        let found = read(template.clone()).unwrap();
        let mut expected = template;
        expected.as_object_mut().unwrap().remove("passwordSecret");
        assert_eq!(json!(found.fields), expected);
        assert!(found.host("n0").unwrap().adopt);
    }

    #[test]
    fn a_field_that_no_set_has_is_told_with_its_path() {
        let cases = [
            (json!({ "ctlplaneInterface": "a", "ironik": {} }), "it has no field ironik."),
            (
                json!({ "ctlplaneInterface": "a", "ironic": { "endpoint": "http://i",
                    "machine": { "resourceclass": "x" } } }),
                "it has no field ironic.machine.resourceclass.",
            ),
            (
                json!({ "ctlplaneInterface": "a", "baremetalHosts": { "n0": { "ip": "x" } } }),
                "it has no field baremetalHosts.n0.ip.",
            ),
            (json!({ "osImage": "x" }), "missing field `ctlplaneInterface`"),
            (json!({ "ctlplaneInterface": 1 }), "invalid type"),
            (
                json!({ "ctlplaneInterface": "a", "ctlplaneNetmask": "255.0.255.0" }),
                "must be a mask as in 255.255.255.0",
            ),
        ];
        for (template, expected) in cases {
            let reported = read(template).unwrap_err();
            assert!(reported.contains(expected), "{reported}");
            assert!(reported.starts_with("spec.baremetalSetTemplate of OpenStackDataPlaneRole"));
        }
    }

    #[test]
    fn an_address_gets_the_prefix_of_the_mask_or_upstreams() {
        let plain = read(json!({ "ctlplaneInterface": "a" })).unwrap();
        let masked = json!({ "ctlplaneInterface": "a", "ctlplaneNetmask": "255.255.248.0" });
        let masked = read(masked).unwrap();
        let cases = [
            ("192.0.2.7", Some("192.0.2.7/24"), Some("192.0.2.7/21")),
            ("192.0.2.7/26", Some("192.0.2.7/26"), Some("192.0.2.7/26")),
            ("2001:db8::7", Some("2001:db8::7/64"), Some("2001:db8::7/64")),
            ("n0.example.org", None, None),
        ];
        for (address, without, with) in cases {
            assert_eq!(plain.with_prefix(address).as_deref(), without);
            assert_eq!(masked.with_prefix(address).as_deref(), with);
        }
    }

    #[test]
    fn of_two_words_on_a_host_the_second_one_wins_field_by_field() {
        let host = |it: Value| -> BaremetalHost { serde_json::from_value(it).unwrap() };
        let first = host(json!({ "ctlPlaneIP": "192.0.2.1/24", "adopt": true,
            "machine": { "node": "a" } }));
        let second = host(json!({ "ctlplaneVlan": 7, "machine": { "node": "b" } }));
        let expected = host(json!({ "ctlPlaneIP": "192.0.2.1/24", "adopt": true,
            "ctlplaneVlan": 7, "machine": { "node": "b" } }));
        assert_eq!(merged(Some(&first), Some(&second)), expected);
        assert_eq!(merged(None, None), BaremetalHost::default());
    }
}
