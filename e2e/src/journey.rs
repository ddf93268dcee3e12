//! The smallest deployment with a visible effect: a role whose service writes a line on each host.

use std::time::Duration;

use anyhow::Result;
use api::dataplane::{Node, Role, Service};
use serde_json::{Value, json};

use crate::{Host, Namespace, holds};

/// The timeout for a run, from its cause until the status is written, on a busy machine.
pub const RUN: Duration = Duration::from_mins(10);
/// The Secret with the ssh key.
pub const SSH_SECRET: &str = "key";
/// The role.
pub const ROLE: &str = "compute";
/// The role's only service.
pub const SERVICE: &str = "trace";

/// The play writes one line per run, and fails when the file `forbidden` exists.
const PLAYBOOK: &str = r#"
- name: Leave a trace
  hosts: "{{ edpm_override_hosts | default('all') }}"
  any_errors_fatal: "{{ edpm_any_errors_fatal | default(true) }}"
  max_fail_percentage: "{{ edpm_max_fail_percentage | default(0) }}"
  gather_facts: false
  tasks:
    - name: Nothing forbids it
      ansible.builtin.command: test ! -e forbidden
      changed_when: false
    - name: Write a line
      ansible.builtin.shell: echo "{{ greeting | default('hello') }}" >> trace
"#;

/// Creates the service, its role with deployment enabled, and a node for each host.
pub async fn deploy(ns: &Namespace, hosts: &[&Host]) -> Result<()> {
    ns.create::<Service>(SERVICE, json!({ "playbookContents": PLAYBOOK })).await?;
    ns.create::<Role>(ROLE, role()).await?;
    for host in hosts {
        node(ns, &host.name, &host.address).await?;
    }
    Ok(())
}

/// Returns the role's spec.
pub fn role() -> Value {
    json!({
        "preProvisioned": true,
        "services": [SERVICE],
        "deployStrategy": { "deploy": true, "maxUnavailable": "100%" },
        "nodeTemplate": { "ansibleSSHPrivateKeySecret": SSH_SECRET, "ansibleUser": "cloud-admin" },
    })
}

/// Creates a node of the role.
pub async fn node(ns: &Namespace, name: &str, address: &str) -> Result<Node> {
    let spec = json!({ "role": ROLE, "hostName": name, "ansibleHost": address });
    ns.create::<Node>(name, spec).await
}

/// Creates the ssh Secret; all hosts must share one user key.
pub async fn ssh_secret(ns: &Namespace, host: &Host) -> Result<()> {
    let content = host.ssh_secret()?;
    let content: Vec<(&str, &str)> = content.iter().map(|(key, it)| (*key, it.as_str())).collect();
    ns.secret(SSH_SECRET, &content).await
}

/// Waits until the node is ready with the current inputs of itself and its role.
pub async fn ready(ns: &Namespace, node: &str) -> Result<Node> {
    ready_within(ns, node, RUN).await
}

/// The same with another timeout.
pub async fn ready_within(ns: &Namespace, node: &str, within: Duration) -> Result<Node> {
    let role = ns.api::<Node>().get(node).await?.spec.role.filter(|it| !it.is_empty());
    let role = match role {
        Some(role) => ns.api::<Role>().get(&role).await?.metadata.generation,
        None => None,
    };
    let is_ready = |it: &Node| {
        let status = it.status.as_ref();
        let observed_role = status.and_then(|it| it.observed_role.as_ref());
        holds(it.conditions(), "Ready")
            && holds(it.conditions(), "UpToDate")
            && status.and_then(|it| it.observed_generation) == it.metadata.generation
            && observed_role.map(|it| it.generation) >= role
    };
    ns.wait::<Node>(node, "ready and up to date", within, is_ready).await
}

/// Waits until the node's `Ready` has this reason and words, and an Event with the reason exists.
pub async fn node_reports(ns: &Namespace, node: &str, reason: &str, words: &[&str]) -> Result<()> {
    ns.reports::<Node>(node, "Ready", reason, words, RUN).await?;
    ns.event("OpenStackDataPlaneNode", node, reason).await
}

/// Returns the lines that runs have written on a host.
pub async fn trace(host: &Host) -> Result<Vec<String>> {
    let text = host.ssh("cat trace 2>/dev/null || true").await?;
    Ok(text.lines().map(str::to_owned).collect())
}
