//! Variables and defaults for Ansible's connection to a host.

use serde_json::Value;

/// The variable with the address that Ansible connects to.
pub const HOST_VAR: &str = "ansible_host";
/// The variable with the port that Ansible connects to.
pub const PORT_VAR: &str = "ansible_port";

/// Default user of provisioned machines, the same as upstream's.
pub const CLOUD_USER: &str = "cloud-admin";

/// Default ssh port, if neither node nor role sets one.
pub const SSH_PORT: i32 = 22;

/// Returns the address in a variable; `None` when it is empty, not a string or a template.
pub fn plain_host(value: &Value) -> Option<&str> {
    value.as_str().filter(|it| !it.is_empty() && !it.contains("{{"))
}

/// Returns the port in a variable, a number or its text; `None` when it is not in 1..=65535.
pub fn plain_port(value: &Value) -> Option<i32> {
    let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
    i32::try_from(number?).ok().filter(|it| (1..=65_535).contains(it))
}
