//! What a test has said of hosts and runs, as all pods that are played see it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Client;

use super::fate::{Fate, Matching};
use super::host::Host;
use super::ledger::Ledger;

/// The only worker of the cluster.
pub(crate) const WORKER: &str = "player";

/// What all handles of a player share.
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) ledger: Arc<Ledger>,
    /// `address:port` → host.
    hosts: Mutex<BTreeMap<String, Host>>,
    fates: Mutex<Vec<(Matching, Fate)>>,
    /// Whether hosts that nobody has described let everybody in.
    is_everywhere: AtomicBool,
}

impl Shared {
    /// No hosts yet.
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            ledger: Arc::default(),
            hosts: Mutex::default(),
            fates: Mutex::default(),
            is_everywhere: AtomicBool::new(false),
        }
    }

    /// From now on a host answers at every address, and lets everybody in.
    pub(crate) fn answer_everywhere(&self) {
        self.is_everywhere.store(true, Ordering::Relaxed);
    }

    /// Whether hosts that nobody has described let everybody in.
    pub(crate) fn is_everywhere(&self) -> bool {
        self.is_everywhere.load(Ordering::Relaxed)
    }

    /// From now on the pods of some runs come to that end; what was said last counts.
    pub(crate) fn decide(&self, matching: Matching, fate: Fate) {
        self.fates().push((matching, fate));
    }

    /// The end that a run's pods come to.
    pub(crate) fn fate(&self, run: &Matching) -> Fate {
        let fates = self.fates();
        let mut found = fates.iter().rev().filter(|(it, _)| it.is_of(run));
        found.next().map_or(Fate::Play, |(_, fate)| fate.clone())
    }

    /// The hosts, by `address:port`.
    pub(crate) fn hosts(&self) -> MutexGuard<'_, BTreeMap<String, Host>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fates(&self) -> MutexGuard<'_, Vec<(Matching, Fate)>> {
        self.fates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
