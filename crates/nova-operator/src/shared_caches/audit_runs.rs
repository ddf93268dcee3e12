//! The runs that audit hosts: how they are recognized, and which hosts they use.

use api::ansibleee::{AnsibleEe, JobStatus};
use kube::ResourceExt;
use operator_core::host_address::endpoint;
use operator_core::object_key::Key;

/// Label of the runs that audit hosts; its value is [`OF_INTERVAL`] or [`AFTER_DEPLOYMENT`].
pub const LABEL: &str = "nova.openstack.org/audit";
/// The audit of an interval.
pub const OF_INTERVAL: &str = "interval";
/// The audit that follows the deployment of hosts that the one before found out of sync.
pub const AFTER_DEPLOYMENT: &str = "after-deployment";

/// Returns whether a run audits hosts.
pub fn is_audit(run: &AnsibleEe) -> bool {
    run.labels().contains_key(LABEL)
}

/// Returns whether an audit follows a deployment that mended what the one before had found.
pub fn is_after_deployment(run: &AnsibleEe) -> bool {
    run.labels().get(LABEL).is_some_and(|it| it == AFTER_DEPLOYMENT)
}

/// Returns whether a run has not ended.
pub fn is_open(run: &AnsibleEe) -> bool {
    let status = run.status.as_ref().and_then(|it| it.job_status);
    !status.is_some_and(JobStatus::is_final)
}

/// Returns the key of an address in the index of open runs, for all namespaces.
pub fn address_key(address: &str) -> Key {
    Key::new("", endpoint(address))
}

/// Returns the keys of the addresses of a run that has not ended; none of one that has.
pub fn open_addresses(run: &AnsibleEe) -> Vec<Key> {
    let hosts = run.spec.hosts.iter().filter(|_| is_open(run));
    hosts.map(|it| address_key(&it.address)).collect()
}

/// Returns the key of all audits that have not ended.
pub fn open_key() -> Key {
    Key::new("", LABEL)
}

/// Returns [`open_key`] for an audit that has not ended.
pub fn open_audits(run: &AnsibleEe) -> Vec<Key> {
    (is_audit(run) && is_open(run)).then(open_key).into_iter().collect()
}

/// Returns the nodes of the hosts of an audit; none of another run.
pub fn audited_nodes(run: &AnsibleEe) -> Vec<Key> {
    let namespace = run.namespace().unwrap_or_default();
    let hosts = run.spec.hosts.iter().filter(|_| is_audit(run));
    hosts.map(|it| Key::new(&namespace, &it.name)).collect()
}

#[cfg(test)]
mod tests {
    use operator_runtime::cache::WriteThrough as _;
    use serde_json::json;

    use super::*;
    use crate::shared_caches::SharedCaches;
    use crate::shared_caches::indexes::{BY_AUDITED_NODE, BY_OPEN_ADDRESS, BY_OPEN_AUDIT};

    #[test]
    fn a_run_is_found_by_its_addresses_until_it_ends_and_an_audit_by_its_nodes_afterwards_too() {
        let caches = SharedCaches::default();
        let absorb = |name: &str, version: u32, labels, status: &str| {
            caches.runs.absorb(&json!({
                "apiVersion": "ansibleee.openstack.org/v1beta1",
                "kind": "OpenStackAnsibleEE",
                "metadata": {
                    "name": name, "namespace": "ns", "uid": name, "labels": labels,
                    "resourceVersion": version.to_string(),
                },
                "spec": { "hosts": [{ "name": "n0", "address": "Host.Example:22" }] },
                "status": { "JobStatus": status },
            }));
        };
        let found = |index, key: &Key| {
            let runs = caches.runs.indexed(index, key);
            runs.iter().map(|it| it.name_any()).collect::<Vec<_>>()
        };
        let (address, node) = (address_key("host.example"), Key::new("ns", "n0"));
        absorb("audit", 1, json!({ LABEL: "true" }), "Running");
        absorb("other", 2, json!({}), "Pending");
        assert_eq!(found(BY_OPEN_ADDRESS, &address), ["audit", "other"]);
        assert_eq!(found(BY_OPEN_AUDIT, &open_key()), ["audit"]);
        assert_eq!(found(BY_AUDITED_NODE, &node), ["audit"]);
        absorb("audit", 3, json!({ LABEL: "true" }), "Failed");
        absorb("other", 4, json!({}), "Succeeded");
        assert_eq!(found(BY_OPEN_ADDRESS, &address), [""; 0]);
        assert_eq!(found(BY_OPEN_AUDIT, &open_key()), [""; 0]);
        assert_eq!(found(BY_AUDITED_NODE, &node), ["audit"]);
    }
}
