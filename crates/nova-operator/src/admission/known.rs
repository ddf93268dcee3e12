//! Which caches admission is answered from: every replica has some, whether it leads or not.

use shell::admin::Check;
use shell::error::Result;
use shell::leader::Candidate;
use shell::runtime::Shutdown;
use tokio::sync::watch;

use crate::watched::Watched;

#[derive(Clone, Default)]
enum Stage {
    /// Nothing was read yet.
    #[default]
    Nothing,
    /// Caches of a replica's own, for as long as it does not lead.
    StandingBy(Watched),
    /// The controllers' own.
    Leading(Watched),
}

/// The caches that admission is answered from; clones share them.
#[derive(Clone, Default)]
pub struct Known(watch::Sender<Stage>);

impl Known {
    /// The caches, once their first lists have arrived.
    pub fn now(&self) -> Option<Watched> {
        match &*self.0.borrow() {
            Stage::Nothing => None,
            Stage::StandingBy(watched) | Stage::Leading(watched) => Some(watched.clone()),
        }
    }

    /// Answers from the controllers' caches from now on, which are filled.
    pub fn lead(&self, watched: Watched) {
        self.0.send_replace(Stage::Leading(watched));
    }

    /// Answers from these until the replica leads.
    fn stand_by(&self, watched: Watched) {
        self.0.send_if_modified(|stage| {
            let is_first = matches!(stage, Stage::Nothing);
            if is_first {
                *stage = Stage::StandingBy(watched);
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

/// Keeps caches of this replica's own until it leads; the check passes once anything is known.
///
/// # Guarantees
/// There is no gap: the replica's own caches end only after the controllers' have taken their place.
pub async fn stand_by(
    candidate: Candidate,
    known: Known,
    ready: Check,
    mut stop: Shutdown,
) -> Result<()> {
    let caches = Watched::new();
    let mut watches = candidate.watches();
    caches.watch(&mut watches);
    ready.fail("the computes have not been read yet");
    let standing_by = async {
        watches.ready().await;
        known.stand_by(caches);
        ready.pass();
        watches.end().await
    };
    tokio::select! {
        outcome = standing_by => return outcome,
        () = known.leads() => ready.pass(),
        () = stop.requested() => return Ok(()),
    }
    drop(watches);
    stop.requested().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(known: &Known, watched: &Watched) -> bool {
        known.now().is_some_and(|it| std::sync::Arc::ptr_eq(&it.nodes, &watched.nodes))
    }

    #[tokio::test]
    async fn the_controllers_caches_replace_a_replicas_own_and_stay() {
        let known = Known::default();
        assert!(known.now().is_none());
        let (own, leading) = (Watched::new(), Watched::new());
        known.stand_by(own.clone());
        assert!(is(&known, &own));
        known.lead(leading.clone());
        known.leads().await;
        known.stand_by(own);
        assert!(is(&known, &leading));
    }
}
