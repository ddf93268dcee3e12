//! Reads what is known of the audits of a compute's host, all from the caches.

use api::dataplane::Node;
use kube::ResourceExt;
use operator_core::object_key::Key;

use crate::caches::Caches;
use crate::compute::audit::condition::Audited;
use crate::compute::audit::report::last;
use crate::compute::audit::request::{AuditRequest, requested};
use crate::group::Group;
use crate::group::conflicting_service::listed;
use crate::shared_caches::indexes::BY_AUDITED_NODE;

/// Returns what is requested for the host of a node, its last audit, and the audit playbooks of its
/// services.
pub fn audited(caches: &Caches, group: Option<&Group>, node: &Node) -> Audited {
    let request = requested(group, node, caches.audit_limits.least_interval);
    if request == AuditRequest::Absent {
        return Audited::default();
    }
    let key = Key::of(node);
    let runs = caches.shared.runs.indexed(BY_AUDITED_NODE, &key);
    Audited { request, last: last(&runs, &key.name), playbooks: playbooks(caches, group, node) }
}

/// Returns the audit playbooks of a node's services, in order; a service without one is not
/// audited.
fn playbooks(caches: &Caches, group: Option<&Group>, node: &Node) -> Vec<String> {
    let namespace = node.namespace().unwrap_or_default();
    let services = listed(group, node).iter();
    let found = services.filter_map(|it| caches.services.get(&Key::new(&namespace, it)));
    found.filter_map(|it| it.spec.audit_playbook.clone()).collect()
}
