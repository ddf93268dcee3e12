//! Which caches admission is answered from: every replica has some, whether it leads or not.

use tokio::sync::watch;

use crate::admin::Check;
use crate::error::Result;
use crate::manager::{Informers, ManagerBuilder};
use crate::shutdown::Shutdown;

#[derive(Clone)]
enum Stage<C> {
    /// Nothing was read yet.
    Nothing,
    /// Caches of a replica's own, for as long as it does not lead.
    StandingBy(C),
    /// The controllers' own.
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
    /// The caches, once their first lists have arrived.
    pub fn now(&self) -> Option<C> {
        match &*self.0.borrow() {
            Stage::Nothing => None,
            Stage::StandingBy(caches) | Stage::Leading(caches) => Some(caches.clone()),
        }
    }

    /// Answers from the controllers' caches from now on, which are filled.
    pub fn lead(&self, caches: C) {
        self.0.send_replace(Stage::Leading(caches));
    }

    /// Answers from these until the replica leads.
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

/// Keeps caches of this replica's own, whose watches `open` opens, until it leads; the check passes
/// once anything is known.
///
/// # Guarantees
/// There is no gap: the replica's own caches end only after the controllers' have taken their place.
pub async fn stand_by<C: Clone>(
    builder: ManagerBuilder,
    known: AdmissionCache<C>,
    caches: C,
    open: fn(&C, &mut Informers),
    ready: Check,
    mut stop: Shutdown,
) -> Result<()> {
    let mut informers = builder.informers();
    open(&caches, &mut informers);
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
