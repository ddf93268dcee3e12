//! The Kubernetes Service and the EndpointSlices of a port.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use api::dataplane::service::ServicePort;
use api::dataplane::{Node, Service};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::Service as CoreService;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use operator_core::hash;
use operator_core::plan::{Kind, Step, Target};
use operator_core::run_engine::build::owner;
use serde_json::{Value, json};

use crate::host::conflicts::has_reached_host;
use crate::labels::PORTS;

/// Maximum number of addresses in one slice.
pub const SLICE_LIMIT: usize = 100;

/// Annotation with the hash of the written content.
const CONTENT_HASH: &str = "edpm.openstack.org/content-hash";

/// The addresses of the nodes that run a service.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ExposedAddresses {
    /// IPv4 addresses.
    pub v4: BTreeSet<IpAddr>,
    /// IPv6 addresses.
    pub v6: BTreeSet<IpAddr>,
    /// Nodes whose address is a name, unknown, or unusable as an endpoint.
    pub without: BTreeSet<String>,
    /// Nodes at whose address no deployment has succeeded yet. Without this check, anyone who may
    /// write a node could direct a Service's traffic to any address, including pods of other
    /// namespaces.
    pub unreached: BTreeSet<String>,
    /// Nodes whose address is outside the networks that the administrator allows. A user can make a
    /// deployment that reaches nothing succeed, but cannot change this list.
    pub outside: BTreeSet<String>,
}

impl ExposedAddresses {
    /// Classifies nodes by their published address, their deployments and the allowed `networks`.
    /// An empty list allows all.
    pub fn of(nodes: &[Arc<Node>], networks: &[IpNet]) -> Self {
        let mut all = Self::default();
        for node in nodes.iter().filter(|it| it.metadata.deletion_timestamp.is_none()) {
            let reported = node.status.as_ref().and_then(|it| it.address.as_deref());
            let host = reported.and_then(|it| Some(it.rsplit_once(':')?.0)).unwrap_or_default();
            match ip(host) {
                None => all.without.insert(node.name_any()),
                Some(ip) if !is_allowed(networks, ip) => all.outside.insert(node.name_any()),
                Some(_) if !has_reached_host(node, host) => all.unreached.insert(node.name_any()),
                Some(ip) if ip.is_ipv4() => all.v4.insert(ip),
                Some(ip) => all.v6.insert(ip),
            };
        }
        all
    }

    /// Returns the number of exposed addresses.
    pub fn count(&self) -> usize {
        self.v4.len() + self.v6.len()
    }
}

fn is_allowed(networks: &[IpNet], ip: IpAddr) -> bool {
    networks.is_empty() || networks.iter().any(|it| it.contains(&ip))
}

/// Parses the IP address of a host; `None` if it cannot be an endpoint. An IPv4-mapped IPv6 address
/// becomes IPv4, as for the list of networks and the API server.
fn ip(host: &str) -> Option<IpAddr> {
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>().ok()?.to_canonical();
    // The API server rejects a whole slice because of one such address.
    let is_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    (!is_local && !ip.is_loopback() && !ip.is_multicast() && !ip.is_unspecified()).then_some(ip)
}

/// Splits the addresses into the slices of a port: name, address type, and addresses.
pub fn slices_of(
    port: &ServicePort,
    addresses: &ExposedAddresses,
) -> Vec<(String, &'static str, Vec<IpAddr>)> {
    let families = [("", "IPv4", &addresses.v4), ("v6-", "IPv6", &addresses.v6)];
    let mut slices = Vec::new();
    for (infix, type_, all) in families {
        let all: Vec<IpAddr> = all.iter().copied().collect();
        for (idx, chunk) in all.chunks(SLICE_LIMIT).enumerate() {
            slices.push((format!("{}-{infix}{idx}", port.name), type_, chunk.to_vec()));
        }
    }
    slices
}

/// Returns the step that writes the Kubernetes Service of a port, if it differs.
pub fn exposed(service: &Service, port: &ServicePort, found: Option<&CoreService>) -> Option<Step> {
    let name = port_name(port);
    let spec = json!({
        "ports": [{
            "name": name,
            "port": port.port,
            "targetPort": port.port,
            "protocol": "TCP",
            "appProtocol": port.protocol,
        }],
    });
    let hash = hash::short(&spec);
    // A user may have added ports; the hash shows that ours has not changed.
    let is_there = |it: &CoreService| {
        let ports = it.spec.as_ref().and_then(|it| it.ports.as_ref());
        it.annotations().get(CONTENT_HASH) == Some(&hash)
            && ports
                .into_iter()
                .flatten()
                .any(|it| it.port == port.port && it.app_protocol.as_ref() == Some(&port.protocol))
    };
    if found.is_some_and(is_there) {
        return None;
    }
    let mut object = object(service, &hash, json!({}));
    object["spec"] = spec;
    let target = target(service, Kind::of::<CoreService>(), port.name.clone());
    Some(Step::apply(target, object, "a service exposes this port of its hosts"))
}

/// Returns the step that writes a slice, if it differs.
pub fn slice(
    service: &Service,
    port: &ServicePort,
    (name, type_, addresses): (String, &str, Vec<IpAddr>),
    found: Option<&EndpointSlice>,
) -> Option<Step> {
    let endpoints: Vec<Value> = addresses
        .iter()
        .map(|it| json!({ "addresses": [it.to_string()], "conditions": { "ready": true } }))
        .collect();
    let content = json!({
        "addressType": type_,
        "endpoints": endpoints,
        "ports": [{
            "name": port_name(port),
            "port": port.port,
            "protocol": "TCP",
            "appProtocol": port.protocol,
        }],
    });
    let hash = hash::short(&content);
    if found.is_some_and(|it| is_intact(it, &hash, &addresses, port)) {
        return None;
    }
    let labels = json!({
        "kubernetes.io/service-name": port.name,
        "endpointslice.kubernetes.io/managed-by": "dataplane-operator.openstack.org",
    });
    let mut object = object(service, &hash, labels);
    for (field, value) in content.as_object().into_iter().flatten() {
        object[field] = value.clone();
    }
    let target = target(service, Kind::of::<EndpointSlice>(), name);
    Some(Step::apply(target, object, "the addresses differ from those of the nodes"))
}

/// Returns whether a slice is as it was written.
fn is_intact(found: &EndpointSlice, hash: &str, desired: &[IpAddr], port: &ServicePort) -> bool {
    let addresses = found.endpoints.iter().flat_map(|it| &it.addresses);
    let ports: Vec<Option<i32>> = found.ports.iter().flatten().map(|it| it.port).collect();
    found.annotations().get(CONTENT_HASH).is_some_and(|it| it == hash)
        && found.labels().get("kubernetes.io/service-name") == Some(&port.name)
        && ports == [Some(port.port)]
        && addresses.cloned().eq(desired.iter().map(IpAddr::to_string))
}

/// Returns the port name, which Service and slices must share.
fn port_name(port: &ServicePort) -> String {
    format!("port-{}", port.port)
}

fn object(service: &Service, hash: &str, mut labels: Value) -> Value {
    labels[PORTS] = json!("true");
    json!({
        "metadata": {
            "labels": labels,
            "annotations": { CONTENT_HASH: hash },
            "ownerReferences": [owner(&Target::of(service))],
        },
    })
}

fn target(service: &Service, kind: Kind, name: String) -> Target {
    Target { kind, namespace: service.namespace().unwrap_or_default(), name, uid: None }
}
