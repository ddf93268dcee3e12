//! The caches that admission requests are answered from; every replica has some, leading or not.

use tokio::sync::watch;

use crate::admin::Check;
use crate::cache_registry::CacheRegistry;
use crate::error::Result;
use crate::manager::ManagerBuilder;
use crate::shutdown::Shutdown;

#[derive(Clone)]
enum Stage<C> {
    /// Nothing has been read yet.
    Nothing,
    /// The replica's own caches, used while it does not lead.
    StandingBy(C),
    /// The controllers' caches.
    Leading(C),
}

/// The caches that admission is answered from; clones share them.
pub struct AdmissionCache<C>(watch::Sender<Stage<C>>);

impl<C> Clone for AdmissionCache<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> Default for AdmissionCache<C> {
    fn default() -> Self {
        Self(watch::Sender::new(Stage::Nothing))
    }
}

impl<C: Clone> AdmissionCache<C> {
    /// Returns the caches, or `None` before their first lists have arrived.
    pub fn now(&self) -> Option<C> {
        match &*self.0.borrow() {
            Stage::Nothing => None,
            Stage::StandingBy(caches) | Stage::Leading(caches) => Some(caches.clone()),
        }
    }

    /// Switches to the controllers' caches, which must be filled.
    pub fn lead(&self, caches: C) {
        self.0.send_replace(Stage::Leading(caches));
    }

    /// Uses these caches until the replica leads.
    fn stand_by(&self, caches: C) {
        self.0.send_if_modified(|stage| {
            let is_first = matches!(stage, Stage::Nothing);
            if is_first {
                *stage = Stage::StandingBy(caches);
            }
            is_first
        });
    }

    async fn leads(&self) {
        let mut stages = self.0.subscribe();
        // The sender lives as long as `self`, so the wait cannot fail.
        let _ = stages.wait_for(|it| matches!(it, Stage::Leading(_))).await;
    }
}

/// Runs the replica's own informers, started by `open`, until it leads. The check passes once any
/// caches are filled.
///
/// # Guarantees
/// There is no gap: the replica's own informers stop only after the controllers' caches have
/// replaced them.
pub async fn stand_by<C: Clone>(
    builder: ManagerBuilder,
    known: AdmissionCache<C>,
    caches: C,
    registry: CacheRegistry,
    ready: Check,
    mut stop: Shutdown,
) -> Result<()> {
    let mut informers = builder.informers();
    registry.watch(&mut informers);
    ready.fail("what admission is answered from has not been read yet");
    let standing_by = async {
        informers.ready().await;
        known.stand_by(caches);
        ready.pass();
        informers.end().await
    };
    tokio::select! {
        outcome = standing_by => return outcome,
        () = known.leads() => ready.pass(),
        () = stop.requested() => return Ok(()),
    }
    drop(informers);
    stop.requested().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_controllers_caches_replace_a_replicas_own_and_stay() {
        let known = AdmissionCache::default();
        assert!(known.now().is_none());
        known.stand_by("own");
        assert_eq!(known.now(), Some("own"));
        known.lead("leading");
        known.leads().await;
        known.stand_by("own");
        assert_eq!(known.now(), Some("leading"));
    }
}
