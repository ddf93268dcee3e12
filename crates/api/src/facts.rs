//! Facts of hosts that a service may have as variables.
//!
//! ansibleee-operator gathers them in a play of its own; see `plays/facts.yaml` there.

/// The facts that may be requested.
///
/// Only Ansible's setup module provides these names, and none says how a host is reached.
pub const NAMES: [&str; 30] = [
    "ansible_all_ipv4_addresses",
    "ansible_all_ipv6_addresses",
    "ansible_architecture",
    "ansible_date_time",
    "ansible_default_ipv4",
    "ansible_default_ipv6",
    "ansible_devices",
    "ansible_distribution",
    "ansible_distribution_major_version",
    "ansible_distribution_release",
    "ansible_distribution_version",
    "ansible_dns",
    "ansible_domain",
    "ansible_fqdn",
    "ansible_hostname",
    "ansible_interfaces",
    "ansible_kernel",
    "ansible_machine",
    "ansible_mounts",
    "ansible_nodename",
    "ansible_os_family",
    "ansible_pkg_mgr",
    "ansible_product_name",
    "ansible_selinux",
    "ansible_service_mgr",
    "ansible_system",
    "ansible_system_vendor",
    "ansible_user_id",
    "ansible_virtualization_role",
    "ansible_virtualization_type",
];

/// The file name of the play that turns them into variables, in the operator's directory of plays.
pub const PLAY: &str = "facts.yaml";

/// Returns why a name cannot be requested, with a valid alternative; `None` when it can.
pub fn fault(name: &str) -> Option<String> {
    (!NAMES.contains(&name)).then(|| {
        format!(
            "{name:?} is not a fact that can be a variable: remove it, and read it as \
             ansible_facts[…] in the playbook; facts that can be variables: {}",
            NAMES.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_says_how_a_host_is_reached_can_be_asked_for() {
        assert!(NAMES.is_sorted());
        for name in ["ansible_host", "ansible_user", "ansible_become_exe", "ansible_connection"] {
            assert!(fault(name).unwrap().contains("ansible_facts["), "{name}");
        }
        for name in ["", "interfaces", "ansible_local", "ansible_python_interpreter", "path"] {
            assert!(fault(name).is_some(), "{name}");
        }
        assert_eq!(fault("ansible_interfaces"), None);
    }
}
