//! The requests of an election: one task, and a channel that publishes the leadership.

use std::time::Duration;

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{Api, Client, api::PostParams};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, sleep_until, timeout},
};
use tracing::{debug, info, warn};

use super::election::{LeaseView, Step, Timing};
use super::elector::Elector;
use super::leadership::{Leadership, LeadershipWatch};
use crate::{
    clock,
    error::{During as _, Error, Result},
    shutdown::Shutdown,
};

/// Takes part in the election of `namespace/name` as `me` until the process shuts down.
///
/// # Guarantees
/// [`Leadership::term`] is `Some` in at most one process at a time, provided that no other client
/// edits or deletes the Lease and that clock rates differ by less than `(lease - deadline) /
/// lease`. A leader makes three writes per Lease duration; a follower only reads.
///
/// # Caveats
/// A write that was sent in time may take effect late: writes that must not do so carry a
/// resourceVersion or the term. The task ends only at shutdown; the holder of its handle must end
/// the process if it ends earlier.
pub fn elect(
    client: Client,
    lease: (&str, &str),
    timing: Timing,
    me: impl Into<String>,
    stop: Shutdown,
) -> (LeadershipWatch, JoinHandle<Result<()>>) {
    let (sender, receiver) = watch::channel(Leadership::Following);
    let (namespace, name) = lease;
    let task = Task {
        api: Api::namespaced(client, namespace),
        name: name.to_owned(),
        elector: Elector::new(me, timing),
        object: None,
        fresh: false,
        timing,
        started: Instant::now(),
        sender,
    };
    (receiver, tokio::spawn(task.run(stop)))
}

/// Leads without an election, for a single process.
pub fn always(me: &str, mut stop: Shutdown) -> (LeadershipWatch, JoinHandle<Result<()>>) {
    let leading = Leadership::Leading { term: format!("{me}/0"), until: None };
    let (sender, receiver) = watch::channel(leading);
    let task = tokio::spawn(async move {
        stop.requested().await;
        sender.send_replace(Leadership::Following);
        Ok(())
    });
    (receiver, task)
}

struct Task {
    api: Api<Lease>,
    name: String,
    elector: Elector,
    /// The object as last read or written.
    object: Option<Lease>,
    /// Whether `object` is what this process wrote last, as far as it knows.
    fresh: bool,
    timing: Timing,
    started: Instant,
    sender: watch::Sender<Leadership>,
}

impl Task {
    async fn run(mut self, mut stop: Shutdown) -> Result<()> {
        let mut pause = Duration::ZERO;
        loop {
            let expired = self.elector.claim().map(|(_, until)| self.started + until);
            tokio::select! {
                biased;
                () = stop.requested() => break,
                next = async { sleep(pause).await; self.step().await } => pause = next,
                // A term that expires is published at once, whatever request is in flight.
                () = sleep_until(expired.unwrap_or_else(Instant::now)), if expired.is_some() => {
                    warn!(lease = self.name, "the term ran out without a renewal");
                    self.elector.expired();
                    self.fresh = false;
                    pause = Duration::ZERO;
                }
            }
            self.publish();
        }
        self.release().await;
        Ok(())
    }

    /// Reads the Lease, writes it if due, and returns the delay until the next turn.
    async fn step(&mut self) -> Duration {
        if let Err(error) = self.advance().await {
            self.fresh = false;
            // Losing a race is normal in an election; the next turn reads who won.
            if error.is_conflict() {
                debug!(lease = self.name, "{}", error.chain());
            } else {
                warn!(lease = self.name, "{}", error.chain());
            }
            return self.timing.retry;
        }
        match self.elector.step(self.now()) {
            Step::Wait(pause) => pause,
            Step::Acquire | Step::Renew | Step::Release => self.timing.retry,
        }
    }

    async fn advance(&mut self) -> Result<()> {
        // The leader need not read: its optimistic lock detects other writers.
        if !(self.fresh && self.elector.is_holder()) {
            self.read().await?;
        }
        match self.elector.step(self.now()) {
            Step::Wait(_) => Ok(()),
            step @ (Step::Acquire | Step::Renew | Step::Release) => self.write(step).await,
        }
    }

    async fn read(&mut self) -> Result<()> {
        let what = format!("get leases/{}", self.name);
        let read = bounded(&what, self.timing.request, self.api.get_opt(&self.name)).await?;
        self.elector.observed(read.as_ref().map(LeaseView::of), self.now());
        self.object = read;
        self.fresh = true;
        Ok(())
    }

    async fn write(&mut self, step: Step) -> Result<()> {
        let Some(record) = self.elector.record_for(step) else { return Ok(()) };
        let what = format!("{step:?} leases/{}", self.name).to_lowercase();
        let lease = rendered(&self.name, self.object.clone(), &record, step);
        let sent = self.now();
        let params = PostParams::default();
        let written = if self.object.is_some() {
            bounded(&what, self.timing.request, self.api.replace(&self.name, &params, &lease))
                .await?
        } else {
            bounded(&what, self.timing.request, self.api.create(&params, &lease)).await?
        };
        self.elector.wrote(LeaseView::of(&written), sent);
        self.object = Some(written);
        self.fresh = true;
        Ok(())
    }

    /// Clears the holder, so that other replicas do not wait for a process that shut down cleanly.
    async fn release(&mut self) {
        self.elector.stop();
        self.publish();
        if !self.elector.is_holder() {
            return;
        }
        if let Err(error) = self.advance().await {
            info!(lease = self.name, "not released, it will run out: {}", error.chain());
        }
    }

    fn publish(&self) {
        let desired = match self.elector.claim() {
            Some((term, until)) => Leadership::Leading { term, until: Some(self.started + until) },
            None => Leadership::Following,
        };
        self.sender.send_if_modified(|current| {
            let wakes = !is_same_term(current, &desired);
            if wakes {
                info!(lease = self.name, "{}", described(&desired));
            }
            *current = desired;
            wakes
        });
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }
}

fn is_same_term(one: &Leadership, other: &Leadership) -> bool {
    match (one, other) {
        (Leadership::Following, Leadership::Following) => true,
        (Leadership::Leading { term: one, .. }, Leadership::Leading { term: other, .. }) => {
            one == other
        }
        _ => false,
    }
}

fn described(leadership: &Leadership) -> String {
    match leadership {
        Leadership::Following => "this process does not lead any more".into(),
        Leadership::Leading { term, .. } => format!("this process leads, term {term}"),
    }
}

/// Sends a request of the election with a time limit that leaves room for another attempt.
async fn bounded<T>(
    what: &str,
    after: Duration,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T> {
    match timeout(after, request).await {
        Ok(answer) => answer.during(what),
        Err(_) => Err(Error::Timeout { what: what.to_owned(), after }),
    }
}

/// Renders the Lease to write: the one that was read, with only the election's fields changed.
fn rendered(name: &str, seen: Option<Lease>, record: &LeaseView, step: Step) -> Lease {
    let mut lease = seen.unwrap_or_else(|| Lease {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: None,
    });
    let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
    let now = MicroTime(clock::now());
    if step == Step::Acquire {
        spec.acquire_time = Some(now.clone());
    }
    spec.renew_time = Some(now);
    spec.holder_identity = Some(record.holder.clone().unwrap_or_default());
    spec.lease_duration_seconds = i32::try_from(record.duration.as_secs()).ok();
    spec.lease_transitions = Some(record.transitions);
    lease
}
