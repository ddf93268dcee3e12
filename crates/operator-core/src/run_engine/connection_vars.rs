//! Variables and defaults by which Ansible reaches a host.

use serde_json::Value;

/// The variable with the address that Ansible connects to.
pub const HOST_VAR: &str = "ansible_host";
/// The variable with the port that Ansible connects to.
pub const PORT_VAR: &str = "ansible_port";

/// The user that machines are given where nobody names one, as upstream has it.
pub const CLOUD_USER: &str = "cloud-admin";

/// The ssh port where neither node nor role names one.
pub const SSH_PORT: i32 = 22;

/// The address that a variable gives, where it is data and no template.
pub fn plain_host(value: &Value) -> Option<&str> {
    value.as_str().filter(|it| !it.is_empty() && !it.contains("{{"))
}

/// The port that a variable gives, as a number or as its text.
pub fn plain_port(value: &Value) -> Option<i32> {
    let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
    i32::try_from(number?).ok().filter(|it| (1..=65_535).contains(it))
}
