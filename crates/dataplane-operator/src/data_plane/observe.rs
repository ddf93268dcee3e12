//! Reads everything that the decision on a data plane needs, from the caches only.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::dataplane::Role;
use kube::ResourceExt;
use operator_core::object_key::Key;
use operator_runtime::cache::Cache;
use operator_runtime::controller::{Controller, Decide};
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::controller_names::DATA_PLANE;
use crate::data_plane::decide::decide;
use crate::data_plane::observed::Observed;
use crate::indexes::{BY_OWNER, BY_ROLE};

/// The controller of data planes. It reads the caches only.
pub struct DataPlanes {
    /// The caches that it reads.
    pub caches: Arc<Caches>,
}

impl Controller for DataPlanes {
    type Observed = Observed;

    const NAME: &'static str = DATA_PLANE;

    const DECIDE: Decide<Observed> = decide;

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        let caches = &self.caches;
        let Some(data_plane) = caches.data_planes.get(key) else { return Ok(None) };
        let namespace = &key.namespace;
        let owner = Key::new(namespace, data_plane.uid().unwrap_or_default());
        let nodes = found(&caches.hosts.nodes, namespace, &owner, data_plane.spec.nodes.keys())?;
        let mut roles =
            found(&caches.hosts.roles, namespace, &owner, data_plane.spec.roles.keys())?;
        for name in nodes.values().filter_map(|it| it.spec.role.as_ref()) {
            if !roles.contains_key(name)
                && let Some(role) = caches.hosts.roles.try_get(&Key::new(namespace, name))?
            {
                roles.insert(name.clone(), role);
            }
        }
        let is_orphan = |it: &&Arc<Role>| !data_plane.spec.roles.contains_key(&it.name_any());
        let followers = |it: Arc<Role>| {
            let name = it.name_any();
            let n_nodes = caches.hosts.nodes.indexed(BY_ROLE, &Key::new(namespace, &name)).len();
            (name, n_nodes)
        };
        let ours = caches.hosts.roles.indexed(BY_OWNER, &owner);
        let n_followers = ours.iter().filter(is_orphan).cloned().map(followers).collect();
        Ok(Some(Observed { data_plane, roles, nodes, n_followers }))
    }
}

/// Returns the objects with these names and those of this owner.
fn found<'a, K: operator_runtime::cache::Watchable>(
    cache: &Cache<K>,
    namespace: &str,
    owner: &Key,
    names: impl Iterator<Item = &'a String>,
) -> Result<BTreeMap<String, Arc<K>>> {
    let listed = names.filter_map(|it| cache.try_get(&Key::new(namespace, it)).transpose());
    let others = cache.indexed(BY_OWNER, owner).into_iter().map(Ok);
    listed.chain(others).map(|it| it.map(|it| (it.name_any(), it))).collect()
}
