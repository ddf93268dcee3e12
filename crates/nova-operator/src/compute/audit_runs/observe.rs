//! Reads the hosts of a scope and their audits, all from the caches but changed ssh Secrets.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::Node;
use kube::ResourceExt;
use operator_core::data_sources::{SourceRef, sources_of};
use operator_core::object_key::Key;
use operator_core::plan::Target;
use operator_core::run_engine::run_template::MountedSource;
use operator_core::run_engine::sources::mounted;
use operator_runtime::controller::{Controller, Decide};
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::compute::audit::observe::audited;
use crate::compute::audit::request::AuditRequest;
use crate::compute::audit::scope::Scope;
use crate::compute::audit_runs::decide::decide;
use crate::compute::audit_runs::observed::{Audit, AuditedHost, Observed};
use crate::group::{Group, group_key};
use crate::shared_caches::SharedCaches;
use crate::shared_caches::audit_runs::{address_key, is_audit, is_open, open_key};
use crate::shared_caches::indexes::{BY_OPEN_ADDRESS, BY_OPEN_AUDIT, BY_OWNER};

/// The controller of audits.
pub struct AuditRuns {
    /// All caches of the operator.
    pub caches: Arc<Caches>,
}

impl Controller for AuditRuns {
    type Observed = Observed;

    const NAME: &'static str = "audit";

    const DECIDE: Decide<Observed> = decide;

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        let (caches, shared) = (&self.caches, &self.caches.shared);
        let Some((owner, group, nodes)) = members(shared, &Scope::of_key(key)) else {
            return Ok(None);
        };
        let mut hosts = Vec::new();
        for node in nodes {
            hosts.extend(host(caches, group.as_ref(), node).await?);
        }
        hosts.sort_by_key(|it| it.node.name_any());
        let owner_key = Key::new(&owner.namespace, owner.uid.clone().unwrap_or_default());
        let audits = shared.runs.indexed(BY_OWNER, &owner_key).into_iter();
        let audits = audits.filter(|it| is_audit(it)).map(|run| {
            let is_in_the_way =
                is_open(&run) && run.spec.hosts.iter().any(|it| is_busy(shared, &it.address));
            Audit { run, is_in_the_way }
        });
        let n_open = open_by_namespace(shared);
        Ok(Some(Observed {
            owner,
            hosts,
            audits: audits.collect(),
            n_open,
            max_open: caches.audit_limits.max_open,
        }))
    }
}

/// Returns how many audits of each namespace have not ended: those with the label that an object with
/// audits owns, for others are not ours.
fn open_by_namespace(caches: &SharedCaches) -> BTreeMap<String, usize> {
    let mut n_open = BTreeMap::new();
    for run in caches.runs.indexed(BY_OPEN_AUDIT, &open_key()) {
        let namespace = run.namespace().unwrap_or_default();
        let mut owners = run.owner_references().iter();
        if owners.any(|it| is_scope(caches, &Key::new(&namespace, &it.name), &it.uid)) {
            *n_open.entry(namespace).or_default() += 1;
        }
    }
    n_open
}

fn is_scope(caches: &SharedCaches, key: &Key, uid: &str) -> bool {
    let uids = [
        caches.roles.get(key).and_then(|it| it.uid()),
        caches.node_sets.get(key).and_then(|it| it.uid()),
        caches.nodes.get(key).and_then(|it| it.uid()),
    ];
    uids.iter().flatten().any(|it| it == uid)
}

/// The object of a scope, the group where it is one, and the nodes.
type Members = (Target, Option<Group>, Vec<Arc<Node>>);

fn members(caches: &SharedCaches, scope: &Scope) -> Option<Members> {
    match scope {
        Scope::Group(key) => {
            let group = caches.group(key)?;
            Some((group.target(), Some(group), caches.nodes_of(key)))
        }
        Scope::Node(key) => {
            let node = caches.nodes.get(key).filter(|it| group_key(it).is_none())?;
            Some((Target::of(&*node), None, vec![node]))
        }
    }
}

/// Returns a node's host; `None` where it has no compute, or no audits are requested.
async fn host(
    caches: &Caches,
    group: Option<&Group>,
    node: Arc<Node>,
) -> Result<Option<AuditedHost>> {
    let audited = audited(caches, group, &node);
    if audited.request == AuditRequest::Absent {
        return Ok(None);
    }
    let Some((compute, _)) = caches.shared.compute_of(&node) else { return Ok(None) };
    let secret = compute.spec.ssh_key_secret_name.as_deref();
    let secret = secret.map(|it| SourceRef::secret(&node.namespace().unwrap_or_default(), it));
    let ssh = match secret {
        Some(secret) => caches.sources.digests(&caches.api, &secret).await?,
        None => None,
    };
    let sources =
        if compute.is_observed() { sources(caches, group, &node).await? } else { Some(vec![]) };
    let address = node.status.as_ref().and_then(|it| it.address.as_deref());
    let is_busy = address.is_some_and(|it| is_busy(&caches.shared, it));
    Ok(Some(AuditedHost { node, compute, audited, ssh, sources, is_busy }))
}

/// Returns what the service of type nova of a node mounts, as its deployments do; `None` where there is no
/// such service, or something is missing.
async fn sources(
    caches: &Caches,
    group: Option<&Group>,
    node: &Node,
) -> Result<Option<Vec<MountedSource>>> {
    let (nova, namespace) =
        (caches.nova_services(group, node), node.namespace().unwrap_or_default());
    let name = nova.listed.map(|it| it.service).or(nova.deployed);
    let service = name.and_then(|it| caches.services.get(&Key::new(&namespace, &it)));
    let Some(service) = service else { return Ok(None) };
    let mut found = Vec::new();
    for named in sources_of(&service.spec) {
        let digests = caches.sources.digests(&caches.api, &named.source(&namespace)).await?;
        let Some(digests) = digests else {
            if named.is_optional {
                continue;
            }
            return Ok(None);
        };
        let keys = digests.keys.into_keys().collect();
        found.push(MountedSource { kind: named.kind, name: named.name, keys });
    }
    Ok(Some(mounted(found)))
}

/// Returns whether a run that is no audit has not ended on the host of an address.
fn is_busy(caches: &SharedCaches, address: &str) -> bool {
    let open: Vec<Arc<AnsibleEe>> = caches.runs.indexed(BY_OPEN_ADDRESS, &address_key(address));
    open.iter().any(|it| !is_audit(it))
}

#[cfg(test)]
mod tests {
    use operator_runtime::cache::WriteThrough as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::shared_caches::audit_runs::LABEL;

    #[test]
    fn an_audit_counts_in_its_namespace_and_only_if_an_object_with_audits_owns_it() {
        let caches = SharedCaches::default();
        let role = |namespace: &str| {
            json!({
                "apiVersion": "dataplane.openstack.org/v1beta1", "kind": "OpenStackDataPlaneRole",
                "metadata": {
                    "name": "compute", "namespace": namespace, "uid": "r", "resourceVersion": "1",
                },
                "spec": {},
            })
        };
        caches.roles.absorb(&role("a"));
        caches.roles.absorb(&role("b"));
        caches.node_sets.absorb(&json!({
            "apiVersion": "dataplane.openstack.org/v1beta1", "kind": "OpenStackDataPlaneNodeSet",
            "metadata": {
                "name": "compute", "namespace": "b", "uid": "s", "resourceVersion": "1",
            },
            "spec": {"nodes": {}, "nodeTemplate": {"ansibleSSHPrivateKeySecret": "ssh"}},
        }));
        let audit = |namespace: &str, name: &str, owners: Value| {
            caches.runs.absorb(&json!({
                "apiVersion": "ansibleee.openstack.org/v1beta1", "kind": "OpenStackAnsibleEE",
                "metadata": {
                    "name": name, "namespace": namespace, "uid": name, "resourceVersion": "1",
                    "labels": { LABEL: "interval" }, "ownerReferences": owners,
                },
                "spec": { "hosts": [{ "name": "n0", "address": "192.0.2.1:22" }] },
            }));
        };
        // As they are made: their owner does not control them.
        let owner = |kind: &str, uid: &str| {
            json!([{
                "apiVersion": "dataplane.openstack.org/v1beta1", "kind": kind, "name": "compute",
                "uid": uid,
            }])
        };
        let (role, set) = ("OpenStackDataPlaneRole", "OpenStackDataPlaneNodeSet");
        audit("a", "ours", owner(role, "r"));
        audit("b", "ours", owner(role, "r"));
        audit("b", "of-a-node-set", owner(set, "s"));
        audit("b", "hand-made", json!([]));
        audit("b", "of-another-role", owner(role, "x"));
        let counts = [("a".to_owned(), 1), ("b".to_owned(), 2)].into();
        assert_eq!(open_by_namespace(&caches), counts);
    }
}
