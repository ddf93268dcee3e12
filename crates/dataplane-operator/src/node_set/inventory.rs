//! The Ansible inventory of a node set: the variables of its hosts, by upstream's precedence.
//!
//! From weakest to strongest: derived defaults, `ansibleVarsFrom`, the fields of the spec,
//! `ansibleVars`, the networks, and (per host) the reserved addresses or (for all hosts) the
//! variables that only the operator sets. A host's own variables take precedence over the group's.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::dataplane::node_section::Network;
use api::dataplane::{AnsibleOpts, Node, NodeSet, Service};
use api::shared::SourceKind;
use api::yaml::{Tree, Var};
use kube::ResourceExt;
use operator_core::data_sources::service_type;
use operator_core::node_set_host;
use operator_core::node_set_host::{CTLPLANE, Host};
use operator_core::run_engine::host_owner::{self, HostOwner};
use operator_core::run_engine::inventory::{
    HOST_KEYS_DIR, KNOWN_HOSTS_KEY, SSH_ARGS_VAR, ssh_vars, with_ours,
};
use operator_core::run_engine::mounts::node_sets::{known_hosts_files, ssh_key_file};
use serde_json::{Value, json};

use crate::host::vars::{self, Objects};
use crate::node_set::external_resources::ExternalResources;
use crate::node_set::ipam::Infra;
use crate::node_set::observed::Observed;

/// Ansible variables by name.
pub type Vars = BTreeMap<String, Var>;

/// Renders the inventory as YAML: one group, named after the node set, with the hosts that have a node.
///
/// # Guarantees
/// Values from Secrets are rendered as plain data. Values that a user wrote into `ansibleVars` or a
/// ConfigMap remain templates.
pub fn inventory(seen: &Observed, hosts: &[Host<'_>], served: &ExternalResources) -> String {
    let tree = |vars: Vars| Tree::map(vars.into_iter().map(|(name, it)| (name, Tree::Scalar(it))));
    let mut group = BTreeMap::from([("vars".to_owned(), tree(group_vars(seen, served)))]);
    // Also of a node that is being deleted, on whose host others clean up.
    let hosts = hosts.iter().filter_map(|it| Some((it, seen.nodes.get(&it.name)?)));
    let mut hosts = hosts
        .map(|(it, node)| (it.name.clone(), tree(host_vars(seen, it, node, served))))
        .peekable();
    if hosts.peek().is_some() {
        group.insert("hosts".to_owned(), Tree::map(hosts));
    }
    Tree::map([(seen.set.name_any(), Tree::Map(group))]).render()
}

/// Returns the group variables, which apply to all hosts.
fn group_vars(seen: &Observed, served: &ExternalResources) -> Vars {
    let (set, template) = (&*seen.set, &seen.set.spec.node_template);
    let opts = template.ansible.clone().unwrap_or_default();
    let mut vars = data(ssh(set).map(|(name, it)| (name, json!(it))));
    vars.extend(given(&seen.namespace, &opts, &seen.objects));
    let user = AnsibleOpts { ansible_user: Some(node_set_host::user(set)), ..opts.clone() };
    vars.extend(fields(&user, Some(&template.management_network)));
    vars.extend(own(&opts));
    vars.extend(networks(&template.networks, &seen.infra));
    vars.extend(decided(set, &seen.services, served.has_certificates));
    follow_with_ours(set, &mut vars);
    vars.retain(|name, _| !host_owner::is_variable(name));
    vars
}

/// Returns the variables with ssh's options.
fn ssh(set: &NodeSet) -> [(&'static str, String); 2] {
    let set = set.name_any();
    let mut files = known_hosts_files(&set).to_vec();
    files.push(format!("{HOST_KEYS_DIR}/{KNOWN_HOSTS_KEY}"));
    ssh_vars(&ssh_key_file(&set), &files)
}

/// Adds our options of ssh to those that a level sets itself.
fn follow_with_ours(set: &NodeSet, vars: &mut Vars) {
    let [(_, ours), _] = ssh(set);
    if let Some(Var::Data(own) | Var::Template(own)) = vars.get_mut(SSH_ARGS_VAR)
        && *own != ours
    {
        *own = with_ours(own, &ours);
    }
}

/// Returns the variables of one host.
fn host_vars(seen: &Observed, host: &Host<'_>, node: &Node, served: &ExternalResources) -> Vars {
    let opts = host.node.ansible.clone().unwrap_or_default();
    let mut vars = if seen.infra.is_used { Vars::new() } else { addresses(host) };
    vars.extend(given(&seen.namespace, &opts, &seen.objects));
    vars.extend(data([("ansible_host", json!(host.ansible_host))]));
    vars.extend(fields(&opts, host.node.management_network.as_ref()));
    vars.extend(own(&opts));
    vars.extend(networks(&host.node.networks, &seen.infra));
    follow_with_ours(&seen.set, &mut vars);
    vars.retain(|name, _| !host_owner::is_variable(name));
    vars.extend(of_operators(node));
    vars.extend(data(owner(&seen.set, node).vars()));
    let reserved = served.vars.get(&host.host_name).into_iter().flatten();
    vars.extend(reserved.map(|(name, it)| (name.clone(), Var::Data(it.clone()))));
    vars
}

/// Returns the owner that the inventory states for a host: its node, which takes it over from the node
/// set, as whose it was recorded before hosts had nodes.
fn owner(set: &NodeSet, node: &Node) -> HostOwner {
    let mut owner = HostOwner::of(node);
    owner.accepted.extend(set.uid());
    owner
}

/// Returns the variables that other operators give to a host. None may change how Ansible connects, nor
/// who owns the host.
fn of_operators(node: &Node) -> Vars {
    let is_refused = |it: &str| it.starts_with("ansible_") || host_owner::is_variable(it);
    let given = node.status.iter().flat_map(|it| &it.host_vars).flat_map(|it| &it.vars);
    let vars = given.filter(|(name, _)| is_word(name) && !is_refused(name));
    data(vars.map(|(name, value)| (name.as_str(), json!(value))))
}

fn is_word(name: &str) -> bool {
    name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
}

/// Returns the variables that plays need from every host when no operator manages addresses. A
/// user's variables override them.
fn addresses(host: &Host<'_>) -> Vars {
    let fixed = host.networks.iter().filter_map(|it| {
        let name = format!("{}_ip", it.name.to_lowercase());
        Some((name, Var::Data(json!(it.fixed_ip.as_ref()?))))
    });
    let mut vars = data([
        ("canonical_hostname", json!(host.host_name)),
        ("ctlplane_ip", json!(host.ansible_host)),
    ]);
    vars.extend(fixed);
    vars
}

/// Returns the variables that `ansibleVarsFrom` of one level (template or node) provides.
pub fn given(namespace: &str, opts: &AnsibleOpts, objects: &Objects) -> Vars {
    let var = |it: vars::VarSource<'_>| {
        let value = vars::value(it.content.text(it.key)?);
        let var = if it.source.kind == SourceKind::Secret {
            Var::Data(value)
        } else {
            Var::Template(value)
        };
        Some((it.name, var))
    };
    let given = vars::given(namespace, &opts.ansible_vars_from, objects);
    given.into_iter().filter_map(var).collect()
}

/// Returns the variables that the fields of one level set. The port is a string, as upstream writes
/// it.
fn fields(opts: &AnsibleOpts, management_network: Option<&String>) -> Vars {
    let port = opts.ansible_port.filter(|it| *it > 0).map(|it| it.to_string());
    let fields = [
        ("ansible_user", opts.ansible_user.as_ref()),
        ("ansible_port", port.as_ref()),
        ("management_network", management_network),
    ];
    data(fields.into_iter().filter_map(|(name, value)| Some((name, json!(value?)))))
}

fn own(opts: &AnsibleOpts) -> Vars {
    let vars = opts.ansible_vars.clone().into_iter();
    vars.map(|(name, value)| (name, Var::Template(value))).collect()
}

/// Returns the variables that describe a host's networks other than the control plane network.
fn networks(networks: &[Network], infra: &Infra) -> Vars {
    if networks.is_empty() {
        return Vars::new();
    }
    let known = infra.service_networks();
    let service_network = |it: &Network| {
        let name = it.name.to_lowercase();
        known.get(&name).cloned().unwrap_or(name)
    };
    let others: Vec<&Network> =
        networks.iter().filter(|it| service_network(it) != CTLPLANE).collect();
    let names: Vec<&str> = others.iter().map(|it| it.name.as_str()).collect();
    let map: BTreeMap<&str, String> =
        others.iter().map(|it| (it.name.as_str(), service_network(it))).collect();
    data([
        ("nodeset_networks", json!(names)),
        ("networks_lower", json!(map)),
        ("network_servicenet_map", json!(map)),
    ])
}

/// Returns the group variables that only the operator sets.
fn decided(
    set: &NodeSet,
    services: &BTreeMap<String, Arc<Service>>,
    has_certificates: bool,
) -> Vars {
    let type_of = |name: &String| {
        services.get(name).map_or_else(|| name.clone(), |it| service_type(&it.spec, name))
    };
    let types: Vec<String> = set.spec.services.iter().map(type_of).collect();
    let name = set.name_any();
    let mut vars = data([
        ("ansible_ssh_private_key_file", json!(ssh_key_file(&name))),
        ("edpm_nodeset_name", json!(name)),
        ("edpm_service_types", json!(types)),
        ("edpm_services", json!(set.spec.services)),
        ("edpm_tls_certs_enabled", json!(has_certificates)),
    ]);
    if !set.spec.tags.is_empty() {
        vars.extend(data([("nodeset_tags", json!(set.spec.tags))]));
    }
    vars
}

fn data<'a>(vars: impl IntoIterator<Item = (&'a str, Value)>) -> Vars {
    vars.into_iter().map(|(name, value)| (name.to_owned(), Var::Data(value))).collect()
}
