//! Variables from Secrets: a run gets them as files of a Secret, beside the inventory.
//!
//! A role's variables are stored once; any variable in the inventory takes precedence over them.
//! A node's variables are in a file of its host, which takes precedence over the inventory.

use std::collections::BTreeMap;

use api::yaml::Tree;
use k8s_openapi::api::core::v1::VolumeMount;
use serde_json::Value;

use crate::run_engine::host_owner;

/// Key of the variables of all hosts; no host can have this name.
pub const GROUP_KEY: &str = "group_vars";

/// Path of the file with the variables of all hosts.
const GROUP_FILE: &str = "/runner/inventory/group_vars/all";
/// Directory with the variables of each host: one file per host, named after it.
const HOSTS_DIR: &str = "/runner/inventory/host_vars";

/// Returns the files of the Secret: `group` applies to all hosts, and each host has its own file.
///
/// # Guarantees
/// Every host has a file, even an empty one. Ansible takes the first of `h`, `h.yml`, `h.yaml` and
/// `h.json`, so a host without a file would read that of a host named `h.yml`.
/// Values are never templates, and the variables of the host's owner are never among them.
pub fn files(
    group: BTreeMap<String, Value>,
    hosts: BTreeMap<String, BTreeMap<String, Value>>,
) -> BTreeMap<String, String> {
    let text = |vars: BTreeMap<String, Value>| {
        let vars = vars.into_iter().filter(|(name, _)| !host_owner::is_variable(name));
        Tree::map(vars.map(|(name, value)| (name, Tree::data(value)))).render()
    };
    let mut files: BTreeMap<String, String> =
        hosts.into_iter().map(|(host, vars)| (host, text(vars))).collect();
    files.insert(GROUP_KEY.to_owned(), text(group));
    files
}

/// Returns the mounts that show the Secret in `volume` as variable files.
pub(super) fn mounts(volume: &str) -> [VolumeMount; 2] {
    let mount = |path: &str, key: Option<&str>| VolumeMount {
        name: volume.into(),
        mount_path: path.into(),
        sub_path: key.map(str::to_owned),
        read_only: Some(true),
        ..Default::default()
    };
    [mount(GROUP_FILE, Some(GROUP_KEY)), mount(HOSTS_DIR, None)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn vars(pairs: &[(&str, Value)]) -> BTreeMap<String, Value> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    #[test]
    fn values_are_data_to_the_last_string() {
        let group = vars(&[("token", json!("{{ lookup('pipe', 'id') }}"))]);
        let host = vars(&[("logins", json!({ "registry": { "user": "{{ x }}" } }))]);
        let files = files(group, BTreeMap::from([("n0".to_owned(), host)]));
        assert_eq!(files[GROUP_KEY], "token: !unsafe \"{{ lookup('pipe', 'id') }}\"\n");
        assert_eq!(files["n0"], "logins:\n  registry:\n    user: !unsafe \"{{ x }}\"\n");
    }

    #[test]
    fn the_owner_of_a_host_is_no_variable_of_a_secret() {
        let host = vars(&[("edpm_owner", json!("a/b/c")), ("edpm_owner_accepted", json!(["u"]))]);
        let files = files(BTreeMap::new(), BTreeMap::from([("n0".to_owned(), host)]));
        assert_eq!(files["n0"], "{}\n");
    }

    #[test]
    fn a_host_without_variables_has_a_file_of_its_own() {
        let hosts = ["n0", "n0.yaml"].map(|it| (it.to_owned(), BTreeMap::new()));
        let files = files(BTreeMap::new(), BTreeMap::from(hosts));
        let texts: Vec<(&str, &str)> =
            files.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(texts, [(GROUP_KEY, "{}\n"), ("n0", "{}\n"), ("n0.yaml", "{}\n")]);
    }
}
