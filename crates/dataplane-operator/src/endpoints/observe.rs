//! Reads the inputs of a service's exposed ports, and what is exposed already.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::dataplane::{Node, Service};
use kube::{Resource, ResourceExt};
use operator_core::object_key::Key;
use operator_runtime::api::Api;
use operator_runtime::cache::Watchable;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::endpoints::build::{ExposedAddresses, slices_of};
use crate::endpoints::observed::Observed;
use crate::indexes::{BY_OWNER, BY_ROLE};

/// Reads what a service exposes; `None` if it exposes nothing and lists no ports.
pub async fn observe(caches: &Caches, service: &Arc<Service>) -> Result<Option<Observed>> {
    let (service, key) = (Arc::clone(service), &Key::of(&**service));
    let owner = Key::new(&key.namespace, service.uid().unwrap_or_default());
    let exposed = caches.exposed.indexed(BY_OWNER, &owner);
    let slices = caches.slices.indexed(BY_OWNER, &owner);
    if service.spec.services.is_empty() && exposed.is_empty() && slices.is_empty() {
        return Ok(None);
    }
    let addresses = ExposedAddresses::of(&nodes(caches, key), &caches.service_networks);
    let mut taken = BTreeSet::new();
    for port in &service.spec.services {
        let name = &port.name;
        if is_others(&caches.api, key, name, &exposed).await? {
            taken.insert(format!("Service {name}"));
        }
        for (name, _, _) in slices_of(port, &addresses) {
            if is_others(&caches.api, key, &name, &slices).await? {
                taken.insert(format!("EndpointSlice {name}"));
            }
        }
    }
    Ok(Some(Observed { service, addresses, exposed, slices, taken }))
}

/// Returns whether another owner's object has that name: one read, before the object is created.
async fn is_others<K: Watchable>(
    api: &Api,
    beside: &Key,
    name: &str,
    ours: &[Arc<K>],
) -> Result<bool> {
    if ours.iter().any(|it| it.name_any() == name) {
        return Ok(false);
    }
    let found = api.get::<K>(&Key::new(&beside.namespace, name)).await?;
    let kind = Service::kind(&());
    let is_ours =
        |it: &K| it.owner_references().iter().any(|it| it.kind == kind && it.name == beside.name);
    Ok(found.is_some_and(|it| !is_ours(&it)))
}

/// Returns the nodes that run a service.
fn nodes(caches: &Caches, service: &Key) -> Vec<Arc<Node>> {
    let lists = |names: &[String]| names.contains(&service.name);
    let hosts = &caches.hosts;
    let roles = hosts.roles.in_namespace(&service.namespace).into_iter();
    let roles = roles.filter(|it| lists(&it.spec.services));
    let of_roles = roles.flat_map(|it| hosts.nodes.indexed(BY_ROLE, &Key::of(&*it)));
    let alone = |it: &Arc<Node>| it.spec.role.is_none() && lists(&it.spec.services);
    let alone = hosts.nodes.in_namespace(&service.namespace).into_iter().filter(alone);
    of_roles.chain(alone).collect()
}
