//! What a test has set for hosts and runs, shared by all played pods.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kube::Client;
use parking_lot::{Mutex, MutexGuard};

use super::fate::{Fate, Matching};
use super::host::Host;
use super::ledger::Ledger;
use super::registration::Registrations;

/// The name of the cluster's only worker node.
pub(crate) const WORKER: &str = "player";

/// The state shared by all handles of a player.
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) ledger: Arc<Ledger>,
    /// `address:port` → host.
    hosts: Mutex<BTreeMap<String, Host>>,
    fates: Mutex<Vec<(Matching, Fate)>>,
    registrations: Mutex<Registrations>,
    /// Whether addresses without a described host accept every login.
    is_everywhere: AtomicBool,
    /// Whether each run ends as soon as its pod is bound.
    is_at_once: AtomicBool,
}

impl Shared {
    /// Creates the state without hosts.
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            ledger: Arc::default(),
            hosts: Mutex::default(),
            fates: Mutex::default(),
            registrations: Mutex::default(),
            is_everywhere: AtomicBool::new(false),
            is_at_once: AtomicBool::new(false),
        }
    }

    /// From now on every address has a host that accepts every login.
    pub(crate) fn answer_everywhere(&self) {
        self.is_everywhere.store(true, Ordering::Relaxed);
    }

    /// Returns whether addresses without a described host accept every login.
    pub(crate) fn is_everywhere(&self) -> bool {
        self.is_everywhere.load(Ordering::Relaxed)
    }

    /// From now on each run ends as soon as its pod is bound.
    pub(crate) fn end_at_once(&self) {
        self.is_at_once.store(true, Ordering::Relaxed);
    }

    /// Returns whether each run ends as soon as its pod is bound.
    pub(crate) fn is_at_once(&self) -> bool {
        self.is_at_once.load(Ordering::Relaxed)
    }

    /// Sets the fate of the matching runs from now on; the last matching call applies.
    pub(crate) fn decide(&self, matching: Matching, fate: Fate) {
        self.fates().push((matching, fate));
    }

    /// Returns the fate of a run's pods.
    pub(crate) fn fate(&self, run: &Matching) -> Fate {
        let fates = self.fates();
        let mut found = fates.iter().rev().filter(|(it, _)| it.is_of(run));
        found.next().map_or(Fate::Play, |(_, fate)| fate.clone())
    }

    /// Returns the hosts by `address:port`.
    pub(crate) fn hosts(&self) -> MutexGuard<'_, BTreeMap<String, Host>> {
        self.hosts.lock()
    }

    /// Returns the computes that have registered.
    pub(crate) fn registrations(&self) -> MutexGuard<'_, Registrations> {
        self.registrations.lock()
    }

    fn fates(&self) -> MutexGuard<'_, Vec<(Matching, Fate)>> {
        self.fates.lock()
    }
}
