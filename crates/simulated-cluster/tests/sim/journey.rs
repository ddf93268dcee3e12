//! The smallest deployment: a role whose service greets each host, once per run.

use anyhow::Result;
use api::dataplane::{Role, Service};
use e2e::Namespace;
use e2e::journey::{ROLE, SERVICE, SSH_SECRET, node, role};
use serde_json::{Map, Value, json};
use simulated_cluster::Host;

/// Simulates a play that writes its variable `greeting` on the host.
const PLAYBOOK: &str = "- hosts: all\n  tasks: [{debug: {var: greeting}}]\n";

/// Creates a role with the service, deployed, for the given hosts.
pub(crate) async fn deploy(ns: &Namespace, hosts: &[&Host]) -> Result<()> {
    ns.create::<Service>(SERVICE, json!({ "playbookContents": PLAYBOOK })).await?;
    ns.create::<Role>(ROLE, role()).await?;
    for host in hosts {
        node(ns, &host.name, &host.address).await?;
    }
    Ok(())
}

/// Creates the Secret for a host, and the role, deployed, for this host.
pub(crate) async fn deploy_to(ns: &Namespace, host: &Host) -> Result<()> {
    ssh_secret(ns, host).await?;
    deploy(ns, &[host]).await
}

/// Returns the spec of a node set of these hosts, with these services.
pub(crate) fn node_set(hosts: &[&Host], services: &[&str]) -> Value {
    let entry = |it: &&Host| (it.name.clone(), json!({ "ansible": { "ansibleHost": it.address } }));
    let nodes: Map<String, Value> = hosts.iter().map(entry).collect();
    json!({
        "preProvisioned": true,
        "tlsEnabled": false,
        "services": services,
        "nodeTemplate": {
            "ansibleSSHPrivateKeySecret": SSH_SECRET,
            "ansible": { "ansibleUser": "cloud-admin" },
        },
        "nodes": nodes,
    })
}

/// Creates a Secret that gives access to all of the hosts, which must share one user key.
pub(crate) async fn ssh_secret(ns: &Namespace, host: &Host) -> Result<()> {
    let content = host.ssh_secret();
    let content: Vec<(&str, &str)> = content.iter().map(|(key, it)| (*key, it.as_str())).collect();
    ns.secret(SSH_SECRET, &content).await
}

/// Returns the greetings that runs have left on a host.
pub(crate) fn trace(host: &Host) -> Vec<String> {
    host.trace("greeting", "hello")
}
