//! Reads the hosts of a scope and their audits, all from the caches but changed ssh Secrets.

use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{Node, Role};
use kube::ResourceExt;
use operator_core::data_sources::SourceRef;
use operator_core::object_key::Key;
use operator_core::plan::Target;
use operator_runtime::error::Result;

use crate::audit::observe::audited;
use crate::audit::request::AuditRequest;
use crate::audit::run::{address_key, is_audit, is_open, open_key};
use crate::audit::scope::Scope;
use crate::audit_runs::observed::{Audit, AuditedHost, Observed};
use crate::caches::Caches;
use crate::indexes::{BY_OPEN_ADDRESS, BY_OPEN_AUDIT, BY_OWNER, BY_ROLE};
use crate::shared_caches::SharedCaches;

/// Reads a scope; returns `None` when its object does not exist, and with it its audits go.
pub async fn observe(caches: &Caches, key: &Key) -> Result<Option<Observed>> {
    let shared = caches.watched();
    let Some((owner, role, nodes)) = Scope::of_key(key).and_then(|it| members(&shared, &it)) else {
        return Ok(None);
    };
    let mut hosts = Vec::new();
    for node in nodes {
        hosts.extend(host(caches, &shared, role.as_deref(), node).await?);
    }
    hosts.sort_by_key(|it| it.node.name_any());
    let owner_key = Key::new(&owner.namespace, owner.uid.clone().unwrap_or_default());
    let audits = shared.runs.indexed(BY_OWNER, &owner_key).into_iter();
    let audits = audits.filter(|it| is_audit(it)).map(|run| {
        let is_in_the_way =
            is_open(&run) && run.spec.hosts.iter().any(|it| is_busy(&shared, &it.address));
        Audit { run, is_in_the_way }
    });
    let n_open = shared.runs.indexed(BY_OPEN_AUDIT, &open_key()).len();
    Ok(Some(Observed {
        owner,
        hosts,
        audits: audits.collect(),
        n_open,
        max_open: caches.audit_limits.max_open,
    }))
}

/// The object of a scope, the role where it is one, and the nodes.
type Members = (Target, Option<Arc<Role>>, Vec<Arc<Node>>);

fn members(caches: &SharedCaches, scope: &Scope) -> Option<Members> {
    match scope {
        Scope::Role(key) => {
            let role = caches.roles.get(key)?;
            let nodes = caches.nodes.indexed(BY_ROLE, key);
            Some((Target::of(&*role), Some(role), nodes))
        }
        Scope::Node(key) => {
            let node = caches.nodes.get(key).filter(|it| it.spec.role.is_none())?;
            Some((Target::of(&*node), None, vec![node]))
        }
    }
}

/// Returns a node's host; `None` where it has no compute, or no audits are requested.
async fn host(
    caches: &Caches,
    shared: &SharedCaches,
    role: Option<&Role>,
    node: Arc<Node>,
) -> Result<Option<AuditedHost>> {
    let audited = audited(caches, role, &node);
    if audited.request == AuditRequest::Absent {
        return Ok(None);
    }
    let Some((compute, _)) = shared.compute_of(&node) else { return Ok(None) };
    let secret = compute.spec.ssh_key_secret_name.as_deref();
    let secret = secret.map(|it| SourceRef::secret(&node.namespace().unwrap_or_default(), it));
    let ssh = match secret {
        Some(secret) => caches.sources.digests(&caches.api, &secret).await?,
        None => None,
    };
    let address = node.status.as_ref().and_then(|it| it.address.as_deref());
    let is_busy = address.is_some_and(|it| is_busy(shared, it));
    Ok(Some(AuditedHost { node, compute, audited, ssh, is_busy }))
}

/// Returns whether a run that is no audit has not ended on the host of an address.
fn is_busy(caches: &SharedCaches, address: &str) -> bool {
    let open: Vec<Arc<AnsibleEe>> = caches.runs.indexed(BY_OPEN_ADDRESS, &address_key(address));
    open.iter().any(|it| !is_audit(it))
}
