//! The controller of baremetal sets: its caches, its Ironic requests, and its event mapping.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::baremetal::BaremetalSet;
use api::shared::SourceKind;
use ironic_client::Pool;
use ironic_client::pool::Purpose;
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::data_sources::SourceRef;
use operator_core::finalizers::is_terminating;
use operator_core::object_key::Key;
use operator_runtime::api::Api;
use operator_runtime::cache::Cache;
use operator_runtime::controller::{Controller, Decide};
use operator_runtime::error::Result;
use operator_runtime::source_cache::SourceCache;

use crate::backoff::{IronicScope, RequestBackoff};
use crate::decide;
use crate::ironic::{hosts, list_nodes, requests};
use crate::metal3::{self, Metal3};
use crate::observe::{Observed, Secrets, Unseen};

/// The caches and clients of the controller.
pub struct Caches {
    /// All baremetal sets.
    pub sets: Arc<Cache<BaremetalSet>>,
    /// All Secrets.
    pub sources: Arc<SourceCache>,
    /// Metal3's objects, if the cluster has its CRDs.
    pub metal3: Arc<Metal3>,
    /// The sessions with all Ironics.
    pub pool: Pool,
    /// The backoff of their failed requests.
    pub pauses: RequestBackoff,
    /// Client for Secret contents, and for the leader election state.
    pub api: Arc<Api>,
}

/// Reconciles baremetal sets.
pub struct BaremetalSets {
    /// The caches and clients.
    pub caches: Arc<Caches>,
}

impl Controller for BaremetalSets {
    type Observed = Observed;

    const NAME: &'static str = "baremetal-set";

    const DECIDE: Decide<Observed> = decide::decide;

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        let caches = &self.caches;
        let found = caches.sets.get(key);
        let Some(set) = found.filter(|it| !is_terminating(&**it) || is_ours(it)) else {
            caches.sources.depends(Self::NAME, key, BTreeSet::new());
            caches.pool.leave(&key.to_string());
            return Ok(None);
        };
        let named = config_drive::from_baremetal_set::secrets(&set.spec, &key.namespace);
        let named: BTreeSet<&str> = named.into_iter().chain(list_nodes::secrets(&set)).collect();
        let source = |it: &str| SourceRef::secret(&key.namespace, it);
        // Registered before reading, so that a change in between enqueues the set again.
        let made = metal3::writes::of_hosts(&set);
        let of_metal3 = made.into_iter().map(|it| SourceRef { kind: SourceKind::Secret, key: it });
        caches.sources.depends(
            Self::NAME,
            key,
            named.iter().map(|it| source(it)).chain(of_metal3).collect(),
        );
        let mut secrets = Secrets::new();
        for name in named {
            let content = caches.sources.content(&caches.api, &source(name)).await?;
            secrets.extend(content.map(|it| (name.to_owned(), it)));
        }
        let mut neighbours = caches.sets.in_namespace(&set.namespace().unwrap_or_default());
        neighbours.retain(|it| it.uid() != set.uid());
        let mut seen = Observed::new(Arc::clone(&set), &secrets, neighbours);
        seen.keys = caches.sources.keys().clone();
        if let Some(ironic) = set.spec.ironic.as_ref().filter(|_| seen.is_of_ironic()) {
            seen.machines = list_nodes::list_nodes(&caches.pool, &set, ironic, &secrets).await;
            caches.recall(&mut seen);
        }
        if !seen.is_of_ironic() {
            seen.metal3 = caches.metal3.list_hosts(&caches.api, &set).await?;
        }
        if is_terminating(&*set) && matches!(seen.machines, Err(Unseen::NoSecret { .. })) {
            seen.is_abandoned = caches.api.is_namespace_terminating(&key.namespace).await?;
        }
        Ok(Some(seen))
    }

    async fn query_external(&self, seen: &mut Observed, now: Timestamp) {
        let orders = hosts::orders(seen, now);
        let (pool, user) = (&self.caches.pool, user(seen));
        let session = pool.of(&user.to_string()).filter(|_| !orders.is_empty());
        let Some(session) = session else { return };
        // Without a permit nothing is requested and no failure is recorded: the next pass decides
        // again.
        let leave = pool.leave_for(&session, &user.namespace, Purpose::Requests);
        let Some(leave) = leave else { return };
        let api = Arc::clone(&self.caches.api);
        let asked = requests::send_requests(&session, orders, move || api.leads()).await;
        drop(leave);
        self.caches.pauses.note(&IronicScope::of(&seen.set), asked, now);
        self.caches.recall(seen);
    }
}

impl Caches {
    /// Adds the failed requests of the observed machines.
    fn recall(&self, seen: &mut Observed) {
        let nodes = seen.machines.as_ref().map(|it| it.nodes.as_slice()).unwrap_or_default();
        seen.refused = self.pauses.of(&IronicScope::of(&seen.set), nodes);
    }
}

fn user(seen: &Observed) -> Key {
    Key::of(&*seen.set)
}

fn is_ours(set: &BaremetalSet) -> bool {
    operator_core::finalizers::has_finalizer(set, crate::finalizers::MACHINES)
}
