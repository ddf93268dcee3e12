//! Reads what is known of the audits of a compute's host, all from the caches.

use api::dataplane::{Node, Role};
use jiff::SignedDuration;
use operator_core::object_key::Key;

use crate::audit::condition::Audited;
use crate::audit::report::last;
use crate::audit::request::{AuditRequest, requested};
use crate::indexes::BY_AUDITED_NODE;
use crate::shared_caches::SharedCaches;

/// Returns what is requested for the host of a node, and its last audit. `least` is the shortest
/// legal interval.
pub fn audited(
    caches: &SharedCaches,
    role: Option<&Role>,
    node: &Node,
    least: SignedDuration,
) -> Audited {
    let request = requested(role, node, least);
    if request == AuditRequest::Absent {
        return Audited::default();
    }
    let key = Key::of(node);
    let runs = caches.runs.indexed(BY_AUDITED_NODE, &key);
    Audited { request, last: last(&runs, &key.name) }
}
