//! The part of an operator that runs only while it leads: controllers and the informers they rely
//! on.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use kube::{Client, Resource};
use operator_core::keyed::Keys;
use tokio::task::JoinSet;

use crate::admin::{Check, Health};
use crate::api::Api;
use crate::args::{CommonArgs, DigestArgs};
use crate::cache::{Cache, Scope, Watchable, WriteThrough};
use crate::controller::{self, Controller};
use crate::crd_ownership::is_ours;
use crate::digest_key;
use crate::error::{Error, Result};
use crate::lease::{LeadershipWatch, leading};
use crate::metrics::Metrics;
use crate::runtime::Runtime;
use crate::shutdown::Shutdown;
use crate::unreadable::{Role, UnreadableReporter};
use crate::workqueue::WorkQueue;

/// The leading part of an operator. It is built once the Lease is held, so that its first lists are
/// consistent reads made after the predecessor's last write.
pub struct Manager {
    metrics: Metrics,
    health: Health,
    term: String,
    informers: Informers,
}

/// Watches in the operator's namespaces and the tasks that rely on them; all stop when it is
/// dropped.
pub struct Informers {
    client: Client,
    teller: UnreadableReporter,
    /// Readiness check that names the kinds whose first list is missing.
    syncing: Option<Syncing>,
    namespaces: Vec<String>,
    tasks: JoinSet<Result<()>>,
    synced: Vec<BoxFuture<'static, ()>>,
}

/// The kinds of a leader that have not been listed yet.
#[derive(Clone)]
struct Syncing {
    check: Check,
    kinds: Arc<Mutex<BTreeSet<String>>>,
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

    /// Returns whether this operator reconciles objects of the kind, see [`is_ours`]. If not, its
    /// controller must not run.
    pub async fn drives<K: Resource<DynamicType = ()>>(&self) -> Result<bool> {
        is_ours::<K>(&self.client, &self.claimed).await
    }

    /// Returns the watched namespaces; empty means all.
    pub fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    /// Creates the writing client, which stores every written object in these caches.
    pub fn api(&self, caches: Vec<Arc<dyn WriteThrough>>) -> Arc<Api> {
        let client = self.client.clone();
        Arc::new(Api::new(client, self.manager, &self.instance, self.leadership.clone(), caches))
    }

    /// Creates informers without any watch. They only read, so they need no Lease.
    pub fn informers(&self) -> Informers {
        let (client, leadership) = (self.client.clone(), self.leadership.clone());
        let metrics = self.metrics.clone();
        Informers {
            teller: UnreadableReporter::new(
                client,
                self.manager,
                &self.instance,
                leadership,
                metrics,
            ),
            client: self.client.clone(),
            syncing: None,
            namespaces: self.namespaces.clone(),
            tasks: JoinSet::new(),
            synced: Vec::new(),
        }
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
        let syncing = Some(Syncing::new(&self.health));
        let informers = Informers { syncing, ..self.informers() };
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

impl Syncing {
    fn new(health: &Health) -> Self {
        let check = health.readiness("caches");
        check.pass();
        Self { check, kinds: Arc::default() }
    }

    /// Names the kind in the check until its first list has arrived.
    fn follow<K: Watchable>(
        self,
        cache: Arc<Cache<K>>,
    ) -> impl Future<Output = Result<()>> + Send + 'static {
        let kind = cache.kind();
        self.change(|it| {
            it.insert(kind.clone());
        });
        async move {
            cache.synced().await;
            self.change(|it| {
                it.remove(&kind);
            });
            // A task that ends counts as a failure, so this one must not return.
            std::future::pending().await
        }
    }

    fn change(&self, change: impl FnOnce(&mut BTreeSet<String>)) {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut kinds);
        if kinds.is_empty() {
            self.check.pass();
        } else {
            let names: Vec<&str> = kinds.iter().map(String::as_str).collect();
            self.check.fail(format!("not listed yet: {}", names.join(", ")));
        }
    }
}

impl Manager {
    /// Returns the leadership term; every term is unique.
    pub fn term(&self) -> &str {
        &self.term
    }

    /// Watches a kind; `labels` is a label selector, empty selects all.
    pub fn watch<K: Watchable>(&mut self, cache: &Arc<Cache<K>>, labels: &str) {
        self.informers.watch(cache, labels);
    }

    /// Watches all objects of a kind whose status this operator writes.
    pub fn watch_owned<K: Watchable>(&mut self, cache: &Arc<Cache<K>>) {
        self.informers.watch_owned(cache);
    }

    /// Returns the informers that the controllers rely on.
    pub fn informers(&mut self) -> &mut Informers {
        &mut self.informers
    }

    /// Runs a controller once every watch has delivered its first list.
    pub async fn run<C: Controller>(
        &mut self,
        controller: C,
        api: Arc<Api>,
        queue: Arc<WorkQueue>,
    ) {
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
        self.informers.tasks.spawn(task);
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

impl Informers {
    /// Watches a kind; `labels` is a label selector, empty selects all.
    pub fn watch<K: Watchable>(&mut self, cache: &Arc<Cache<K>>, labels: &str) {
        self.watch_as(cache, labels, Role::Reader);
    }

    /// Watches all objects of a kind whose status this operator writes.
    pub fn watch_owned<K: Watchable>(&mut self, cache: &Arc<Cache<K>>) {
        self.watch_as(cache, "", Role::Owner);
    }

    fn watch_as<K: Watchable>(&mut self, cache: &Arc<Cache<K>>, labels: &str, role: Role) {
        let scope = Scope { namespaces: self.namespaces.clone(), labels: labels.to_owned() };
        let watching = Arc::clone(cache).watch(self.client.clone(), scope);
        self.tasks.spawn(async move {
            watching.await;
            Err(Error::Process { what: "a watch ended".into(), source: None })
        });
        let telling = self.teller.clone().report(Arc::clone(cache), role);
        self.tasks.spawn(async move {
            telling.await;
            Err(Error::Process {
                what: "the telling of unreadable objects ended".into(),
                source: None,
            })
        });
        if let Some(syncing) = &self.syncing {
            self.tasks.spawn(syncing.clone().follow(Arc::clone(cache)));
        }
        let cache = Arc::clone(cache);
        self.synced.push(Box::pin(async move { cache.synced().await }));
    }

    /// Resolves once every watch has delivered its first list.
    pub async fn ready(&mut self) {
        while let Some(synced) = self.synced.last_mut() {
            synced.await;
            self.synced.pop();
        }
    }

    /// Resolves when a watch or one of its tasks ends, which none should.
    pub async fn end(&mut self) -> Result<()> {
        match self.tasks.join_next().await {
            Some(Ok(outcome)) => outcome,
            Some(Err(error)) => Err(Error::process("a task panicked", error)),
            None => Ok(()),
        }
    }
}
