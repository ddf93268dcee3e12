//! The effective spec of a node: its own values over its role's and its data plane's, per field.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use api::dataplane::{DataPlane, DeployStrategy, HostTls, Node, NodeSection, Role};
use api::shared::{AnyMap, SourceKind, VolMounts};
use k8s_openapi::api::core::v1::EnvVar;
use kube::ResourceExt;
use operator_core::node_set_host::CTLPLANE;
use operator_core::run_engine::connection_vars::{
    CLOUD_USER, HOST_VAR, PORT_VAR, SSH_PORT, plain_host, plain_port,
};
use operator_core::run_engine::run_template::AnsibleOptions;
use serde_json::Value;

use crate::host::machines::machine_names::machine_name;
use crate::host::vars::{self, Objects, Origin, Origins};

/// The effective values of a node.
///
/// A value that the node sets replaces the role's as a whole. Only variables are merged, key by
/// key, and the node's take precedence.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectiveSpec {
    /// The node's name, which is its inventory name.
    pub name: String,
    /// The variable `ansible_host`, else `spec.ansibleHost`, else the address that its machine
    /// gets, else `spec.hostName`; empty when none is set.
    pub ansible_host: String,
    /// The host's own name: `spec.hostName`, else the node's name.
    pub host_name: String,
    /// The ssh port; a variable `ansible_port` takes precedence.
    pub ansible_port: i32,
    /// The ssh user; when none is set, the user that its machine is created with.
    pub ansible_user: Option<String>,
    /// The Secret with the ssh key and the known host keys.
    pub ssh_secret: Option<String>,
    /// The body of the network config (nic) template.
    pub nic_template: Option<String>,
    /// The name of the management network.
    pub management_network: Option<String>,
    /// The networks as JSON, in the form of the API's schema.
    pub networks: Value,
    /// Variables of the role, overridden by the node's, without those whose values come from
    /// Secrets.
    pub vars: AnyMap,
    /// Variables of the role that a field of the node replaces. No host gets them, but they used to
    /// be inputs. They stay inputs, because the hosts would be deployed again otherwise.
    pub replaced_vars: AnyMap,
    /// The origin of each variable that comes from a ConfigMap or Secret.
    pub origins: Origins,
    /// The variables that the role gives all its hosts from Secrets, even those that a node
    /// overrides.
    pub group_secrets: Origins,
    /// Environment variables of the runs.
    pub env: Vec<EnvVar>,
    /// Mounts of the runs.
    pub extra_mounts: Vec<VolMounts>,
    /// Network attachments of the runs.
    pub network_attachments: Vec<String>,
    /// Whether runs may be created.
    pub deploy: bool,
    /// Tags, skipped tags and limit of the runs.
    pub options: AnsibleOptions,
    /// What its certificates carry; `None` unless its role has `tlsEnabled: true`.
    pub tls: Option<HostTls>,
}

impl EffectiveSpec {
    /// Computes the values of `node`, which may belong to `role` and `data_plane`, with variables
    /// from `objects`.
    pub fn of(
        data_plane: Option<&DataPlane>,
        role: Option<&Role>,
        node: &Node,
        objects: &Objects,
    ) -> Self {
        let own = node.spec.node.clone().unwrap_or_default();
        let template = role.and_then(|it| it.spec.node_template.clone()).unwrap_or_default();
        let networks = networks(&template, &own);
        let Merged { mut vars, replaced_vars, mut origins, group_secrets } =
            merged(&template, node, objects);
        let (host_var, port_var) = (take_host(&mut vars), take_port(&mut vars));
        origins
            .retain(|it, origin| origin.source.kind == SourceKind::Secret || vars.contains_key(it));
        let own_strategy = node.spec.deploy_strategy.clone().unwrap_or_default();
        let strategy = own_strategy.over(role_strategy(data_plane, role));
        let host = node.spec.ansible_host.clone();
        let host =
            host.or_else(|| machine_address(role, node)).or_else(|| node.spec.host_name.clone());
        let from_role = |list: fn(&Role) -> Vec<String>| role.map(list).unwrap_or_default();
        let ansible_host = host_var.or(host).unwrap_or_default();
        let host_name = node.spec.host_name.clone().unwrap_or_else(|| node.name_any());
        let tls = host_tls(role, &host_name, &ansible_host, &vars, &networks);
        vars.extend(tls_var(tls.as_ref(), &vars, &origins));
        Self {
            name: node.name_any(),
            ansible_host,
            host_name,
            ansible_port: port_var
                .or(own.ansible_port)
                .or(template.ansible_port)
                .unwrap_or(SSH_PORT),
            ansible_user: own
                .ansible_user
                .or(template.ansible_user)
                .or_else(|| machine_user(role, node)),
            ssh_secret: own
                .ansible_ssh_private_key_secret
                .or(template.ansible_ssh_private_key_secret),
            nic_template: own
                .network_config
                .and_then(|it| it.template)
                .or_else(|| template.network_config.and_then(|it| it.template)),
            management_network: own.management_network.or(template.management_network),
            networks,
            vars,
            replaced_vars,
            origins,
            group_secrets,
            env: node.effective_env(role),
            extra_mounts: node.effective_extra_mounts(role),
            network_attachments: first_set(
                node.spec.network_attachments.clone(),
                from_role(|it| it.spec.network_attachments.clone()),
            ),
            deploy: strategy.deploy.unwrap_or(false),
            options: options(strategy),
            tls,
        }
    }

    /// Returns those of the address variables that are not plain values or come from Secrets; see
    /// [`Self::ansible_host`].
    pub fn undecided_address(&self) -> Vec<&'static str> {
        let is_open = |it: &&str| self.vars.contains_key(*it) || self.origins.contains_key(*it);
        [HOST_VAR, PORT_VAR].into_iter().filter(is_open).collect()
    }

    /// Returns the variables whose values come from Secrets that the node names.
    pub fn host_secrets(&self) -> impl Iterator<Item = (&String, &Origin)> {
        self.origins.iter().filter(|(_, it)| it.source.kind == SourceKind::Secret && it.is_of_node)
    }

    /// Returns the names of the variables whose values come from Secrets.
    pub fn secret_names(&self) -> BTreeSet<String> {
        let secret = self.origins.iter().filter(|(_, it)| it.source.kind == SourceKind::Secret);
        secret.map(|(name, _)| name.clone()).collect()
    }

    /// Returns `host:port`, which identifies the machine so that no two hosts share it.
    ///
    /// Returns `None` when the host has no address.
    pub fn address(&self) -> Option<String> {
        let is_named = !self.ansible_host.is_empty();
        is_named.then(|| format!("{}:{}", self.ansible_host, self.ansible_port))
    }
}

/// Returns the template for a node's machine: its role's, or its own when it names no role.
///
/// Returns `None` when the host is provisioned by other means.
pub fn machine_template<'a>(role: Option<&'a Role>, node: &'a Node) -> Option<&'a AnyMap> {
    if node.spec.role.as_ref().is_none_or(String::is_empty) {
        return node.spec.baremetal_set_template.as_ref();
    }
    role_template(role?)
}

/// Returns the template for the machines of a role's nodes; `None` when they are provisioned by other
/// means.
pub fn role_template(role: &Role) -> Option<&AnyMap> {
    role.spec.baremetal_set_template.as_ref().filter(|_| !role.spec.pre_provisioned)
}

/// Returns the machine template, also for a host that keeps its machine after the role became
/// pre-provisioned: its address and user stay the same.
fn kept_template<'a>(role: Option<&'a Role>, node: &'a Node) -> Option<&'a AnyMap> {
    let has_machine = node.status.as_ref().is_some_and(|it| it.machine.is_some());
    let kept = || role.filter(|_| has_machine)?.spec.baremetal_set_template.as_ref();
    machine_template(role, node).or_else(kept)
}

/// Returns the address that a node's machine gets, without its prefix length.
fn machine_address(role: Option<&Role>, node: &Node) -> Option<String> {
    let template = kept_template(role, node)?;
    let own = node.spec.baremetal_host.as_ref().and_then(|it| it.ctl_plane_ip.as_deref());
    let name = machine_name(node);
    let listed = || template.get("baremetalHosts")?.get(&name)?.get("ctlPlaneIP")?.as_str();
    let address = own.or_else(listed)?.split('/').next()?;
    Some(address.to_owned()).filter(|it| !it.is_empty())
}

/// Returns the user that a node's machine is created with.
///
/// An adopted machine has no default user, because it was installed earlier.
fn machine_user(role: Option<&Role>, node: &Node) -> Option<String> {
    const FIELD: &str = "cloudUserName";
    let template = kept_template(role, node)?;
    let given = template.get(FIELD).and_then(Value::as_str);
    let made = || (!is_adopted(template, node)).then_some(CLOUD_USER);
    given.or_else(made).map(str::to_owned)
}

/// Returns whether a node's machine was adopted, or is to be adopted, instead of being installed.
fn is_adopted(template: &AnyMap, node: &Node) -> bool {
    let machine = node.status.as_ref().and_then(|it| it.machine.as_ref());
    if let Some(machine) = machine.filter(|it| it.installation.is_some()) {
        return machine.adopted;
    }
    let name = machine_name(node);
    let listed = || template.get("baremetalHosts")?.get(&name)?.get("adopt")?.as_bool();
    node.spec.baremetal_host.as_ref().is_some_and(|it| it.adopt) || listed().unwrap_or(false)
}

fn first_set<T>(own: Vec<T>, inherited: Vec<T>) -> Vec<T> {
    if own.is_empty() { inherited } else { own }
}

/// The merged variables of role and node.
struct Merged {
    vars: AnyMap,
    replaced_vars: AnyMap,
    origins: Origins,
    group_secrets: Origins,
}

/// Merges, from lowest to highest precedence: the role's list, the role's variables, the node's
/// list, the node's variables.
fn merged(template: &NodeSection, node: &Node, objects: &Objects) -> Merged {
    let empty = NodeSection::default();
    let own = node.spec.node.as_ref().unwrap_or(&empty);
    let namespace = node.namespace().unwrap_or_default();
    let mut of_role = vars::of_level(&namespace, template, false, objects);
    let is_secret = |it: &(&String, &Origin)| it.1.source.kind == SourceKind::Secret;
    let group_secrets = of_role.iter().filter(is_secret);
    let group_secrets = group_secrets.map(|(name, it)| (name.clone(), it.clone())).collect();
    let mut of_node = vars::of_level(&namespace, own, true, objects);
    let mut set = vars::set_by(own);
    if node.spec.ansible_host.is_some() || node.spec.host_name.is_some() {
        set.insert(HOST_VAR);
    }
    of_role.retain(|it, _| !set.contains(it.as_str()));
    of_node.retain(|it, _| !set.contains(it.as_str()));
    let (mut vars, mut origins) = (AnyMap::new(), Origins::new());
    put(&mut vars, &mut origins, of_role, objects);
    let (mut replaced_vars, of_role): (AnyMap, AnyMap) =
        template.ansible_vars.clone().into_iter().partition(|it| set.contains(it.0.as_str()));
    replaced_vars.retain(|it, _| {
        // The address is an input of its own.
        ![HOST_VAR, PORT_VAR].contains(&it.as_str()) && !own.ansible_vars.contains_key(it)
    });
    vars.extend(of_role);
    put(&mut vars, &mut origins, of_node, objects);
    origins.retain(|it, _| !own.ansible_vars.contains_key(it));
    vars.extend(own.ansible_vars.clone());
    Merged { vars, replaced_vars, origins, group_secrets }
}

fn put(vars: &mut AnyMap, origins: &mut Origins, given: Origins, objects: &Objects) {
    for (name, origin) in given {
        vars.remove(&name);
        if origin.source.kind != SourceKind::Secret {
            vars.extend(origin.value(objects).map(|it| (name.clone(), it)));
        }
        origins.insert(name, origin);
    }
}

/// Removes the address from the variables and returns it, if it is a plain value.
///
/// Ansible connects to it, so it is also the address that keeps two runs on one host apart.
fn take_host(vars: &mut AnyMap) -> Option<String> {
    let host = plain_host(vars.get(HOST_VAR)?)?.to_owned();
    vars.remove(HOST_VAR);
    Some(host)
}

fn take_port(vars: &mut AnyMap) -> Option<i32> {
    let port = plain_port(vars.get(PORT_VAR)?)?;
    vars.remove(PORT_VAR);
    Some(port)
}

/// Returns what the certificates of a host carry: its name, and its addresses as plays see them.
///
/// Returns `None` unless its role has `tlsEnabled: true`.
fn host_tls(
    role: Option<&Role>,
    host_name: &str,
    ansible_host: &str,
    vars: &AnyMap,
    networks: &Value,
) -> Option<HostTls> {
    role.filter(|it| it.spec.tls_enabled == Some(true))?;
    let fixed = networks.as_array().into_iter().flatten().filter_map(|it| {
        Some((it.get("name")?.as_str()?.to_lowercase(), it.get("fixedIP")?.as_str()?.to_owned()))
    });
    let mut addresses: BTreeMap<String, String> = fixed.collect();
    let own = vars.get(CTLPLANE_IP).and_then(Value::as_str).unwrap_or(ansible_host);
    if own.parse::<IpAddr>().is_ok() {
        addresses.insert(CTLPLANE.to_owned(), own.to_owned());
    }
    Some(HostTls { names: [(CTLPLANE.to_owned(), host_name.to_owned())].into(), addresses })
}

/// Returns the variable by which plays know that a host has certificates; a user's own value wins.
fn tls_var(tls: Option<&HostTls>, vars: &AnyMap, origins: &Origins) -> Option<(String, Value)> {
    let is_given = vars.contains_key(TLS_VAR) || origins.contains_key(TLS_VAR);
    tls.filter(|_| !is_given).map(|_| (TLS_VAR.to_owned(), true.into()))
}

fn networks(template: &NodeSection, own: &NodeSection) -> Value {
    let networks = if own.networks.is_empty() { &template.networks } else { &own.networks };
    serde_json::to_value(networks).unwrap_or_default()
}

fn options(strategy: DeployStrategy) -> AnsibleOptions {
    AnsibleOptions {
        tags: strategy.ansible_tags,
        skip_tags: strategy.ansible_skip_tags,
        limit: strategy.ansible_limit,
    }
}

/// Returns the deploy strategy of a role: its own fields, else those of its data plane.
///
/// It is computed here and never written: the fields of the role stay its author's.
pub fn role_strategy(data_plane: Option<&DataPlane>, role: Option<&Role>) -> DeployStrategy {
    let own = role.and_then(|it| it.spec.deploy_strategy.clone()).unwrap_or_default();
    let inherited = data_plane.and_then(|it| it.spec.deploy_strategy.clone()).unwrap_or_default();
    own.over(inherited)
}

/// The variable by which plays know that a host has certificates.
const TLS_VAR: &str = "edpm_tls_certs_enabled";
/// The variable with a host's address on the control plane network.
const CTLPLANE_IP: &str = "ctlplane_ip";
/// The variable with the name under which a host's services register, and which its certificates
/// carry.
pub const HOST_NAME_VAR: &str = "canonical_hostname";

/// Variables by which a user overrides ssh's options, or the connection as a whole.
pub const OWN_OPTIONS: [&str; 2] = ["ansible_connection", "ansible_ssh_common_args"];

/// Returns whether variables override ssh's options, or the connection as a whole.
pub fn has_own_options(vars: &AnyMap) -> bool {
    OWN_OPTIONS.iter().any(|it| vars.contains_key(*it))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use testkit::objects::new;

    use super::*;

    fn effective(role: &Value, node: &Value) -> EffectiveSpec {
        let role: Role = new("ns", "x", role);
        let node: Node = new("ns", "x", node);
        EffectiveSpec::of(None, Some(&role), &node, &Objects::new())
    }

    /// `deployStrategy` of a data plane, a role and a node; `Null` when it is not set.
    fn strategy(levels: [&Value; 3]) -> EffectiveSpec {
        let spec = |it: &Value| {
            if it.is_null() { json!({}) } else { json!({ "deployStrategy": it }) }
        };
        let [data_plane, role, node] = levels.map(spec);
        let data_plane: DataPlane = new("ns", "x", &data_plane);
        let role: Role = new("ns", "x", &role);
        let node: Node = new("ns", "x", &node);
        EffectiveSpec::of(Some(&data_plane), Some(&role), &node, &Objects::new())
    }

    #[test]
    fn a_value_of_the_node_replaces_the_roles_as_a_whole() {
        let found = effective(
            &json!({ "nodeTemplate": { "ansiblePort": 2022, "ansibleUser": "a" },
                    "env": [{ "name": "A" }, { "name": "B" }] }),
            &json!({ "node": { "ansibleUser": "b" }, "env": [{ "name": "C" }] }),
        );
        assert_eq!((found.ansible_port, found.ansible_user.as_deref()), (2022, Some("b")));
        assert_eq!(found.env.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["C"]);
    }

    #[test]
    fn a_field_of_the_node_wins_over_a_variable_of_the_role() {
        let vars = json!({ "ansible_user": "a", "ansible_host": "192.0.2.1", "b": 1 });
        let role = json!({ "nodeTemplate": { "ansibleVars": vars } });
        let node = json!({ "ansibleHost": "192.0.2.7", "node": { "ansibleUser": "c" } });
        let found = effective(&role, &node);
        assert_eq!(found.ansible_host, "192.0.2.7");
        assert_eq!(json!(found.vars), json!({ "b": 1 }));
        // Where the node sets nothing, the role's values apply.
        assert_eq!(
            json!(effective(&role, &json!({})).vars),
            json!({ "ansible_user": "a", "b": 1 })
        );
    }

    #[test]
    fn variables_merge_key_by_key_and_not_deeper() {
        let found = effective(
            &json!({ "nodeTemplate": { "ansibleVars": { "a": 1, "m": { "x": 1 } } } }),
            &json!({ "node": { "ansibleVars": { "m": { "y": 2 } } } }),
        );
        assert_eq!(json!(found.vars), json!({ "a": 1, "m": { "y": 2 } }));
    }

    #[test]
    fn deploy_is_the_nodes_else_the_roles_else_the_data_planes_else_false() {
        let (on, off) = (json!({ "deploy": true }), json!({ "deploy": false }));
        let (open, none) = (json!({}), Value::Null);
        let cases = [
            ([&none, &none, &none], false),
            ([&open, &open, &open], false),
            ([&on, &none, &none], true),
            ([&on, &open, &none], true),
            ([&on, &off, &none], false),
            ([&on, &off, &on], true),
            ([&on, &on, &off], false),
            ([&off, &on, &none], true),
            ([&off, &none, &on], true),
            ([&none, &on, &open], true),
            ([&none, &off, &on], true),
        ];
        for (levels, expected) in cases {
            assert_eq!(strategy(levels).deploy, expected, "{levels:?}");
        }
    }

    #[test]
    fn what_narrows_the_runs_is_inherited_field_by_field() {
        let found = strategy([
            &json!({ "ansibleTags": "p", "ansibleSkipTags": "p", "ansibleLimit": "p" }),
            &json!({ "ansibleTags": "r", "ansibleSkipTags": "" }),
            &json!({ "ansibleTags": "n" }),
        ]);
        let text = |it: &str| Some(it.to_owned());
        let expected = AnsibleOptions { tags: text("n"), skip_tags: text("p"), limit: text("p") };
        assert_eq!(found.options, expected);
    }

    #[test]
    fn the_size_of_shards_is_the_roles_else_the_data_planes() {
        let strategy = json!({ "deployStrategy": { "batchSize": 7 } });
        let data_plane: DataPlane = new("ns", "x", &strategy);
        let of = |spec: &Value| {
            let role: Role = new("ns", "x", spec);
            role_strategy(Some(&data_plane), Some(&role)).batch_size()
        };
        assert_eq!(of(&json!({})), 7);
        assert_eq!(of(&json!({ "deployStrategy": { "batchSize": 3 } })), 3);
        assert_eq!(role_strategy(None, None).batch_size(), 50);
    }

    #[test]
    fn the_host_name_stands_in_for_a_missing_address() {
        let found = effective(&json!({}), &json!({ "hostName": "n0.example.org" }));
        assert_eq!(found.address().as_deref(), Some("n0.example.org:22"));
        assert_eq!(effective(&json!({}), &json!({})).ansible_host, "");
    }

    #[test]
    fn the_variables_that_ansible_connects_by_are_the_address() {
        let vars = json!({ "ansible_host": "192.0.2.9", "ansible_port": "2022", "a": 1 });
        let node = json!({ "ansibleHost": "192.0.2.1", "node": { "ansibleVars": vars } });
        let found = effective(&json!({}), &node);
        assert_eq!(found.address().as_deref(), Some("192.0.2.9:2022"));
        assert_eq!(json!(found.vars), json!({ "a": 1 }));
    }

    #[test]
    fn an_address_that_is_a_template_is_told_and_not_taken() {
        for vars in [json!({ "ansible_host": "{{ x }}" }), json!({ "ansible_port": 70_000 })] {
            let node = json!({ "ansibleHost": "192.0.2.1", "node": { "ansibleVars": vars } });
            let found = effective(&json!({}), &node);
            assert_eq!(found.address().as_deref(), Some("192.0.2.1:22"));
            assert_eq!(found.undecided_address().len(), 1);
        }
    }
}
