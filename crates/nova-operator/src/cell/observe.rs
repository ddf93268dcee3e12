//! Reads a cell's Secrets, and what is known of its services.

use std::collections::BTreeSet;
use std::sync::Arc;

use nova_config::rendered_secret::{CONFIG_HASH, cell_secret_name};
use operator_core::data_sources::SourceRef;
use operator_core::finalizers::{has_finalizer, is_terminating};
use operator_core::object_key::Key;
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::cell::observed::{Observed, Rendered};
use crate::cell::probes::Probes;
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
    caches.sources.depends(CELL, key, all);
    let secret = caches.sources.content(&caches.api, &secret).await?;
    let message_bus = caches.sources.content(&caches.api, &message_bus).await?;
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

fn rendered(caches: &Caches, files: &SourceRef) -> Option<Rendered> {
    let sources = &caches.sources;
    sources.version(files)?;
    Some(Rendered {
        hash: sources.annotation(files, CONFIG_HASH).unwrap_or_default(),
        controller: sources.controller(files),
        managed_fields: sources.owned(files),
    })
}
