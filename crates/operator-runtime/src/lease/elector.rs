//! One replica's view of an election, without requests or clocks, so that tests can drive it too.

use std::time::Duration;

use super::election::{LeaseView, Seen, Step, Timing, next};

/// The state of one process in an election. Times are relative to any fixed moment of its own
/// clock.
#[derive(Clone, Debug)]
pub struct Elector {
    me: String,
    timing: Timing,
    record: Option<LeaseView>,
    changed: Duration,
    /// When the last write that is known to have succeeded was sent.
    renewed: Option<Duration>,
    until: Option<Duration>,
    stopping: bool,
}

impl Elector {
    /// Creates an elector without any knowledge of the Lease; `me` must be unique per process.
    pub fn new(me: impl Into<String>, timing: Timing) -> Self {
        let me = me.into();
        Self {
            me,
            timing,
            record: None,
            changed: Duration::ZERO,
            renewed: None,
            until: None,
            stopping: false,
        }
    }

    /// Records the response to a read.
    pub fn observed(&mut self, record: Option<LeaseView>, now: Duration) {
        if record != self.record {
            self.record = record;
            self.changed = now;
        }
        if !self.is_holder() {
            self.until = None;
        }
    }

    /// Records the success of a write that was sent at `sent`.
    pub fn wrote(&mut self, record: LeaseView, sent: Duration) {
        self.record = Some(record);
        // Other replicas may have seen the record from the time it was sent.
        self.changed = sent;
        self.renewed = Some(sent);
        self.until = self.is_holder().then_some(sent + self.timing.deadline);
    }

    /// Ends the term; only another successful write starts it again.
    pub fn expired(&mut self) {
        self.until = None;
    }

    /// Begins the shutdown: the next step of a holder is to release.
    pub fn stop(&mut self) {
        self.stopping = true;
        self.until = None;
    }

    /// Returns the next step.
    pub fn step(&self, now: Duration) -> Step {
        // A record of ours that was only read may come from a write whose response was lost. It is
        // written again, because only a confirmed write extends the term.
        let since = if self.is_holder() { self.renewed } else { Some(self.changed) };
        let since_change = since.map_or(Duration::MAX, |it| now.saturating_sub(it));
        let seen = Seen { lease: self.record.as_ref(), since_change, stopping: self.stopping };
        next(&seen, &self.me, &self.timing)
    }

    /// Returns the record that a step writes, or `None` for a step that writes nothing.
    pub fn record_for(&self, step: Step) -> Option<LeaseView> {
        let before = self.record.as_ref();
        let transitions = before.map_or(0, |it| it.transitions);
        let (holder, transitions) = match step {
            Step::Acquire if before.is_some() => (Some(self.me.clone()), transitions + 1),
            Step::Acquire | Step::Renew => (Some(self.me.clone()), transitions),
            Step::Release => (None, transitions),
            Step::Wait(_) => return None,
        };
        let resource_version = before.map(|it| it.resource_version.clone()).unwrap_or_default();
        Some(LeaseView { holder, duration: self.timing.lease, transitions, resource_version })
    }

    /// Returns the term and when it ends unless renewed, or `None` when this process does not lead.
    pub fn claim(&self) -> Option<(String, Duration)> {
        let transitions = self.record.as_ref()?.transitions;
        Some((format!("{}/{transitions}", self.me), self.until?))
    }

    /// Returns whether this process holds the Lease, as far as it knows.
    pub fn is_holder(&self) -> bool {
        self.record.as_ref().and_then(|it| it.holder.as_deref()) == Some(&self.me)
    }
}
