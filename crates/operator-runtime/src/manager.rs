//! The part of an operator that runs only while it leads: controllers and the informers they rely
//! on.

use std::sync::Arc;

use kube::{Client, Resource};
use operator_core::keyed::Keys;

use crate::admin::Health;
use crate::api::Api;
use crate::args::{CommonArgs, DigestArgs};
use crate::cache_registry::CacheRegistry;
use crate::controller::{self, Controller};
use crate::crd_ownership::{has_spec_field, is_ours};
use crate::digest_key;
use crate::error::{Error, Result};
use crate::informers::Informers;
use crate::lease::{LeadershipWatch, leading};
use crate::metrics::Metrics;
use crate::runtime::Runtime;
use crate::shutdown::Shutdown;
use crate::unreadable::UnreadableReporter;
use crate::workqueue::WorkQueue;

/// The leading part of an operator. It is built once the Lease is held, so that its first lists are
/// consistent reads made after the predecessor's last write.
pub struct Manager {
    metrics: Metrics,
    health: Health,
    term: String,
    informers: Informers,
}

/// Everything a [`Manager`] is built from, taken from the process before it leads.
#[derive(Clone)]
pub struct ManagerBuilder {
    client: Client,
    metrics: Metrics,
    health: Health,
    leadership: LeadershipWatch,
    stop: Shutdown,
    namespaces: Vec<String>,
    claimed: Vec<String>,
    manager: &'static str,
    instance: String,
    namespace: String,
}

impl ManagerBuilder {
    /// Creates a builder for a running process that writes as field manager `manager`.
    pub fn of(runtime: &Runtime, manager: &'static str, args: &CommonArgs) -> Self {
        Self {
            client: runtime.client(),
            metrics: runtime.metrics(),
            health: runtime.health(),
            leadership: runtime.leadership(),
            stop: runtime.shutdown(),
            namespaces: args.namespaces().unwrap_or_default(),
            claimed: args.claim_kinds.clone(),
            manager,
            instance: runtime.instance(),
            namespace: runtime.namespace().to_owned(),
        }
    }

    /// Returns the installation's keys for digests of Secret content; creates a key when there is
    /// none.
    pub async fn keys(&self, args: &DigestArgs) -> Result<Keys> {
        let keys = digest_key::keys(&self.client, &self.namespace).await?;
        Ok(if args.rewrite_unkeyed_digests { keys } else { keys.keeping_unkeyed() })
    }

    /// Returns the process's metrics.
    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// Returns a receiver of the leadership state.
    pub fn leadership(&self) -> LeadershipWatch {
        self.leadership.clone()
    }

    /// Returns whether this operator reconciles objects of the kind, see [`is_ours`]. If not, its
    /// controller must not run.
    pub async fn drives<K: Resource<DynamicType = ()>>(&self) -> Result<bool> {
        is_ours::<K>(&self.client, &self.claimed).await
    }

    /// Returns whether the cluster's definition of a kind has a field of `spec`, see
    /// [`has_spec_field`].
    pub async fn has_spec_field<K>(&self, field: &str) -> Result<bool>
    where
        K: Resource<DynamicType = ()>,
    {
        has_spec_field::<K>(&self.client, field).await
    }

    /// Returns the watched namespaces; empty means all.
    pub fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    /// Creates the writing client, which stores every written object in the registered caches.
    pub fn api(&self, registry: &CacheRegistry) -> Arc<Api> {
        let (client, caches) = (self.client.clone(), registry.write_through());
        Arc::new(Api::new(client, self.manager, &self.instance, self.leadership.clone(), caches))
    }

    /// Creates informers without any watch. They only read, so they need no Lease.
    pub fn informers(&self) -> Informers {
        let (client, leadership) = (self.client.clone(), self.leadership.clone());
        let (manager, metrics) = (self.manager, self.metrics.clone());
        let reporter =
            UnreadableReporter::new(client, manager, &self.instance, leadership, metrics);
        Informers::new(self.client.clone(), self.namespaces.clone(), reporter)
    }

    /// Waits for the Lease, then runs `work` for as long as it is held.
    ///
    /// # Guarantees
    /// Losing the Lease is an error, so that the process exits and restarts with fresh caches.
    pub async fn lead<F>(mut self, work: F) -> Result<()>
    where
        F: AsyncFnOnce(&Self, Manager) -> Result<()>,
    {
        let mut stop = self.stop.clone();
        let term = tokio::select! {
            term = leading(&mut self.leadership) => term.unwrap_or_default(),
            () = stop.requested() => return Ok(()),
        };
        let informers = self.informers().with_readiness(&self.health);
        let (metrics, health) = (self.metrics.clone(), self.health.clone());
        let manager = Manager { metrics, health, term, informers };
        let mut leadership = self.leadership.clone();
        tokio::select! {
            outcome = work(&self, manager) => outcome,
            _ = leadership.wait_for(|it| !it.leads()) => {
                Err(Error::NotLeading { what: "controllers".into() })
            }
            () = stop.requested() => Ok(()),
        }
    }
}

impl Manager {
    /// Returns the leadership term; every term is unique.
    pub fn term(&self) -> &str {
        &self.term
    }

    /// Returns the informers that the controllers rely on.
    pub fn informers(&mut self) -> &mut Informers {
        &mut self.informers
    }

    /// Runs a controller once every watch has delivered its first list.
    pub async fn run<C, O>(&mut self, controller: C, api: Arc<Api>, queue: Arc<WorkQueue>)
    where
        C: Controller<O>,
        O: Send + Sync + 'static,
    {
        self.ready().await;
        let metrics = self.metrics.clone();
        self.health.progress(C::NAME, Arc::clone(&queue));
        self.spawn(controller::run(Arc::new(controller), api, queue, metrics));
    }

    /// Spawns any other task; it must not end.
    pub fn spawn<F>(&mut self, task: F)
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        self.informers.spawn(task);
    }

    /// Resolves once every watch has delivered its first list.
    pub async fn ready(&mut self) {
        self.informers.ready().await;
    }

    /// Holds the leadership without doing anything; never resolves.
    pub async fn idle(self) -> Result<()> {
        std::future::pending().await
    }

    /// Resolves when any task ends, which none should.
    pub async fn finish(mut self) -> Result<()> {
        self.informers.end().await
    }
}
