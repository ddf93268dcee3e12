//! The judgement of an election: what a replica does with the Lease that it sees.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;

/// What the election needs of a Lease.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LeaseView {
    /// Who holds it; `None` once it was released.
    pub holder: Option<String>,
    /// How long others wait after the record last changed.
    pub duration: Duration,
    /// How often the holder changed.
    pub transitions: i32,
    /// Optimistic lock; it changes with the record.
    pub resource_version: String,
}

impl LeaseView {
    /// The view of an object.
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

/// The times of an election.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long others wait after the record last changed.
    pub lease: Duration,
    /// How often the leader renews: this, not the followers, makes the writes.
    pub renew: Duration,
    /// How often a follower looks, and the pause after a failed request.
    pub retry: Duration,
    /// How long a leader leads after the start of its last successful write; below `lease`.
    pub deadline: Duration,
    /// How long one request of the election may take: several fit into the deadline.
    pub request: Duration,
}

impl Timing {
    /// The times of an election with a Lease of that duration.
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

/// What to do with the Lease now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// Write ourselves in as the new holder.
    Acquire,
    /// Write a new time of renewal.
    Renew,
    /// Look again after that time.
    Wait(Duration),
    /// Write the holder out: the process ends.
    Release,
}

/// What one replica knows of the Lease.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The record; `None` where there is no Lease yet.
    pub lease: Option<&'a LeaseView>,
    /// How long ago, by this process's own clock, the record was first seen as it is now.
    pub since_change: Duration,
    /// Whether the process ends.
    pub stopping: bool,
}

/// The next step of the replica called `me`.
///
/// # Guarantees
/// Another replica's record is taken over only after it did not change for its whole duration,
/// measured here: the times written in the record are never compared with a local clock.
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
