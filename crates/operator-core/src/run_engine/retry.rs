//! Which failed attempts are retried, and with which backoff.

use std::time::Duration;

use api::dataplane::node::REDEPLOY;

/// Which failures are retried automatically.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Retries<'a> {
    /// Retries failures that can heal, without end; the others on request, by this command.
    Healing(&'a str),
    /// Retries everything except final failures, up to a number of attempts per service and host.
    Limited {
        /// The number of attempts.
        attempts: i64,
        /// What the user does after the last one.
        way_on: &'a str,
    },
}

/// Returns the command with which the user requests another attempt of every service on the host of
/// a node.
pub fn redeploy_command(namespace: &str, node: &str) -> String {
    format!(
        "kubectl annotate --overwrite -n {namespace} openstackdataplanenode/{node} \
         {REDEPLOY}=\"$(date +%s)\""
    )
}

/// Returns the backoff after the n-th failed attempt in a row (n ≥ 1).
///
/// It grows from 15 s to 60 s, stays there for about ten minutes, then grows to ten minutes,
/// without end. A host that returns within a usual repair is retried at once; one that stays away
/// costs little.
pub fn backoff(failures: i64) -> Duration {
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
            assert!(backoff(failures) >= backoff(failures - 1));
            assert!(backoff(failures).as_secs() <= 60);
            waited += backoff(failures).as_secs();
        }
        assert!((600..720).contains(&waited));
        assert_eq!(backoff(1_000_000).as_secs(), 600);
    }
}
