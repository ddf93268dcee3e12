//! Reads a service of type nova, and the keys of the data sources that users wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::dataplane::ServiceSpec;
use kube::ResourceExt;
use operator_core::data_sources::{SourceRef, sources_of};
use operator_core::object_key::Key;
use operator_runtime::controller::{Controller, Decide};
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::controller_names::SERVICE_CONFIG;
use crate::group::conflicting_service::is_nova;
use crate::rollup::service_keys::decide::decide;
use crate::rollup::service_keys::observed::{Observed, own_condition};

/// The controller of services.
pub struct ServiceConfig {
    /// All caches of the operator.
    pub caches: Arc<Caches>,
}

impl Controller for ServiceConfig {
    type Observed = Observed;

    const NAME: &'static str = SERVICE_CONFIG;

    const DECIDE: Decide<Observed> = decide;

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        let caches = &self.caches;
        let service = caches.services.get(key);
        let is_nova = service.as_ref().is_some_and(|it| is_nova(&key.name, Some(it)));
        let named = service.as_ref().filter(|_| is_nova).map(|it| references(&it.spec, key));
        let named = named.unwrap_or_default();
        // Registered before reading, so that a change in between enqueues the service again.
        caches.sources.depends(SERVICE_CONFIG, key, named.clone());
        let Some(service) = service.filter(|it| is_nova || own_condition(it).is_some()) else {
            return Ok(None);
        };
        let (mut has_cell, mut sources) = (false, BTreeMap::new());
        for source in named {
            if is_of_cell(caches, &source) {
                has_cell = true;
            } else if let Some(found) = caches.sources.digests(&caches.api, &source).await? {
                sources.insert(source, found.keys.into_keys().collect());
            }
        }
        Ok(Some(Observed { service, is_nova, has_cell, sources }))
    }
}

/// Returns the objects that a service names.
fn references(spec: &ServiceSpec, key: &Key) -> BTreeSet<SourceRef> {
    sources_of(spec).iter().map(|it| it.source(&key.namespace)).collect()
}

/// Whether a `NovaCell` owns the object, so that its files are not the user's.
fn is_of_cell(caches: &Caches, source: &SourceRef) -> bool {
    let Some(owner) = caches.sources.controller(source) else { return false };
    caches.cells.all().iter().any(|it| it.uid().as_ref() == Some(&owner))
}
