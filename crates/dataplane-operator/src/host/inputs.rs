//! The inputs of a service's deployment on a host, and their hash.

use std::cell::RefCell;
use std::collections::BTreeMap;

use api::dataplane::{Service, ServiceSpec};
use operator_core::data_sources::service_type;
use operator_core::hash;
use operator_core::hash::Begun;
use operator_core::keyed::{Digest, View};
use operator_core::run_engine::run_template::AnsibleOptions;
use serde_json::{Value, json};

use crate::host::effective_spec::EffectiveSpec;
use crate::host::vars;

/// The version of the set of inputs below, which is part of every hash.
///
/// Another value would change every hash and redeploy every host, so it never changes. New fields
/// become inputs only when they are set.
const VERSION: &str = "v1";

/// The prefix of the name of an input that is a service.
const SERVICE: &str = "service ";

/// Maps the name of an input to its digest; inputs that are not set are left out.
pub use operator_core::keyed::{Inputs, changed_inputs};

/// Returns the inputs of a host on which every service depends.
///
/// Operator and runner images, the ssh Secret and addresses of other hosts are not inputs.
pub fn of_host(host: &EffectiveSpec, instance: Option<&str>) -> Inputs {
    let mut inputs = Inputs::new();
    let fields = [
        ("ansibleHost", json!(host.ansible_host)),
        ("ansiblePort", json!(host.ansible_port)),
        ("ansibleUser", json!(host.ansible_user)),
        ("env", json!(host.env)),
        ("extraMounts", json!(host.extra_mounts)),
        ("hostName", json!(host.host_name)),
        ("managementNetwork", json!(host.management_network)),
        ("networkAttachments", json!(host.network_attachments)),
        ("networkConfig.template", json!(host.nic_template)),
        ("networks", host.networks.clone()),
        ("redeploy", json!(instance)),
    ];
    for (name, value) in fields {
        insert_unless_empty(&mut inputs, name.to_owned(), &value);
    }
    let vars = host.vars.iter().filter(|it| !host.origins.contains_key(it.0));
    for (name, value) in vars.chain(&host.replaced_vars) {
        inputs.insert(format!("ansibleVars.{name}"), hash::short(value).into());
    }
    inputs.extend(vars::inputs(&host.origins));
    inputs
}

/// Returns whether recorded inputs belong to a host at this address, given as `host:port`.
pub fn are_at(inputs: &BTreeMap<String, String>, address: &str) -> bool {
    let Some((host, port)) = address.rsplit_once(':') else { return false };
    let port: Option<i32> = port.parse().ok();
    are_of_host(inputs, host) && inputs.get("ansiblePort") == Some(&hash::short(&json!(port)))
}

/// Returns whether recorded inputs belong to a host that was reached as `host`, at any port.
pub fn are_of_host(inputs: &BTreeMap<String, String>, host: &str) -> bool {
    inputs.get("ansibleHost") == Some(&hash::short(&json!(host)))
}

/// Returns whether recorded inputs belong to a host that has services.
///
/// A host without services is complete without a run.
pub fn have_services(inputs: &BTreeMap<String, String>) -> bool {
    inputs.keys().any(|it| it.starts_with(SERVICE))
}

/// Returns the inputs that a service adds: what it executes, and its data sources.
///
/// `sources` maps the objects whose keys become files, as `ConfigMap x`, to the digests of their
/// content.
pub fn of_service(service: &Service, name: &str, sources: &Inputs) -> Inputs {
    let spec = &service.spec;
    let executed = json!({
        "playbook": spec.playbook,
        "contents": contents(spec),
        "role": spec.role,
        "type": service_type(spec, name),
    });
    let mut inputs = Inputs::from([(format!("{SERVICE}{name}"), hash::short(&executed).into())]);
    let facts = format!("{SERVICE}{name}: factVariables");
    insert_unless_empty(&mut inputs, facts, &json!(spec.fact_variables));
    inputs.extend(sources.clone());
    inputs
}

/// The inputs of a host, which are hashed once for all its services.
pub struct HostInputs<'a> {
    inputs: &'a Inputs,
    begun: RefCell<BTreeMap<View, Begun>>,
}

impl<'a> HostInputs<'a> {
    /// Takes the inputs of a host on which every service depends.
    pub fn of(inputs: &'a Inputs) -> Self {
        Self { inputs, begun: RefCell::default() }
    }

    /// Returns the hash of a service on the host: of `[VERSION, [inputs of host, of service]]`.
    pub fn hash_with(&self, service: &Inputs) -> Digest {
        let prefix = |view: View| {
            let host = hash::canonical(&view.all(self.inputs));
            Begun::with(&format!("[\"{VERSION}\",[{host},"))
        };
        Digest::combined(self.inputs.values().chain(service.values()), |view| {
            let mut all = self.begun.borrow_mut();
            let begun = all.entry(view).or_insert_with(|| prefix(view));
            begun.digest(&format!("{}]]", hash::canonical(&view.all(service))))
        })
    }
}

/// Returns the hash of what a run with these options does; a full run has the full hash.
pub fn run_hash(full: &Digest, options: &AnsibleOptions) -> Digest {
    if !options.is_partial() {
        return full.clone();
    }
    full.map(|full| hash::digest(&(full, &options.tags, &options.skip_tags, &options.limit)))
}

/// Returns the inline playbook, from its present or its deprecated field.
pub fn contents(spec: &ServiceSpec) -> Option<&String> {
    spec.playbook_contents.as_ref().or(spec.play.as_ref())
}

/// Adds an input unless its value is null, an empty list or an empty map.
pub fn insert_unless_empty(inputs: &mut Inputs, name: String, value: &Value) {
    let is_empty = value.is_null()
        || value.as_array().is_some_and(Vec::is_empty)
        || value.as_object().is_some_and(serde_json::Map::is_empty);
    if !is_empty {
        inputs.insert(name, hash::short(value).into());
    }
}

#[cfg(test)]
mod golden_tests;

#[cfg(test)]
mod tests {
    use operator_core::keyed::Keys;

    use super::*;

    #[test]
    fn a_changed_an_added_and_a_removed_input_are_named() {
        let digest = |pairs: &[(&str, &str)]| -> Inputs {
            pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).into())).collect()
        };
        let deployed = operator_core::keyed::texts(&digest(&[("a", "1"), ("b", "1"), ("c", "1")]));
        let present = digest(&[("a", "1"), ("b", "2"), ("d", "1")]);
        assert_eq!(changed_inputs(&deployed, &present), ["b", "c", "d"]);
    }

    #[test]
    fn options_change_what_a_run_does_but_not_the_full_hash() {
        let tags = AnsibleOptions { tags: Some("x".into()), ..AnsibleOptions::default() };
        assert_eq!(run_hash(&"h".into(), &AnsibleOptions::default()), "h".into());
        assert_ne!(run_hash(&"h".into(), &tags), "h".into());
    }

    #[test]
    fn the_facts_that_a_service_asks_for_are_an_input() {
        let of = |facts: Value| {
            let spec = json!({ "playbook": "a.b.c", "factVariables": facts });
            let service = Service::new("own", serde_json::from_value(spec).unwrap());
            of_service(&service, "own", &Inputs::new())
        };
        let asked = of(json!(["ansible_interfaces"]));
        assert_eq!(
            changed_inputs(&operator_core::keyed::texts(&of(json!([]))), &asked),
            ["service own: factVariables"]
        );
    }

    /// Golden: another value here would deploy every host again after an upgrade.
    #[test]
    fn the_hash_of_the_same_inputs_never_changes() {
        let host = Inputs::from([("hostName".into(), "abc".into())]);
        let service = Inputs::from([("service a".into(), "def".into())]);
        assert_eq!(HostInputs::of(&host).hash_with(&service).text(), GOLDEN);
    }

    #[test]
    fn what_is_hashed_once_for_all_services_gives_the_hash_of_the_whole_with_each_key() {
        let keys = Keys::new(b"new", [b"old".as_slice()]);
        let (open, secret) = (Digest::from("abc"), keys.of_bytes(b"secret"));
        let inputs = |all: &[(&str, &Digest)]| -> Inputs {
            all.iter().map(|(name, it)| ((*name).to_owned(), (*it).clone())).collect()
        };
        let all = [
            inputs(&[("a", &open)]),
            inputs(&[("b \"", &secret), ("c", &open)]),
            inputs(&[("d", &secret)]),
            Inputs::new(),
        ];
        for host in &all {
            let of_host = HostInputs::of(host);
            for service in &all {
                let whole = Digest::combined(host.values().chain(service.values()), |view| {
                    hash::digest(&(VERSION, [view.all(host), view.all(service)]))
                });
                assert_eq!(of_host.hash_with(service), whole, "{host:?} {service:?}");
            }
        }
    }

    const GOLDEN: &str = "0e608c31dd3cd8190a061f3fcd4f3ae5d2e195b1427aee43e1a4d2bc18e81b57";
}
