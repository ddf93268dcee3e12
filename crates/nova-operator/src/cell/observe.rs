//! Reads a cell's Secrets, and probes its services at a limited rate.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api::nova::Cell;
use nova_config::conf::CellView;
use nova_config::rendered_secret::{CONFIG_HASH, cell_secret_name};
use operator_core::data_sources::SourceRef;
use operator_core::finalizers::{has_finalizer, is_terminating};
use operator_core::object_key::Key;
use operator_runtime::api::Api;
use operator_runtime::error::Result;
use operator_runtime::source_cache::SourceCache;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::caches::Caches;
use crate::cell::observed::{Answers, NamedSecret, Observed, Rendered, view};
use crate::cell::{discovery, hosts};
use crate::controller_names::CELL;
use crate::finalizers;
use crate::held_credentials::lookup;
use crate::indexes::BY_CELL;
use crate::probe::keystone_fault::KeystoneFault;
use crate::probe::{CaTrust, amqp_login, keystone_answers};

/// The last results for each cell, with their inputs and their time.
#[derive(Default)]
pub struct Probes(Mutex<BTreeMap<Key, (CellView, Answers, Instant)>>);

impl Probes {
    /// Returns the results for the same inputs and how long they stay valid; `None` when outdated.
    fn known(&self, key: &Key, view: &CellView) -> Option<(Answers, Duration)> {
        let probes = self.0.lock();
        let (_, answers, at) = probes.get(key).filter(|(asked, ..)| asked == view)?;
        let rest = answers.count_for().checked_sub(at.elapsed()).filter(|it| !it.is_zero())?;
        Some((answers.clone(), rest))
    }

    async fn probe(&self, key: &Key, cell: &Cell, view: CellView) -> (Answers, Duration) {
        if let Some(known) = self.known(key, &view) {
            return known;
        }
        let answers = match CaTrust::new(view.ca_bundle.as_deref()) {
            Ok(trust) => {
                let bus = amqp_login(&view.message_bus, &trust);
                let keystone = keystone_answers(&cell.spec.keystone_auth_url, &trust);
                let (message_bus, keystone) = tokio::join!(bus, keystone);
                Answers { message_bus, keystone }
            }
            // Unreachable in practice: reading the view has already accepted the bundle.
            Err(fault) => Answers {
                message_bus: vec![],
                keystone: Err(KeystoneFault::Untrusted(fault.to_string())),
            },
        };
        let pause = answers.count_for();
        self.0.lock().insert(key.clone(), (view, answers.clone(), Instant::now()));
        (answers, pause)
    }
}

/// Reads a cell; returns `None` when it does not exist.
pub async fn observe(caches: &Caches, probes: &Probes, key: &Key) -> Result<Option<Observed>> {
    let Some(cell) = caches.cells.get(key) else {
        caches.sources.depends(CELL, key, BTreeSet::new());
        probes.0.lock().remove(key);
        hosts::observe::forget(caches, key);
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
    let secret = named(&caches.sources, &caches.api, secret).await?;
    let message_bus = named(&caches.sources, &caches.api, message_bus).await?;
    let view = view(&cell, &secret, &message_bus).and_then(Result::ok);
    let nova_api = caches.nova.as_ref().map(|it| it.api(key));
    let set_hosts = caches.nova.as_ref().map_or_else(|| Some(vec![]), |it| it.set_hosts(key));
    let (answers, ask_in) = match view {
        Some(view) => {
            let (answers, ask_in) = probes.probe(key, &cell, view).await;
            (Some(answers), Some(ask_in))
        }
        None => (None, None),
    };
    let rendered = rendered(caches, &files);
    let discovery = discovery::observe::observe(caches, &cell, key, configuration.as_ref()).await?;
    if is_terminating(&*cell) {
        // A terminating cell is held even by computes that cannot be deserialized.
        caches.computes.check_readable(&key.namespace)?;
    }
    let computes = caches.computes.indexed(BY_CELL, key);
    let hosts = hosts::observe::observe(caches, &cell, key, &computes).await?;
    let contents = (secret.content.as_ref(), message_bus.content.as_ref());
    let credentials = lookup::present(caches, &cell, contents).await?;
    let namespace_goes = is_terminating(&*cell)
        && has_finalizer(&*cell, finalizers::CELL)
        && caches.api.is_namespace_terminating(&key.namespace).await?;
    Ok(Some(Observed {
        cell,
        secret,
        message_bus,
        answers,
        nova_api,
        set_hosts,
        discovery,
        hosts,
        ask_in,
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

/// Reads a Secret that a cell names.
pub async fn named(secrets: &SourceCache, api: &Api, source: SourceRef) -> Result<NamedSecret> {
    let content = secrets.content(api, &source).await?;
    Ok(NamedSecret { name: source.key.name, content })
}
