//! Reads a service of nova's type, and the keys of the data sources that humans wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::conditions::{Condition, find};
use api::dataplane::{Service, ServiceSpec};
use kube::ResourceExt;
use nova_config::conditions::CONFIG_CONDITION;
use nova_config::services::NOVA_TYPE;
use operator_core::data_sources::SourceRef;
use operator_core::object_key::Key;
use operator_runtime::error::Result;

use crate::caches::Caches;

/// Plain copies of everything that was seen.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The service.
    pub service: Arc<Service>,
    /// Whether it is of nova's type; else nothing is said of it.
    pub is_nova: bool,
    /// Whether it is given the files that a `NovaCell` generates.
    pub has_cell: bool,
    /// The keys of its other data sources that exist.
    pub sources: BTreeMap<SourceRef, Vec<String>>,
}

/// Reads a service; `None` where it is none of nova's and nothing was ever said of it.
pub async fn observe(caches: &Caches, key: &Key) -> Result<Option<Observed>> {
    let service = caches.services.get(key);
    let is_nova = service.as_ref().is_some_and(|it| is_nova(it));
    let named = service.as_ref().filter(|_| is_nova).map(|it| sources_of(&it.spec, key));
    let named = named.unwrap_or_default();
    // Before reading, so that a change in between wakes the service again.
    caches.service_sources.depends(key, named.clone());
    let Some(service) = service.filter(|it| is_nova || own_condition(it).is_some()) else {
        return Ok(None);
    };
    let (mut has_cell, mut sources) = (false, BTreeMap::new());
    for source in named {
        if is_of_cell(caches, &source) {
            has_cell = true;
        } else if let Some(found) = caches.service_sources.digests(&caches.api, &source).await? {
            sources.insert(source, found.keys.into_keys().collect());
        }
    }
    Ok(Some(Observed { service, is_nova, has_cell, sources }))
}

/// This operator's condition on a service.
pub fn own_condition(service: &Service) -> Option<&Condition> {
    find(&service.status.as_ref()?.conditions, CONFIG_CONDITION)
}

/// The type counts, and without one the name.
fn is_nova(service: &Service) -> bool {
    service.spec.edpm_service_type.as_deref().unwrap_or(&service.name_any()) == NOVA_TYPE
}

/// The objects that a service names; where both references of an entry are set, the ConfigMap.
fn sources_of(spec: &ServiceSpec, key: &Key) -> BTreeSet<SourceRef> {
    let source = |(is_secret, name): (bool, &String)| SourceRef {
        is_secret,
        key: Key::new(&key.namespace, name),
    };
    let listed = spec.data_sources.iter().filter_map(|it| {
        let (is_secret, object) = it.object()?;
        Some((is_secret, &object.name))
    });
    let deprecated = spec.config_maps.iter().map(|it| (false, it));
    let secrets = spec.secrets.iter().map(|it| (true, it));
    listed.chain(deprecated).chain(secrets).map(source).collect()
}

/// Whether a `NovaCell` has made the object: its files are no human's.
fn is_of_cell(caches: &Caches, source: &SourceRef) -> bool {
    let Some(owner) = caches.service_sources.controller(source) else { return false };
    caches.cells.all().iter().any(|it| it.uid().as_ref() == Some(&owner))
}
