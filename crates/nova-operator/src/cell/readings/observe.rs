//! Reads a cell and its Secrets, and has nova's API read as they say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::conditions::{ConditionDraft, ConditionStatus};
use api::nova::Cell;
use operator_core::data_sources::SourceRef;
use operator_core::finalizers::is_terminating;
use operator_core::object_key::Key;
use operator_runtime::api::Api;
use operator_runtime::cache::Cache;
use operator_runtime::error::Result;
use operator_runtime::source_cache::SourceCache;
use parking_lot::Mutex;

use crate::cell::nova_api::{fails, not_listed, unread};
use crate::cell::readings::observed::Observed;
use crate::cell::status::input;
use crate::cell_inputs::view;
use crate::controller_names::CELL_READINGS;
use crate::nova::health::ApiHealth;
use crate::nova::monitor::{CellInputs, NovaMonitor};

/// What the controller reads.
pub struct Sources {
    /// All cells.
    pub cells: Arc<Cache<Cell>>,
    /// Their Secrets.
    pub secrets: Arc<SourceCache>,
    /// The API client, which reads the contents of Secrets.
    pub api: Arc<Api>,
    /// Whether this operator reconciles cells, and so reports in their status.
    pub cells_are_ours: bool,
}

/// The reasons that were reported in Events since the last problem was over, by cell. They are
/// forgotten with the process, which may repeat one.
#[derive(Default)]
pub struct Reported(Mutex<BTreeMap<Key, BTreeSet<String>>>);

impl Reported {
    /// Records the reason that holds now, and returns whether it was recorded already.
    fn has(&self, cell: &Key, reason: &str) -> bool {
        !self.0.lock().entry(cell.clone()).or_default().insert(reason.to_owned())
    }

    /// Forgets the reasons of a cell.
    fn forget(&self, cell: &Key) {
        self.0.lock().remove(cell);
    }
}

/// Reads a cell; returns `None` when it does not exist.
pub async fn observe(
    sources: &Sources,
    monitor: &Arc<NovaMonitor>,
    reported: &Reported,
    key: &Key,
) -> Result<Option<Observed>> {
    let Some(cell) = sources.cells.get(key) else {
        sources.secrets.depends(CELL_READINGS, key, BTreeSet::new());
        monitor.follow(key, CellInputs::Gone);
        reported.forget(key);
        return Ok(None);
    };
    let source = |name: &str| SourceRef::secret(&key.namespace, name);
    let (secret, message_bus) =
        (source(&cell.spec.secret), source(&cell.spec.cell_message_bus_secret_name));
    // Registered before reading, so that a change in between enqueues the cell again.
    let both = [secret.clone(), message_bus.clone()];
    sources.secrets.depends(CELL_READINGS, key, both.into());
    let secret = sources.secrets.content(&sources.api, &secret).await?;
    let message_bus = sources.secrets.content(&sources.api, &message_bus).await?;
    let (secret, message_bus) = (secret.as_ref(), message_bus.as_ref());
    let view = view(&cell, secret, message_bus);
    let input = input(&cell, secret, message_bus, view.as_ref());
    let inputs = match &view {
        Some(Ok(view)) => CellInputs::Complete { view, secret: &cell.spec.secret },
        Some(Err(_)) | None => CellInputs::Missing(&input.message),
    };
    monitor.follow(key, inputs);
    if sources.cells_are_ours {
        return Ok(Some(Observed { cell, problem: None, is_reported: false }));
    }
    let api = monitor.api(key);
    let problem = problem(&cell, input, &api).filter(|_| !is_terminating(&*cell));
    if problem.is_none() && api == ApiHealth::Answers {
        reported.forget(key);
    }
    let is_reported = problem.as_ref().is_some_and(|it| reported.has(key, &it.reason));
    Ok(Some(Observed { cell, problem, is_reported }))
}

/// Returns why nova's API is not read, as far as that is known.
fn problem(cell: &Cell, input: ConditionDraft, api: &ApiHealth) -> Option<ConditionDraft> {
    match api {
        _ if input.status == ConditionStatus::False => Some(input),
        ApiHealth::Pending | ApiHealth::Answers => None,
        ApiHealth::Unread => Some(unread(cell)),
        ApiHealth::Fails(fault) => Some(fails(cell, fault)),
        ApiHealth::NotListed(fault) => Some(not_listed(cell, fault)),
    }
}
