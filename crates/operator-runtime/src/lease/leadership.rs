//! The leadership state of this process and its term.

use tokio::{sync::watch, time::Instant};

/// Whether this process may write.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Leadership {
    /// Another process leads, or none.
    #[default]
    Following,
    /// This process leads.
    Leading {
        /// Holder and number of transitions: unique for each time that a process became leader.
        term: String,
        /// When the term ends unless renewed; `None` without election.
        until: Option<Instant>,
    },
}

impl Leadership {
    /// Returns the term in which this process may write now. It is checked against the clock, so
    /// that a process that was suspended does not trust its last known state.
    pub fn term(&self) -> Option<&str> {
        match self {
            Self::Leading { term, until } if until.is_none_or(|it| Instant::now() < it) => {
                Some(term)
            }
            Self::Leading { .. } | Self::Following => None,
        }
    }

    /// Returns whether this process may write now.
    pub fn leads(&self) -> bool {
        self.term().is_some()
    }
}

/// The channel that publishes [`Leadership`]: receivers are notified when a term begins or ends,
/// not at renewals.
pub type LeadershipWatch = watch::Receiver<Leadership>;

/// Waits until this process leads, and returns the term; `None` when the election ended, or the
/// term expired meanwhile.
pub async fn leading(watch: &mut LeadershipWatch) -> Option<String> {
    let seen = watch.wait_for(Leadership::leads).await.ok()?;
    seen.term().map(ToOwned::to_owned)
}
