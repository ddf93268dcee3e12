//! The pure decision of an election: what a replica does with the Lease it sees.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;

/// The fields of a Lease that the election uses.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LeaseView {
    /// The current holder; `None` after a release.
    pub holder: Option<String>,
    /// How long other replicas wait after the last change of the record.
    pub duration: Duration,
    /// Number of changes of the holder.
    pub transitions: i32,
    /// The resource version, used as optimistic lock; it changes with the record.
    pub resource_version: String,
}

impl LeaseView {
    /// Extracts the view from a Lease object.
    pub fn of(lease: &Lease) -> Self {
        let spec = lease.spec.as_ref();
        let seconds = spec.and_then(|it| it.lease_duration_seconds).unwrap_or_default();
        Self {
            holder: spec.and_then(|it| it.holder_identity.clone()).filter(|it| !it.is_empty()),
            duration: Duration::from_secs(u64::try_from(seconds).unwrap_or_default()),
            transitions: spec.and_then(|it| it.lease_transitions).unwrap_or_default(),
            resource_version: lease.metadata.resource_version.clone().unwrap_or_default(),
        }
    }
}

/// The timing of an election.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long other replicas wait after the last change of the record.
    pub lease: Duration,
    /// Interval at which the leader renews; it determines the write rate, as followers do not
    /// write.
    pub renew: Duration,
    /// Interval at which a follower reads, and the delay after a failed request.
    pub retry: Duration,
    /// How long a leader leads after sending its last successful write; less than `lease`.
    pub deadline: Duration,
    /// Time limit of one request of the election; several fit into the deadline.
    pub request: Duration,
}

impl Timing {
    /// Derives the timing from the Lease duration.
    pub fn of(lease: Duration) -> Self {
        Self {
            lease,
            renew: lease / 3,
            retry: lease / 15,
            deadline: lease * 2 / 3,
            request: lease * 2 / 15,
        }
    }
}

/// What a replica does next with the Lease.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// Write ourselves as the new holder.
    Acquire,
    /// Write a new renewal time.
    Renew,
    /// Look again after that time.
    Wait(Duration),
    /// Clear the holder, because the process ends.
    Release,
}

/// What one replica knows of the Lease.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The record; `None` when there is no Lease yet.
    pub lease: Option<&'a LeaseView>,
    /// Time since the record was first seen in its current form, by this process's own clock.
    pub since_change: Duration,
    /// Whether the process is shutting down.
    pub stopping: bool,
}

/// Returns the next step of the replica `me`.
///
/// # Guarantees
/// Another replica's record is taken over only after it did not change for its whole duration,
/// measured locally: the times in the record are never compared with a local clock.
///
/// # Assumptions
/// `me` is unique per process, not only per replica.
pub fn next(seen: &Seen<'_>, me: &str, timing: &Timing) -> Step {
    let holder = seen.lease.and_then(|it| it.holder.as_deref());
    match (holder, seen.lease) {
        (Some(holder), _) if holder == me => {
            if seen.stopping {
                return Step::Release;
            }
            match timing.renew.checked_sub(seen.since_change) {
                None | Some(Duration::ZERO) => Step::Renew,
                Some(rest) => Step::Wait(rest),
            }
        }
        _ if seen.stopping => Step::Wait(timing.retry),
        (Some(_), Some(lease)) => match lease.duration.checked_sub(seen.since_change) {
            None | Some(Duration::ZERO) => Step::Acquire,
            Some(rest) => Step::Wait(rest.min(timing.retry)),
        },
        _ => Step::Acquire,
    }
}
