//! Reads a cell's Secrets, and what is known of its services.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::nova::Cell;
use kube::ResourceExt;
use nova_config::rendered_secret::{CONFIG_HASH, cell_secret_name};
use operator_core::data_sources::SourceRef;
use operator_core::finalizers::{has_finalizer, is_terminating};
use operator_core::object_key::Key;
use operator_runtime::error::Result;
use operator_runtime::source_cache::Content;

use crate::caches::Caches;
use crate::cell::observed::cell_on_bus::CellOnBus;
use crate::cell::observed::{Observed, Rendered};
use crate::cell::probes::Probes;
use crate::cell::shared_bus::{is_same, may_not_share};
use crate::cell::{discovery, hosts};
use crate::cell_inputs::view;
use crate::compute::credentials::lookup;
use crate::controller_names::CELL;
use crate::finalizers;
use crate::shared_caches::indexes::BY_CELL;

/// Reads a cell; returns `None` when it does not exist.
pub async fn observe(caches: &Caches, probes: &Arc<Probes>, key: &Key) -> Result<Option<Observed>> {
    let Some(cell) = caches.cells.get(key) else {
        caches.sources.depends(CELL, key, BTreeSet::new());
        probes.follow(key, None);
        return Ok(None);
    };
    let source = |name: &str| SourceRef::secret(&key.namespace, name);
    let (secret, message_bus) =
        (source(&cell.spec.secret), source(&cell.spec.cell_message_bus_secret_name));
    let files = source(&cell_secret_name(&key.name));
    // Registered before reading, so that a change in between enqueues the cell again.
    let configuration = discovery::observe::secret(&cell, key);
    let mut all = BTreeSet::from([secret.clone(), message_bus.clone(), files.clone()]);
    all.extend(configuration.clone());
    let others = others(caches, &cell, &key.namespace);
    all.extend(others.iter().map(bus_of));
    caches.sources.depends(CELL, key, all);
    let secret = caches.sources.content(&caches.api, &secret).await?;
    let message_bus = caches.sources.content(&caches.api, &message_bus).await?;
    let on_same_bus = on_same_bus(caches, &others, message_bus.as_ref()).await?;
    let contents = (secret.as_ref(), message_bus.as_ref());
    let view = view(&cell, contents.0, contents.1).and_then(Result::ok);
    let nova_api = caches.nova.as_ref().map(|it| it.api(key));
    let is_probed = view.is_some();
    let answers = probes.follow(key, view);
    let rendered = rendered(caches, &files);
    let discovery = discovery::observe::observe(caches, &cell, key, configuration.as_ref()).await?;
    if is_terminating(&*cell) {
        // A terminating cell is held even by computes that cannot be deserialized.
        caches.shared.computes.check_readable(&key.namespace)?;
    }
    let computes = caches.shared.computes.indexed(BY_CELL, key);
    let hosts = hosts::observe::observe(caches, &cell, key, &computes);
    let credentials = lookup::present(caches, &cell, contents).await?;
    let namespace_goes = is_terminating(&*cell)
        && has_finalizer(&*cell, finalizers::CELL)
        && caches.api.is_namespace_terminating(&key.namespace).await?;
    Ok(Some(Observed {
        cell,
        secret,
        message_bus,
        on_same_bus,
        is_probed,
        answers,
        nova_api,
        discovery,
        hosts,
        rendered,
        computes,
        namespace_goes,
        keys: caches.sources.keys().clone(),
        credentials,
    }))
}

/// Returns the cells of the namespace that may not have the message bus of this one.
fn others(caches: &Caches, cell: &Cell, namespace: &str) -> Vec<Arc<Cell>> {
    let mut all = caches.cells.in_namespace(namespace);
    all.retain(|it| may_not_share(cell, it));
    all
}

fn bus_of(cell: &Arc<Cell>) -> SourceRef {
    let namespace = cell.namespace().unwrap_or_default();
    SourceRef::secret(&namespace, &cell.spec.cell_message_bus_secret_name)
}

/// Returns those of the `others` that have the same message bus.
async fn on_same_bus(
    caches: &Caches,
    others: &[Arc<Cell>],
    message_bus: Option<&Content>,
) -> Result<Vec<CellOnBus>> {
    let Some(own) = message_bus else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for other in others {
        let bus = caches.sources.content(&caches.api, &bus_of(other)).await?;
        let computes = || caches.shared.computes.indexed(BY_CELL, &Key::of(&**other));
        let same = bus.filter(|it| is_same(own, it));
        found.extend(same.map(|_| CellOnBus::of(Arc::clone(other), &computes())));
    }
    Ok(found)
}

fn rendered(caches: &Caches, files: &SourceRef) -> Option<Rendered> {
    let sources = &caches.sources;
    sources.version(files)?;
    Some(Rendered {
        hash: sources.annotation(files, CONFIG_HASH).unwrap_or_default(),
        controller: sources.controller(files),
        managed_fields: sources.owned(files),
    })
}
