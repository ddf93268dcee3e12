//! Which failed attempts are tried again by themselves, and after which pauses.

use std::time::Duration;

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
