//! Reads what the decision on a service needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use operator_core::data_sources::{NamedSource, SourceRef, sources_of};
use operator_core::finalizers::is_terminating;
use operator_core::object_key::Key;
use operator_runtime::controller::{Controller, Decide};
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::controller_names::SERVICE;
use crate::service::decide::decide;
use crate::service::observed::Observed;
use crate::{default_services, endpoints};

/// The controller of services; its keys also include default services that do not exist.
pub struct Services {
    /// The caches that it reads.
    pub caches: Arc<Caches>,
}

impl Controller for Services {
    type Observed = Observed;

    const NAME: &'static str = SERVICE;

    const DECIDE: Decide<Observed> = decide;

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        let caches = &self.caches;
        let Key { namespace, name } = key.clone();
        let defaults = caches.defaults.clone();
        let Some(service) = caches.services.get(key) else {
            caches.sources.depends(SERVICE, key, BTreeSet::new());
            let (sources, ports) = (BTreeMap::new(), None);
            let is_listed = true;
            let missing =
                Observed { namespace, name, service: None, defaults, sources, is_listed, ports };
            return Ok(is_to_be_made(caches, key).then_some(missing));
        };
        let held = defaults.as_it_holds(Arc::clone(&service));
        let named: BTreeSet<SourceRef> =
            sources_of(&held.spec).iter().map(|it| it.source(&namespace)).collect();
        // Registered before reading, so that a change in between enqueues the service again.
        caches.sources.depends(SERVICE, key, named.clone());
        let sources = sources(caches, named).await?;
        let ports = endpoints::observe::observe(caches, &service).await?;
        let is_missing =
            |it: &NamedSource| !it.is_optional && !sources.contains_key(&it.source(&namespace));
        let is_listed =
            !sources_of(&held.spec).iter().any(is_missing) || lists(caches, key).contains(&true);
        let service = Some(service);
        Ok(Some(Observed { namespace, name, service, defaults, sources, is_listed, ports }))
    }
}

async fn sources(
    caches: &Caches,
    named: BTreeSet<SourceRef>,
) -> Result<BTreeMap<SourceRef, Vec<String>>> {
    let exist: Vec<SourceRef> =
        named.into_iter().filter(|it| caches.sources.version(it).is_some()).collect();
    if exist.len() < 2 {
        return Ok(exist.into_iter().map(|it| (it, Vec::new())).collect());
    }
    let digests = caches.sources.digests_of(&caches.api, exist).await?;
    Ok(digests.into_iter().map(|(it, found)| (it, found.keys.into_keys().collect())).collect())
}

/// Returns whether to create a missing default service that no object lists, in a namespace with
/// hosts.
///
/// An object that lists a default service creates it itself, so that it can report a rejection.
fn is_to_be_made(caches: &Caches, key: &Key) -> bool {
    if !default_services::is_default(&key.name) {
        return false;
    }
    let lists = lists(caches, key);
    !lists.is_empty() && !lists.contains(&true)
}

/// Returns for each object of the namespace that has services whether it lists this one.
fn lists(caches: &Caches, key: &Key) -> Vec<bool> {
    let roles = caches.hosts.roles.in_namespace(&key.namespace);
    let nodes = caches.hosts.nodes.in_namespace(&key.namespace);
    let sets = caches.hosts.node_sets.in_namespace(&key.namespace);
    let of_roles = roles.iter().filter(|it| !is_terminating(&***it)).map(|it| &it.spec.services);
    let alone = nodes.iter().filter(|it| !is_terminating(&***it) && it.spec.role.is_none());
    let of_sets = sets.iter().filter(|it| !is_terminating(&***it)).map(|it| &it.spec.services);
    let all = of_roles.chain(alone.map(|it| &it.spec.services)).chain(of_sets);
    all.map(|it| it.contains(&key.name)).collect()
}
