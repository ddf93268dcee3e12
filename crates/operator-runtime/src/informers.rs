//! Informers: one watch per kind and namespace, which fills a cache.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use kube::Client;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::admin::{Check, Health};
use crate::cache::{Cache, Scope, Watchable, WriteThrough as _};
use crate::error::{Error, Result};
use crate::unreadable::{Role, UnreadableReporter};

/// Watches in the operator's namespaces and the tasks that rely on them; all stop when it is
/// dropped.
pub struct Informers {
    client: Client,
    reporter: UnreadableReporter,
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
        let mut kinds = self.kinds.lock();
        change(&mut kinds);
        if kinds.is_empty() {
            self.check.pass();
        } else {
            let names: Vec<&str> = kinds.iter().map(String::as_str).collect();
            self.check.fail(format!("not listed yet: {}", names.join(", ")));
        }
    }
}

impl Informers {
    /// Creates informers in these namespaces, empty for all, without any watch; `reporter` reports
    /// objects that cannot be read.
    pub(crate) fn new(
        client: Client,
        namespaces: Vec<String>,
        reporter: UnreadableReporter,
    ) -> Self {
        let (tasks, synced) = (JoinSet::new(), Vec::new());
        Self { client, reporter, syncing: None, namespaces, tasks, synced }
    }

    /// Adds a readiness check that names the kinds whose first list is missing.
    pub(crate) fn with_readiness(self, health: &Health) -> Self {
        Self { syncing: Some(Syncing::new(health)), ..self }
    }

    /// Spawns a task that ends with the informers; it must not end by itself.
    pub(crate) fn spawn<F>(&mut self, task: F)
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        self.tasks.spawn(task);
    }

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
        let reporting = self.reporter.clone().report(Arc::clone(cache), role);
        self.tasks.spawn(async move {
            reporting.await;
            Err(Error::Process {
                what: "the reporting of unreadable objects ended".into(),
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
