//! The inventory of a parent's hosts, and the small one that selects the hosts of a single run.

use std::collections::{BTreeMap, BTreeSet};

use api::yaml::Tree;
use serde_json::Value;

use crate::run_engine::host_owner::{self, HostOwner};

/// The group of exactly the hosts of a run, in the run's own inventory.
pub const RUN_GROUP: &str = "edpm_run";

/// Key of the inventory in the inventory object.
pub const INVENTORY_KEY: &str = "inventory";
/// Key of the effective nic template in the inventory object; one more per host with its own.
pub const NETWORK_KEY: &str = "network";
/// Key of the learned host keys in the inventory object; absent when all its hosts are known
/// otherwise.
pub const KNOWN_HOSTS_KEY: &str = "known_hosts";
/// Directory of the inventory object's keys as files, for nic templates and learned host keys.
pub const NETWORK_DIR: &str = "/runner/network";
/// Directory of private keys, one file per Secret.
pub const SSH_KEY_DIR: &str = "/runner/env/ssh_key";
/// Directory of known host keys, one file per Secret.
pub const KNOWN_HOSTS_DIR: &str = "/runner/env/known_hosts";
/// Directory of the host keys that the run itself scanned.
pub const HOST_KEYS_DIR: &str = "/runner/host_keys";

/// The variable with the options of ssh, sftp and scp.
pub const SSH_ARGS_VAR: &str = "ansible_ssh_common_args";
/// The variable with ssh's options for a connection of the user's own, as to a bastion: our key, and
/// the same known hosts.
const BESIDE_VAR: &str = "edpm_ssh_args";

/// Default of `ansible_user`: the user that Ansible itself would choose.
///
/// Plays that read `ansible_user` then get a name.
const SAME_USER: &str = "{{ lookup('ansible.builtin.env', 'ANSIBLE_REMOTE_USER') or \
                         lookup('ansible.builtin.pipe', 'id -un') }}";

/// One host of an inventory, and how to reach it.
#[derive(Clone, Debug, PartialEq)]
pub struct HostEntry {
    /// Its inventory name.
    pub name: String,
    /// The address that ssh connects to.
    pub ansible_host: String,
    /// The port that ssh connects to.
    pub ansible_port: i32,
    /// The user that ssh logs in as; `None` means Ansible's default, the pod's user.
    pub ansible_user: Option<String>,
    /// The host's own name.
    pub host_name: String,
    /// The Secret with its ssh key and known host keys.
    pub ssh_secret: String,
    /// Whether its own key is learned, because the Secret's known hosts do not cover it.
    pub is_learned: bool,
    /// Path of its nic template in the pod, if it has one.
    pub nic_template: Option<String>,
    /// The variable `management_network`, if set.
    pub management_network: Option<String>,
    /// The user's variables; they take precedence over derived ones.
    pub vars: BTreeMap<String, Value>,
    /// The object whose runs may change the host.
    pub owner: HostOwner,
    /// Names of variables that come from Secrets and must not appear here; see
    /// [`super::secret_vars`].
    pub elsewhere: BTreeSet<String>,
}

impl HostEntry {
    /// Returns the host's lines in an inventory.
    pub fn lines(&self) -> String {
        Tree::map([(self.name.clone(), host_vars(self))]).written_at(HOSTS_INDENT)
    }
}

/// How far in the hosts of a group stand.
const HOSTS_INDENT: usize = 4;

/// Renders an inventory with one group of hosts, given the lines of each, sorted by name.
pub fn inventory<'a>(group: &str, lines: impl IntoIterator<Item = &'a str>) -> String {
    let lines: String = lines.into_iter().collect();
    let hosts = if lines.is_empty() { Tree::Map(BTreeMap::new()) } else { Tree::Written(lines) };
    Tree::map([(group, Tree::map([("hosts", hosts)]))]).render()
}

/// Renders the inventory that a run adds to its parent's: the group of only its hosts.
pub fn run_inventory<'a>(hosts: impl IntoIterator<Item = &'a String>) -> String {
    let hosts = Tree::map(hosts.into_iter().map(|it| (it.clone(), Tree::Map(BTreeMap::new()))));
    Tree::map([(RUN_GROUP, Tree::map([("hosts", hosts)]))]).render()
}

/// Returns a host's variables. Derived values are data; the user's values stay templates (D13).
fn host_vars(host: &HostEntry) -> Tree {
    let text = |it: &str| Tree::data(it.to_owned());
    let key = format!("{SSH_KEY_DIR}/{}", host.ssh_secret);
    let ssh = ssh_vars(&key, &known_hosts_files(host));
    let mut vars: BTreeMap<String, Tree> = BTreeMap::from([
        ("ansible_host".into(), text(&host.ansible_host)),
        ("ansible_port".into(), Tree::data(host.ansible_port)),
        ("ansible_ssh_private_key_file".into(), text(&key)),
        ("canonical_hostname".into(), text(&host.host_name)),
        ("ctlplane_ip".into(), text(&host.ansible_host)),
    ]);
    vars.extend(ssh.iter().map(|(name, it)| ((*name).into(), text(it))));
    let user = host.ansible_user.as_deref();
    let user = user.map_or_else(|| Tree::template(Value::from(SAME_USER)), text);
    vars.insert("ansible_user".into(), user);
    let optional = [
        ("edpm_network_config_template", &host.nic_template),
        ("management_network", &host.management_network),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            vars.insert(name.into(), text(value));
        }
    }
    for (name, value) in &host.vars {
        let value = if name == SSH_ARGS_VAR { with_ours(value, &ssh[0].1) } else { value.clone() };
        vars.insert(name.clone(), Tree::template(value));
    }
    vars.retain(|name, _| !host.elsewhere.contains(name) && !host_owner::is_variable(name));
    vars.extend(host.owner.vars().into_iter().map(|(name, it)| (name.into(), Tree::data(it))));
    Tree::Map(vars)
}

/// Returns the variables with ssh's options: those of connections to hosts, and those for another
/// connection that a user's `ProxyCommand` makes.
pub fn ssh_vars(key: &str, known_hosts: &[String]) -> [(&'static str, String); 2] {
    let args = ssh_args(known_hosts);
    let beside = format!("-i {key} -o BatchMode=yes {args}");
    [(SSH_ARGS_VAR, args), (BESIDE_VAR, beside)]
}

/// Returns a user's options of ssh, followed by ours: ssh takes the first of an option, so ours hold
/// where the user's say nothing.
pub fn with_ours(own: &Value, ours: &str) -> Value {
    own.as_str().map_or_else(|| own.clone(), |own| format!("{own} {ours}").into())
}

/// Returns ssh's options that accept a host only if its key is in one of these files.
///
/// Otherwise ssh would ask whether to trust an unknown host, and wait: ansible-runner gives it a
/// terminal that no user answers.
fn ssh_args(known_hosts: &[String]) -> String {
    format!(
        "-o {} -o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes",
        quoted(&format!("UserKnownHostsFile={}", known_hosts.join(" ")))
    )
}

/// Returns the known-hosts files of a host. The Secret's comes first, so that its revocations
/// apply.
fn known_hosts_files(host: &HostEntry) -> Vec<String> {
    let mut files = vec![format!("{KNOWN_HOSTS_DIR}/{}", host.ssh_secret)];
    if host.is_learned {
        files.extend([NETWORK_DIR, HOST_KEYS_DIR].map(|it| format!("{it}/{KNOWN_HOSTS_KEY}")));
    }
    files
}

/// Quotes an option. Ansible splits its ssh options as a shell does.
fn quoted(option: &str) -> String {
    if option.contains(' ') { format!("'{option}'") } else { option.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> HostEntry {
        HostEntry {
            name: "n0".into(),
            ansible_host: "192.0.2.7".into(),
            ansible_port: 22,
            ansible_user: Some("cloud-admin".into()),
            host_name: "n0.example.org".into(),
            ssh_secret: "key".into(),
            is_learned: false,
            nic_template: None,
            management_network: None,
            vars: BTreeMap::from([("greeting".into(), Value::from("{{ name }}"))]),
            owner: HostOwner {
                object: "openstack/OpenStackDataPlaneNode/n0".into(),
                uid: "u-0".into(),
                accepted: Vec::new(),
            },
            elsewhere: BTreeSet::new(),
        }
    }

    fn of_one(host: &HostEntry) -> String {
        inventory("compute", [host.lines().as_str()])
    }

    #[test]
    fn what_is_derived_is_unsafe_and_what_the_human_wrote_stays_a_template() {
        let text = of_one(&host());
        assert!(text.contains(r#"canonical_hostname: !unsafe "n0.example.org""#), "{text}");
        assert!(text.contains(r#"greeting: "{{ name }}""#), "{text}");
    }

    #[test]
    fn a_learned_key_is_looked_for_where_the_object_and_the_run_itself_put_it() {
        let given = of_one(&host());
        let option = "-o UserKnownHostsFile=/runner/env/known_hosts/key -o Global";
        assert!(given.contains(option), "{given}");
        let learned = of_one(&HostEntry { is_learned: true, ..host() });
        let option = "-o 'UserKnownHostsFile=/runner/env/known_hosts/key \
                      /runner/network/known_hosts /runner/host_keys/known_hosts' -o Global";
        assert!(learned.contains(option), "{learned}");
    }

    #[test]
    fn the_owner_of_a_host_is_no_variable_of_a_users() {
        let mut host = host();
        host.vars.insert("edpm_owner".into(), Value::from("openstack/OpenStackDataPlaneNode/n1"));
        host.vars.insert("edpm_owner_accepted".into(), serde_json::json!(["u-1"]));
        host.elsewhere.insert("edpm_owner_uid".into());
        let text = of_one(&host);
        assert!(
            text.contains(r#"edpm_owner: !unsafe "openstack/OpenStackDataPlaneNode/n0""#),
            "{text}"
        );
        assert!(text.contains(r#"edpm_owner_uid: !unsafe "u-0""#), "{text}");
        assert!(!text.contains("edpm_owner_accepted") && !text.contains("/n1"), "{text}");
    }

    #[test]
    fn what_is_derived_gives_way_to_a_secret() {
        let mut host = host();
        host.elsewhere.insert("ctlplane_ip".into());
        let text = of_one(&host);
        assert!(!text.contains("ctlplane_ip"), "{text}");
    }

    #[test]
    fn an_inventory_names_the_user_even_where_nobody_does() {
        let text = of_one(&host());
        assert!(text.contains(r#"ansible_user: !unsafe "cloud-admin""#), "{text}");
        let no_user = HostEntry { ansible_user: None, ..host() };
        let text = of_one(&no_user);
        let expected = "ansible_user: \"{{ lookup('ansible.builtin.env', 'ANSIBLE_REMOTE_USER') or \
                        lookup('ansible.builtin.pipe', 'id -un') }}\"";
        assert!(text.contains(expected), "{text}");
        let secret = HostEntry { elsewhere: BTreeSet::from(["ansible_user".into()]), ..no_user };
        assert!(!of_one(&secret).contains("ansible_user"));
    }

    #[test]
    fn options_of_ssh_that_a_human_gives_are_followed_by_ours() {
        let proxy = r#"-o ProxyCommand="ssh {{ edpm_ssh_args }} -W [%h]:%p jump@bastion""#;
        let mut host = host();
        host.vars.insert(SSH_ARGS_VAR.into(), Value::from(proxy));
        let text = of_one(&host);
        let ours = "-o UserKnownHostsFile=/runner/env/known_hosts/key -o \
                    GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes";
        let parsed: Value = api::yaml::from_str(&text).unwrap();
        let vars = &parsed["compute"]["hosts"]["n0"];
        assert_eq!(vars[SSH_ARGS_VAR], format!("{proxy} {ours}"));
        let beside = format!("-i /runner/env/ssh_key/key -o BatchMode=yes {ours}");
        assert_eq!(vars[BESIDE_VAR], beside);
        assert!(text.contains("edpm_ssh_args: !unsafe"), "{text}");
        // Ansible itself says what is wrong with anything but a text.
        host.vars.insert(SSH_ARGS_VAR.into(), serde_json::json!(["-v"]));
        assert!(of_one(&host).contains("\"-v\""));
    }

    #[test]
    fn the_humans_variables_win() {
        let mut host = host();
        host.vars.insert("ctlplane_ip".into(), Value::from("198.51.100.1"));
        let text = of_one(&host);
        assert!(text.contains(r#"ctlplane_ip: "198.51.100.1""#), "{text}");
    }
}
