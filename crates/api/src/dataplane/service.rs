//! `OpenStackDataPlaneService`: a playbook that makes hosts do something, and what it is given.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::facts;
use crate::shared::{DNS_SUBDOMAIN, DataSource};

pub mod faults;

/// Label of a service that the operator ships.
pub const DEFAULT_SERVICE_LABEL: &str = "edpm.openstack.org/default-service";

/// The form of a type of condition, as the API server demands it of a Pod's readiness gates.
const QUALIFIED_NAME: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$";

/// The playbook, and what it is given.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "dataplane.openstack.org",
    version = "v1beta1",
    kind = "OpenStackDataPlaneService",
    root = "Service",
    doc = "OpenStackDataPlaneService names a playbook that roles and node sets deploy to their \
           hosts, and the ConfigMaps and Secrets that it uses.",
    namespaced,
    status = "ServiceStatus",
    derive = "PartialEq",
    derive = "Default",
    category = "edpm",
    shortname = "osdps",
    shortname = "osdpservice",
    shortname = "osdpservices",
    label("edpm.openstack.org/managed-by", "edpm-operators"),
    label("backup.openstack.org/restore", "true"),
    label("backup.openstack.org/category", "dataplane"),
    label("backup.openstack.org/restore-order", "40"),
    validation = Rule::new("size(self.metadata.name) <= 63")
        .message("the name of a service is a label of its runs: choose one of at most 63 characters"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(
        name = "Included",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="PlaybookIncluded")].status"#
    ),
    printcolumn(name = "Playbook", type_ = "string", json_path = ".spec.playbook"),
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.edpmServiceType"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("[has(self.playbook) ? self.playbook : '', has(self.playbookContents) ? self.playbookContents : '', has(self.role) ? self.role : '', has(self.play) ? self.play : ''].exists(it, it != '')")
        .message("a service needs playbook, playbookContents or role"),
    validation = Rule::new(format!("!has(self.caCerts) || self.caCerts == '' || self.caCerts.matches(r'{DNS_SUBDOMAIN}')"))
        .message("caCerts is the name of a Secret: lower-case letters, digits, - and ."),
    validation = Rule::new(format!("(!has(self.configMaps) || self.configMaps.all(it, it.matches(r'{DNS_SUBDOMAIN}'))) && (!has(self.secrets) || self.secrets.all(it, it.matches(r'{DNS_SUBDOMAIN}')))"))
        .message("configMaps and secrets are names of objects: lower-case letters, digits, - and .")
)]
// Who applies the spec states all of it: of what a user edits in a default service nothing is left.
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ServiceSpec {
    /// Name or path of the playbook, for example `osp.edpm.configure_network`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub playbook: Option<String>,
    /// The playbook itself, as YAML text; it wins over `playbook`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 262_144))]
    pub playbook_contents: Option<String>,
    /// Name or path of an Ansible role that is run as it is, for example `osp.edpm.edpm_nova`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub role: Option<String>,
    /// `ConfigMaps` and Secrets that are mounted under
    /// `/var/lib/openstack/configs/<edpmServiceType>`, one file per key; of several with one key the
    /// last one listed is mounted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(
        validation = Rule::new(
            r"self.all(it, (has(it.configMapRef) && has(it.configMapRef.name)) || (!has(it.configMapRef) && has(it.secretRef) && has(it.secretRef.name)))")
            .message("each entry names a ConfigMap (configMapRef.name) or a Secret (secretRef.name)"),
        validation = Rule::new(format!(
            "self.all(it, (!has(it.configMapRef) || !has(it.configMapRef.name) || it.configMapRef.name.matches(r'{DNS_SUBDOMAIN}')) && (!has(it.secretRef) || !has(it.secretRef.name) || it.secretRef.name.matches(r'{DNS_SUBDOMAIN}')))"))
            .message("a ConfigMap or Secret has a name of lower-case letters, digits, - and .")
    )]
    pub data_sources: Vec<DataSource>,
    /// What kind of service this is: it names the directory of the mounts and the variable
    /// `edpm_service_type`; the object's name when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"))]
    pub edpm_service_type: Option<String>,
    /// The runner image for this service; the operator's default when absent.
    #[serde(rename = "openStackAnsibleEERunnerImage", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub open_stack_ansible_ee_runner_image: Option<String>,
    /// Certificates for each host, by name; roles issue them where their `tlsEnabled` is true.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub tls_certs: BTreeMap<String, TlsCert>,
    /// A Secret with the CA bundle that the hosts trust; runs of roles mount it where their
    /// `tlsEnabled` is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub ca_certs: Option<String>,
    /// Deprecated: the service whose certificates are used; accepted, without effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub certs_from: Option<String>,
    /// Whether the runs mount the certificates and CA bundles of all services of the node set, or of
    /// the role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add_cert_mounts: Option<bool>,
    /// Whether one run covers all node sets of a deployment; roles do not use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deploy_on_all_node_sets: Option<bool>,
    /// Facts of the hosts that the plays read as variables, for example `ansible_interfaces`; without
    /// them facts are in `ansible_facts` alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 63)))]
    #[x_kube(validation = Rule::new(format!("self.all(it, it in {:?})", facts::NAMES))
        .message("a fact cannot be a variable: read it as ansible_facts[...] in the playbook"))]
    pub fact_variables: Vec<String>,
    /// Images of an `OpenStackVersion` that the service needs; accepted, without effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub container_image_fields: Vec<String>,
    /// Deprecated, use `playbookContents`: the playbook itself, as YAML text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 262_144))]
    pub play: Option<String>,
    /// Deprecated: a prefix for the names of runs; accepted, without effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub label: Option<String>,
    /// Deprecated, use `dataSources`: names of `ConfigMaps` that are mounted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 253)))]
    pub config_maps: Vec<String>,
    /// Deprecated, use `dataSources`: names of Secrets that are mounted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 253)))]
    pub secrets: Vec<String>,
    /// Name or path of a playbook that says what this service leaves on a host, for the audits of other
    /// operators; it is a part of no deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024), regex(pattern = r"^[A-Za-z0-9_/][A-Za-z0-9_./-]*$"))]
    pub audit_playbook: Option<String>,
    /// Types of conditions that other operators report for each host of a node set: its `Ready`, and
    /// the end of a deployment, wait for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub readiness_gates: Vec<ReadinessGate>,
    /// Ports of the hosts that are exposed as Kubernetes Services, over the nodes of all roles that
    /// list this service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = Rule::new("self.all(it, self.exists_one(other, other.name == it.name))")
        .message("each Kubernetes Service has one port here: give each entry a name of its own"))]
    pub services: Vec<ServicePort>,
}

/// What cert-manager accepts as `usages` of a `Certificate`.
pub const KEY_USAGES: [&str; 23] = [
    "signing",
    "digital signature",
    "content commitment",
    "key encipherment",
    "key agreement",
    "data encipherment",
    "cert sign",
    "crl sign",
    "encipher only",
    "decipher only",
    "any",
    "server auth",
    "client auth",
    "code signing",
    "email protection",
    "s/mime",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "timestamping",
    "ocsp signing",
    "microsoft sgc",
    "netscape sgc",
];

/// A certificate that each host gets.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TlsCert {
    /// What the certificate names: `dnsnames`, `ips` or both.
    #[schemars(length(min = 1, max = 8), inner(length(max = 63)))]
    #[x_kube(validation = Rule::new("self.all(it, it in ['dnsnames', 'ips'])")
        .message("a certificate names dnsnames, ips or both"))]
    pub contents: Vec<String>,
    /// The networks whose names and addresses it carries; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub networks: Vec<String>,
    /// The label that the issuer carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub issuer: Option<String>,
    /// What the key may be used for, in cert-manager's words, for example `server auth`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 63)))]
    #[x_kube(validation = Rule::new(format!("self.all(it, it in {KEY_USAGES:?})"))
        .message("cert-manager has no such key usage: see its KeyUsage"))]
    pub key_usages: Vec<String>,
    /// Deprecated: the directory that the certificate is mounted in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub edpm_role_service_name: Option<String>,
}

/// A type of condition that another operator reports for each host, as a Pod has it.
#[derive(Clone, Debug, Default, Deserialize, Eq, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadinessGate {
    /// The type of condition, with the prefix of the operator that reports it, for example
    /// `nova.openstack.org/ServiceUp`.
    #[schemars(length(min = 1, max = 317), regex(pattern = QUALIFIED_NAME))]
    #[x_kube(validation = Rule::new("self.contains('/')")
        .message("no operator reports a condition without a prefix of its own: take the whole type, for \
                  example nova.openstack.org/ServiceUp"))]
    pub condition_type: String,
}

/// A port of the hosts.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    /// Name of the Kubernetes Service.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// The port.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// The protocol that is used there, over TCP.
    #[serde(default = "default_protocol")]
    #[schemars(length(max = 63), regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"))]
    pub protocol: String,
}

fn default_protocol() -> String {
    "http".into()
}

/// What was seen of the service.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceStatus {
    /// The `metadata.generation` that the status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The aspects of the service, `Ready` first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}
