//! The cells whose nova is read, and what is left of those whose nova is not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::nova::RegisteredNova;
use operator_core::object_key::Key;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::nova::drain::remove::Apis;
use crate::nova::fault::explained;
use crate::nova::health::{ApiHealth, Readings};
use crate::nova::monitor::access::Access;

/// How many hosts of a cell are drained, enabled or removed at a time.
pub(crate) const HOSTS_AT_A_TIME: usize = 8;

/// The cells that were looked at, and the readers of their APIs.
#[derive(Default)]
pub(crate) struct FollowedCells {
    /// The readers of APIs, which cells share.
    pub(crate) readers: BTreeMap<Access, Arc<Reader>>,
    /// The cells whose API is read.
    pub(crate) of_cell: BTreeMap<Key, Followed>,
    /// The cells whose API is not read, because an input is missing or wrong, or they do not exist.
    pub(crate) lost: BTreeMap<Key, Lost>,
}

/// A cell whose API is read.
pub(crate) struct Followed {
    /// How it is reached.
    pub(crate) access: Access,
    /// The name of the cell's Secret, for messages.
    pub(crate) secret: String,
}

/// A cell whose API is not read.
pub(crate) struct Lost {
    /// What is missing.
    pub(crate) cause: String,
    /// How it was reached with its last inputs, for what other cells share its nova.
    pub(crate) access: Option<Access>,
    /// What is left of its last readings; `None` of a cell that does not exist.
    pub(crate) reader: Option<Arc<Reader>>,
}

/// The hosts that the API of a cell has services of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ApiHosts {
    /// Other cells are read from the same API, and nova does not say in which one a host is.
    OfSeveralCells,
    /// They are not known.
    Unknown,
    /// Those of the last reading, which are the cell's.
    OfCell(BTreeSet<String>),
}

/// Nova's API as the tasks of the hosts of one cell share it.
#[derive(Clone)]
pub struct SharedApi {
    /// Its clients, which cells share.
    pub apis: Arc<Apis>,
    /// The nova.
    pub nova: Option<RegisteredNova>,
    /// How many hosts of the cell may use it at a time: a cell that hangs holds no other one back.
    pub permits: Arc<Semaphore>,
}

/// What is read of one API.
pub(crate) struct Reader {
    /// Its clients; `None` where inputs are missing, so that each reading fails.
    pub(crate) apis: Option<Arc<Apis>>,
    /// The nova that the readings are of; `None` where it was never known.
    pub(crate) nova: Option<RegisteredNova>,
    /// Its last readings.
    pub(crate) readings: Mutex<Readings>,
    /// The cells that use it, each with its permits.
    pub(crate) cells: Mutex<BTreeMap<Key, Arc<Semaphore>>>,
}

impl Reader {
    /// Creates a reader that no cell uses yet.
    pub(crate) fn new(
        apis: Option<Apis>,
        access: Option<&Access>,
        readings: Readings,
    ) -> Arc<Self> {
        let (apis, readings) = (apis.map(Arc::new), Mutex::new(readings));
        let nova = access.map(Access::registered_nova);
        Arc::new(Self { apis, nova, readings, cells: Mutex::default() })
    }

    /// Adds a cell.
    pub(crate) fn add(&self, cell: &Key) {
        let permits = Arc::new(Semaphore::new(HOSTS_AT_A_TIME));
        self.cells.lock().insert(cell.clone(), permits);
    }

    /// Returns the cells that use it.
    pub(crate) fn cells(&self) -> BTreeSet<Key> {
        self.cells.lock().keys().cloned().collect()
    }
}

impl FollowedCells {
    /// Takes a cell out of all; returns how it was reached and what was read for it last.
    pub(crate) fn leave(&mut self, cell: &Key) -> (Option<Access>, Option<Arc<Reader>>) {
        if let Some(lost) = self.lost.remove(cell) {
            if let Some(reader) = &lost.reader {
                reader.cells.lock().remove(cell);
            }
            return (lost.access, lost.reader);
        }
        let Some(access) = self.of_cell.remove(cell).map(|it| it.access) else {
            return (None, None);
        };
        let reader = self.readers.get(&access).cloned();
        if let Some(reader) = &reader {
            let mut cells = reader.cells.lock();
            cells.remove(cell);
            if cells.is_empty() {
                self.readers.remove(&access);
            }
        }
        (Some(access), reader)
    }

    /// Returns the hosts that the API of a cell has services of.
    pub(crate) fn hosts(&self, cell: &Key) -> ApiHosts {
        let Some(Followed { access, .. }) = self.of_cell.get(cell) else {
            return ApiHosts::Unknown;
        };
        let hosts = self.readers.get(access).and_then(|it| it.readings.lock().hosts());
        match hosts {
            None => ApiHosts::Unknown,
            Some(_) if self.sharing(cell).len() > 1 => ApiHosts::OfSeveralCells,
            Some(hosts) => ApiHosts::OfCell(hosts),
        }
    }

    /// Returns how a cell is reached, or was with its last inputs.
    pub(crate) fn access(&self, cell: &Key) -> Option<&Access> {
        let of_lost = || self.lost.get(cell)?.access.as_ref();
        self.of_cell.get(cell).map(|it| &it.access).or_else(of_lost)
    }

    /// Returns the cell itself and the others that use the same API, as any user. Only a reading shows
    /// that a cell does: everybody may write the URL of another's Keystone.
    pub(crate) fn sharing(&self, cell: &Key) -> BTreeSet<Key> {
        let mut all = BTreeSet::from([cell.clone()]);
        if let Some(access) = self.access(cell) {
            let has_read = |it: &Followed| {
                let reader = self.readers.get(&it.access);
                reader.is_some_and(|it| it.readings.lock().has_read())
            };
            let others = self.of_cell.iter().filter(|(_, it)| it.access.has_api_of(access));
            all.extend(others.filter(|(_, it)| has_read(it)).map(|(key, _)| key.clone()));
        }
        all
    }

    /// Returns the reader of a cell; `None` of one that does not exist, or was not looked at.
    pub(crate) fn reader(&self, cell: &Key) -> Option<Arc<Reader>> {
        match self.of_cell.get(cell) {
            Some(followed) => self.readers.get(&followed.access).cloned(),
            None => self.lost.get(cell)?.reader.clone(),
        }
    }

    /// Whether nothing is known any more of the hosts of a cell, because an input is missing or wrong,
    /// or the cell does not exist.
    pub(crate) fn is_unread(&self, cell: &Key) -> bool {
        self.lost.get(cell).is_some_and(|lost| {
            lost.reader.as_ref().is_none_or(|it| it.readings.lock().has_failed())
        })
    }

    /// Whether it is not known yet what is to be read for a cell.
    pub(crate) fn is_pending(&self, cell: &Key) -> bool {
        !self.of_cell.contains_key(cell) && !self.lost.contains_key(cell)
    }

    /// Returns why nothing is known of a cell's hosts, and what to do about it, where no condition of
    /// the cell has it: this operator writes the status of its own cells alone.
    pub(crate) fn unreported_cause(&self, cell: &Key, is_reported: bool) -> Option<String> {
        if let Some(Lost { cause, reader, .. }) = self.lost.get(cell) {
            return (reader.is_none() || !is_reported).then(|| cause.clone());
        }
        let followed = self.of_cell.get(cell).filter(|_| !is_reported)?;
        match self.readers.get(&followed.access)?.readings.lock().api() {
            ApiHealth::Fails(fault) | ApiHealth::NotListed(fault) => {
                Some(explained(&fault, &followed.secret))
            }
            ApiHealth::Answers | ApiHealth::Pending | ApiHealth::Unread => None,
        }
    }
}
