//! The inputs of a node set's deployments, part by part, and the digest of all of them.
//!
//! The content of the services' own ConfigMaps and Secrets is not included: each deployment records
//! what it used of them.

use std::collections::BTreeMap;

use api::dataplane::AnsibleOpts;
use operator_core::keyed::{Digest, short, texts};
use operator_core::node_set_host::Host;
use operator_core::{hash, node_set_host};
use operator_runtime::source_cache::Content;
use serde_json::json;

use crate::host::inputs::{Inputs, insert_unless_empty, of_service};
use crate::host::vars::{named, title};
use crate::node_set::external_resources::{self, ExternalResources};
use crate::node_set::observed::Observed;

/// Version of the list of parts below. It never changes, because a new version would change every
/// existing digest. New parts are added only when they are set.
const VERSION: &str = "v1";

/// Returns the digest of each part by name. Parts that are not set are left out.
pub fn input_digests(seen: &Observed, hosts: &[Host<'_>], served: &ExternalResources) -> Inputs {
    let (spec, template) = (&seen.set.spec, &seen.set.spec.node_template);
    let opts = template.ansible.clone().unwrap_or_default();
    let mut inputs = Inputs::new();
    let parts = [
        ("env", json!(spec.env)),
        ("networkAttachments", json!(spec.network_attachments)),
        ("nodeTemplate.ansible.ansiblePort", json!(opts.ansible_port)),
        ("nodeTemplate.ansible.ansibleUser", json!(node_set_host::user(&seen.set))),
        ("nodeTemplate.extraMounts", json!(template.extra_mounts)),
        ("nodeTemplate.managementNetwork", json!(template.management_network)),
        ("nodeTemplate.networks", json!(template.networks)),
        ("services", json!(spec.services)),
        ("tags", json!(spec.tags)),
        ("tlsEnabled", json!(spec.tls_enabled)),
    ];
    for (name, value) in parts {
        insert_unless_empty(&mut inputs, name.to_owned(), &value);
    }
    for (name, value) in &opts.ansible_vars {
        let name = format!("nodeTemplate.ansible.ansibleVars.{name}");
        inputs.insert(name, hash::short(value).into());
    }
    for host in hosts {
        inputs.insert(format!("nodes.{}", host.key), of_host(host).into());
    }
    for (name, service) in &seen.services {
        inputs.extend(of_service(service, name, &Inputs::new()));
    }
    inputs.extend(of_variables(seen));
    inputs.extend(external_resources::inputs(seen, served));
    inputs
}

/// Returns the digest of all parts.
pub fn digest(inputs: &Inputs) -> Digest {
    Digest::combined(inputs.values(), |view| hash::digest(&(VERSION, view.all(inputs))))
}

fn of_host(host: &Host<'_>) -> String {
    let node = host.node;
    let opts = node.ansible.clone().unwrap_or_default();
    let parts = [
        ("address", json!(host.address())),
        ("ansibleUser", json!(opts.ansible_user)),
        ("ansibleVars", json!(opts.ansible_vars)),
        ("ansibleVarsFrom", json!(opts.ansible_vars_from)),
        ("hostName", json!(host.host_name)),
        ("managementNetwork", json!(node.management_network)),
        ("networks", json!(node.networks)),
    ];
    let mut set = Inputs::new();
    for (name, value) in parts {
        insert_unless_empty(&mut set, name.to_owned(), &value);
    }
    hash::short(&texts(&set))
}

/// Maps `ansibleVarsFrom ConfigMap x` to the digest of that object's content.
fn of_variables(seen: &Observed) -> Inputs {
    let digests = |content: &Content| -> BTreeMap<String, Digest> {
        let digest = |key: &str| content.digest(key).cloned().unwrap_or_default();
        content.keys().map(|key| (key.to_owned(), digest(key))).collect()
    };
    let of = |(source, content): (_, &Content)| {
        (format!("ansibleVarsFrom {}", title(source)), short(&digests(content)))
    };
    seen.objects.iter().map(of).chain(entries(seen)).collect()
}

/// Returns the digest of the template's `ansibleVarsFrom` list: the objects and their prefixes.
fn entries(seen: &Observed) -> Option<(String, Digest)> {
    let opts: &AnsibleOpts = seen.set.spec.node_template.ansible.as_ref()?;
    let list = &opts.ansible_vars_from;
    let part = "nodeTemplate.ansible.ansibleVarsFrom".to_owned();
    (!named(list).is_empty()).then(|| (part, hash::short(list).into()))
}
