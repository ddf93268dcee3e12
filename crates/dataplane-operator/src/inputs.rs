//! What a deployment of a service on a host depends on, input by input, and its hash.

use std::collections::BTreeMap;

use common::api::dataplane::{Service, ServiceSpec};
use common::engine::build::Options;
use common::hash;
use serde_json::{Value, json};

use crate::effective::Effective;
use crate::vars;

/// The list of fields below; a new number would mean another hash for everyone, so it never changes
/// for what exists: new fields enter only where they are set.
const VERSION: &str = "v1";

/// Input name → digest. Inputs that are not set are left out.
pub type Inputs = BTreeMap<String, String>;

/// The inputs of a host that every service depends on.
///
/// Not among them: operator and runner images, the ssh Secret, addresses of other hosts.
pub fn of_host(host: &Effective, instance: Option<&str>) -> Inputs {
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
        add(&mut inputs, name, &value);
    }
    let vars = host.vars.iter().filter(|it| !host.origins.contains_key(it.0));
    for (name, value) in vars.chain(&host.replaced_vars) {
        inputs.insert(format!("ansibleVars.{name}"), hash::short(value));
    }
    inputs.extend(vars::inputs(&host.origins));
    inputs
}

/// The inputs that a service adds: what it executes and what it is given.
///
/// `sources` are the objects whose keys become files: `ConfigMap x` → digest of its content.
pub fn of_service(service: &Service, name: &str, sources: &BTreeMap<String, String>) -> Inputs {
    let spec = &service.spec;
    let executed = json!({
        "playbook": spec.playbook,
        "contents": contents(spec),
        "role": spec.role,
        "type": service_type(spec, name),
    });
    let mut inputs = Inputs::from([(format!("service {name}"), hash::short(&executed))]);
    add(&mut inputs, &format!("service {name}: factVariables"), &json!(spec.fact_variables));
    inputs.extend(sources.clone());
    inputs
}

/// The hash of a service on a host.
pub fn hash(inputs: [&Inputs; 2]) -> String {
    hash::digest(&(VERSION, inputs))
}

/// The hash of what a run now would do.
pub fn run_hash(full: &str, options: &Options) -> String {
    if !options.is_partial() {
        return full.to_owned();
    }
    hash::digest(&(full, &options.tags, &options.skip_tags, &options.limit))
}

/// The names of the inputs in which two deployments differ.
pub fn changed(deployed: &Inputs, present: &Inputs) -> Vec<String> {
    let names = deployed.keys().chain(present.keys());
    let mut changed: Vec<String> =
        names.filter(|it| deployed.get(*it) != present.get(*it)).cloned().collect();
    changed.sort();
    changed.dedup();
    changed
}

/// The inline playbook, under its present or its deprecated name.
pub fn contents(spec: &ServiceSpec) -> Option<&String> {
    spec.playbook_contents.as_ref().or(spec.play.as_ref())
}

/// The logical type of a service: the folder of its data sources in the pod.
pub fn service_type(spec: &ServiceSpec, name: &str) -> String {
    spec.edpm_service_type.clone().unwrap_or_else(|| name.to_owned())
}

fn add(inputs: &mut Inputs, name: &str, value: &Value) {
    let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    if !is_empty {
        inputs.insert(name.to_owned(), hash::short(value));
    }
}

#[cfg(test)]
mod golden_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_an_added_and_a_removed_input_are_named() {
        let digest = |pairs: &[(&str, &str)]| -> Inputs {
            pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
        };
        let deployed = digest(&[("a", "1"), ("b", "1"), ("c", "1")]);
        let present = digest(&[("a", "1"), ("b", "2"), ("d", "1")]);
        assert_eq!(changed(&deployed, &present), ["b", "c", "d"]);
    }

    #[test]
    fn options_change_what_a_run_does_but_not_the_full_hash() {
        let tags = Options { tags: Some("x".into()), ..Options::default() };
        assert_eq!(run_hash("h", &Options::default()), "h");
        assert_ne!(run_hash("h", &tags), "h");
    }

    #[test]
    fn the_facts_that_a_service_asks_for_are_an_input() {
        let of = |facts: Value| {
            let spec = json!({ "playbook": "a.b.c", "factVariables": facts });
            let service = Service::new("own", serde_json::from_value(spec).unwrap());
            of_service(&service, "own", &BTreeMap::new())
        };
        let asked = of(json!(["ansible_interfaces"]));
        assert_eq!(changed(&of(json!([])), &asked), ["service own: factVariables"]);
    }

    /// Golden: another value here would deploy every host again after an upgrade.
    #[test]
    fn the_hash_of_the_same_inputs_never_changes() {
        let host = Inputs::from([("hostName".into(), "abc".into())]);
        let service = Inputs::from([("service a".into(), "def".into())]);
        assert_eq!(hash([&host, &service]), GOLDEN);
    }

    const GOLDEN: &str = "0e608c31dd3cd8190a061f3fcd4f3ae5d2e195b1427aee43e1a4d2bc18e81b57";
}
