//! Whether this process may write, and since which term.

use tokio::{sync::watch, time::Instant};

/// Whether this process may write.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Leadership {
    /// Another process leads, or nobody.
    #[default]
    Following,
    /// This process leads.
    Leading {
        /// Holder and number of transitions: unique for each time that anyone came to lead.
        term: String,
        /// When it ends unless renewed; `None` without election.
        until: Option<Instant>,
    },
}

impl Leadership {
    /// The term in which this process may write now; checked against the clock, so that a process
    /// that was stopped for a while does not trust what it knew before.
    pub fn term(&self) -> Option<&str> {
        match self {
            Self::Leading { term, until } if until.is_none_or(|it| Instant::now() < it) => {
                Some(term)
            }
            Self::Leading { .. } | Self::Following => None,
        }
    }

    /// Whether this process may write now.
    pub fn leads(&self) -> bool {
        self.term().is_some()
    }
}

/// Where [`Leadership`] is published: the receiver wakes when a term begins or ends, not at
/// renewals.
pub type LeadershipWatch = watch::Receiver<Leadership>;

/// Waits until this process leads; the term.
pub async fn leading(watch: &mut LeadershipWatch) -> Option<String> {
    let seen = watch.wait_for(Leadership::leads).await.ok()?;
    seen.term().map(ToOwned::to_owned)
}
