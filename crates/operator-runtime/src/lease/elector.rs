//! One replica's view of an election, without requests and clocks: the task and the tests drive it.

use std::time::Duration;

use super::election::{LeaseView, Seen, Step, Timing, next};

/// What one process knows and claims; times are since any fixed moment of its own clock.
#[derive(Clone, Debug)]
pub struct Elector {
    me: String,
    timing: Timing,
    record: Option<LeaseView>,
    changed: Duration,
    /// When our last write that is known to have succeeded was sent.
    renewed: Option<Duration>,
    until: Option<Duration>,
    stopping: bool,
}

impl Elector {
    /// A process that knows nothing yet; `me` is unique per process.
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

    /// Takes in an answer to a read.
    pub fn observed(&mut self, record: Option<LeaseView>, now: Duration) {
        if record != self.record {
            self.record = record;
            self.changed = now;
        }
        if !self.holds() {
            self.until = None;
        }
    }

    /// Takes in the success of a write that was sent at `sent`.
    pub fn wrote(&mut self, record: LeaseView, sent: Duration) {
        self.record = Some(record);
        // Others may have seen the record from the moment on at which it was sent.
        self.changed = sent;
        self.renewed = Some(sent);
        self.until = self.holds().then_some(sent + self.timing.deadline);
    }

    /// The term ran out; only an answered write begins it again.
    pub fn expired(&mut self) {
        self.until = None;
    }

    /// The process ends: the next step of a holder is to release.
    pub fn stop(&mut self) {
        self.stopping = true;
        self.until = None;
    }

    /// The next step.
    pub fn step(&self, now: Duration) -> Step {
        // A record of ours that we only read may be the work of a write whose answer was lost: it
        // is written again, for only an answered write prolongs the term.
        let since = if self.holds() { self.renewed } else { Some(self.changed) };
        let since_change = since.map_or(Duration::MAX, |it| now.saturating_sub(it));
        let seen = Seen { lease: self.record.as_ref(), since_change, stopping: self.stopping };
        next(&seen, &self.me, &self.timing)
    }

    /// The record that a step writes; nothing for a step that writes nothing.
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

    /// The term, and when it ends unless renewed.
    pub fn claim(&self) -> Option<(String, Duration)> {
        let transitions = self.record.as_ref()?.transitions;
        Some((format!("{}/{transitions}", self.me), self.until?))
    }

    /// Whether this process holds the Lease, as far as it knows.
    pub fn holds(&self) -> bool {
        self.record.as_ref().and_then(|it| it.holder.as_deref()) == Some(&self.me)
    }
}
