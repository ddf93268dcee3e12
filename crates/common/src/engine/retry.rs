//! When a failed attempt is tried again by itself.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::api::dataplane::service_run::ServiceRun;
use crate::engine::chain::Host;
use crate::engine::outcome::Reason;
use crate::engine::run::Run;

/// Which failures are tried again by themselves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Retries<'a> {
    /// Those of a class that heals, without end; the others on request, by this command.
    Healing(&'a str),
    /// All of them but what is final, until so many attempts of a service were made on a host.
    Limited {
        /// How many attempts there are.
        attempts: i64,
        /// What the human does after the last one.
        way_on: &'a str,
    },
}

/// When the failed attempt that a status records is followed by another: a time that has passed means
/// at once, `None` never.
pub(super) fn due(host: &Host<'_>, seen: &ServiceRun, runs: &[Run<'_>]) -> Option<Timestamp> {
    let reason = Reason::parse(seen.reason.as_deref().unwrap_or_default());
    let is_tried_again = match host.retries {
        Retries::Healing(_) => reason.heals_by_itself(),
        Retries::Limited { attempts, .. } => seen.attempt < attempts && !reason.is_final(),
    };
    if !is_tried_again {
        return None;
    }
    let has_new_secret = reason.heals_with_ssh_secret() && is_ssh_secret_new(host, seen, runs);
    let has_new_key = reason == Reason::HostKeyMismatch && is_host_key_new(host, seen, runs);
    if has_new_secret || has_new_key {
        return Some(Timestamp::MIN);
    }
    let pause = SignedDuration::try_from(pause(seen.failures)).unwrap_or_default();
    Some(seen.since.0.saturating_add(pause).unwrap_or(Timestamp::MAX))
}

/// Whether the ssh Secret differs from the one that the failed run used.
fn is_ssh_secret_new(host: &Host<'_>, seen: &ServiceRun, runs: &[Run<'_>]) -> bool {
    let (secret, version) = host.ssh_key;
    let run = runs.iter().find(|it| Some(it.name()) == seen.run);
    // A run that did not use this Secret at all used another one.
    run.is_some_and(|it| it.ssh_key_version(secret).is_none_or(|used| used != version))
}

/// Whether another key is trusted, or accepted, than in the failed run.
fn is_host_key_new(host: &Host<'_>, seen: &ServiceRun, runs: &[Run<'_>]) -> bool {
    let run = runs.iter().find(|it| Some(it.name()) == seen.run);
    run.is_some_and(|it| it.trusted(host.name) != host.trusted)
}

/// The pause after the n-th failed attempt in a row (n ≥ 1).
///
/// 15 s growing to 60 s for about ten minutes, then up to ten minutes, without end: a host that
/// comes back within the usual repair is met at once, one that stays away costs little.
pub fn pause(failures: i64) -> Duration {
    let seconds = match failures {
        ..=1 => 15,
        2 => 30,
        3..=12 => 60,
        13 => 120,
        14 => 240,
        15 => 480,
        _ => 600,
    };
    Duration::from_secs(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_below_a_minute_for_ten_minutes() {
        let mut waited = 0;
        for failures in 1..=12 {
            assert!(pause(failures) >= pause(failures - 1));
            assert!(pause(failures).as_secs() <= 60);
            waited += pause(failures).as_secs();
        }
        assert!((600..720).contains(&waited));
        assert_eq!(pause(1_000_000).as_secs(), 600);
    }
}
