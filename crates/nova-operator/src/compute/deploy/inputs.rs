//! The inputs of a deployment of nova-compute, and the hash of each service.

use std::collections::BTreeMap;

use api::dataplane::ServiceRun;
use kube::ResourceExt;
use nova_config::annotations::REDEPLOY;
use nova_config::services::{LIBVIRT, NOVA, NOVA_REGISTERED};
use operator_core::hash;
use operator_core::keyed::Digest;
use operator_core::run_engine::DesiredService;
use operator_core::run_engine::service_sequence::UNKNOWN;
use serde_json::{Value, json};

use crate::compute::deploy::config_inputs::Complete;
use crate::compute::deploy::libvirt_tls::HostCertificate;
use crate::compute::deploy::migration_key;
use crate::compute::deploy::observed::Observed;

/// Version of the list of fields below. A new version would change the hash of every compute, so it
/// never changes: new fields are included only when they are set.
const VERSION: &str = "v1";

/// The input that changes with a requested redeploy or repair of the compute.
pub const REDEPLOY_INPUT: &str = "redeploy";

/// The input that changes with a redeploy of the node, and with a reinstallation of the host.
pub const INSTANCE_INPUT: &str = "hostInstance";

/// Input name → digest, without unset inputs.
pub use operator_core::keyed::{Inputs, changed_inputs, short};

/// The inputs of each service.
#[derive(Clone, Debug, PartialEq)]
pub struct OfServices {
    /// The inputs of libvirt.
    pub libvirt: Inputs,
    /// The inputs of nova-compute.
    pub nova: Inputs,
    /// The two parts of their common input [`REDEPLOY_INPUT`]: one hash has had both from the
    /// first release on, but only one of them restarts nova-compute.
    requested: Inputs,
}

impl OfServices {
    /// Returns the inputs of all services, with the parts of what was requested.
    pub fn union(&self) -> Inputs {
        let of_services = self.libvirt.iter().chain(&self.nova);
        let whole = of_services.filter(|(name, _)| *name != REDEPLOY_INPUT);
        whole.chain(&self.requested).map(|(a, b)| (a.clone(), b.clone())).collect()
    }
}

/// The instance of the host, and what was requested of the compute.
#[derive(Debug)]
pub struct Instance<'a> {
    /// It changes with a redeploy of the node, and with a repair of its services.
    of_node: Option<&'a str>,
    /// The last redeploy value of the compute and the last audit that a deployment of the compute alone
    /// repaired, or `None` without both.
    of_compute: Option<String>,
}

impl<'a> Instance<'a> {
    /// Resolves the instance; `repaired` is the UID of the audit that a deployment of the compute alone
    /// repairs now.
    ///
    /// A redeploy value stays in force after the annotation is removed, and so does a repair after its
    /// audit is gone: neither must cause a deployment.
    pub fn resolve(seen: &'a Observed, repaired: Option<&str>) -> Self {
        let of_node =
            seen.node.as_ref().and_then(|it| it.status.as_ref()?.host_instance.as_deref());
        let compute = &seen.compute;
        let recorded = compute.status.as_ref().and_then(|it| it.host_instance.as_deref());
        let last = recorded.and_then(|it| it.rsplit_once('+')).map(|(_, it)| it);
        let given = compute.annotations().get(REDEPLOY).map(hash::short);
        let repaired = repaired.map(hash::short);
        if last.is_none() && given.is_none() && repaired.is_none() {
            return Self { of_node, of_compute: None };
        }
        let (last, last_repaired) = last.map(|it| it.split_once('-').unwrap_or((it, ""))).unzip();
        let redeploy = given.as_deref().or(last).unwrap_or_default();
        let repaired = repaired.as_deref().or(last_repaired).unwrap_or_default();
        let separator = if repaired.is_empty() { "" } else { "-" };
        Self { of_node, of_compute: Some(format!("{redeploy}{separator}{repaired}")) }
    }

    /// Returns both in one text, or `None` without both.
    pub fn text(&self) -> Option<String> {
        (self.of_node.is_some() || self.of_compute.is_some()).then(|| {
            let of_compute = self.of_compute.as_deref().unwrap_or_default();
            format!("{}+{of_compute}", self.of_node.unwrap_or_default())
        })
    }

    fn inputs(&self) -> Inputs {
        let mut inputs = Inputs::new();
        add(&mut inputs, INSTANCE_INPUT, &json!(self.of_node));
        add(&mut inputs, REDEPLOY_INPUT, &json!(self.of_compute));
        inputs
    }
}

/// Returns the inputs of a compute whose configuration is complete; `of_cell` are those of its cell.
///
/// They do not include the runner image, the ssh Secret and user, and the rendered text.
pub fn service_inputs(
    seen: &Observed,
    complete: &Complete,
    instance: &Instance<'_>,
    certificate: &HostCertificate,
    of_cell: &Inputs,
) -> OfServices {
    let host = of_host(seen, instance);
    let spec = &seen.compute.spec;
    let mut libvirt = host.clone();
    add(&mut libvirt, "novaLibvirtContainerImage", &json!(spec.nova_libvirt_container_image));
    let mut nova = host;
    add(&mut nova, "novaComputeContainerImage", &json!(spec.nova_compute_container_image));
    let has_tls = certificate.is_wanted.then_some(true);
    for of_service in [&mut libvirt, &mut nova] {
        add(of_service, "tlsEnabled", &json!(has_tls));
    }
    libvirt.extend(certificate.inputs.clone());
    add(&mut nova, "customServiceConfig", &json!(spec.custom_service_config));
    for (name, text) in &spec.default_config_overwrite {
        nova.insert(format!("defaultConfigOverwrite {name}"), hash::short(text).into());
    }
    if let Some(default) = &complete.default_config {
        add(&mut nova, &format!("ConfigMap {}", default.name), &json!(default.text));
    }
    nova.extend(of_cell.clone());
    if let Some(key) = migration_key::input(seen, &hash(NOVA, &[&nova])) {
        nova.insert(migration_key::SECRET.to_owned(), key);
    }
    OfServices { libvirt, nova, requested: instance.inputs() }
}

fn of_host(seen: &Observed, instance: &Instance<'_>) -> Inputs {
    let spec = &seen.compute.spec;
    let status = seen.node.as_ref().and_then(|it| it.status.clone()).unwrap_or_default();
    let mut inputs = Inputs::new();
    let fields = [
        ("address", json!(status.address)),
        ("dnsConfig", json!(spec.dns_config)),
        ("env", json!(spec.env)),
        ("extraMounts", json!(spec.extra_mounts)),
        ("hostName", json!(status.host_name)),
        ("networkAttachments", json!(spec.network_attachments)),
        (REDEPLOY_INPUT, json!(instance.text())),
    ];
    for (name, value) in fields {
        add(&mut inputs, name, &value);
    }
    inputs
}

/// Returns the hash of a service over its inputs.
pub fn hash(service: &str, inputs: &[&Inputs]) -> Digest {
    Digest::combined(inputs.iter().flat_map(|it| it.values()), |view| {
        let inputs: Vec<_> = inputs.iter().map(|it| view.all(it)).collect();
        hash::digest(&(VERSION, service, inputs))
    })
}

/// Returns the services in order. The registration check depends on both others: a service that
/// restarts has to register again.
pub fn desired_services(inputs: &OfServices) -> Vec<DesiredService> {
    let hashes = [
        (LIBVIRT, hash(LIBVIRT, &[&inputs.libvirt])),
        (NOVA, hash(NOVA, &[&inputs.nova])),
        (NOVA_REGISTERED, hash(NOVA_REGISTERED, &[&inputs.libvirt, &inputs.nova])),
    ];
    hashes.into_iter().map(|(service, hash)| desired_service(service, hash)).collect()
}

/// Returns a service with the hash that it is to have on the host.
pub fn desired_service(service: &str, hash: Digest) -> DesiredService {
    let (service, run_hash, group) = (service.to_owned(), hash.clone(), String::new());
    DesiredService { service, run_hash, hash, group }
}

/// Assumes recorded hashes while inputs are unknown: a Secret or a cell that is missing does not
/// outdate a deployment. An invalid configuration is a pending change.
pub fn as_recorded(recorded: &[ServiceRun], has_bad_config: bool) -> Vec<DesiredService> {
    [LIBVIRT, NOVA, NOVA_REGISTERED]
        .into_iter()
        .map(|service| {
            let record = recorded.iter().find(|it| it.name == service);
            let hash = Digest::from(match record {
                Some(record) if !has_bad_config || service == LIBVIRT => record.hash.clone(),
                _ => UNKNOWN.to_owned(),
            });
            desired_service(service, hash)
        })
        .collect()
}

/// Whether a deployment with these inputs went to that address; true when they record no address.
pub fn went_to(deployed: &BTreeMap<String, String>, address: &str) -> bool {
    deployed.get("address").is_none_or(|it| *it == hash::short(&json!(address)))
}

fn add(inputs: &mut Inputs, name: &str, value: &Value) {
    let is_empty = value.is_null()
        || value.as_array().is_some_and(Vec::is_empty)
        || value.as_str().is_some_and(str::is_empty);
    if !is_empty {
        inputs.insert(name.to_owned(), hash::short(value).into());
    }
}
