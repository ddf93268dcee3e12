//! When audits begin: at equal intervals, each scope at a time of its own.

use jiff::{SignedDuration, Timestamp};
use operator_core::hash;

/// Returns when the present interval of a scope began. `uid` is that of the scope's object: it alone
/// decides where in the interval audits begin, so that those of many roles are spread over it.
pub fn slot_start(interval: SignedDuration, uid: &str, now: Timestamp) -> Timestamp {
    let length = interval.as_secs().max(1);
    let digest = hash::of_bytes(uid);
    let number = i64::from_str_radix(&digest[..15], 16).unwrap_or_default();
    let elapsed = (now.as_second() - number % length).rem_euclid(length);
    Timestamp::from_second(now.as_second() - elapsed).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn an_interval_begins_at_equal_distances_wherever_it_is_asked_from() {
        let hour = SignedDuration::from_hours(1);
        let start = slot_start(hour, "u", at("2026-01-01T12:00:00Z"));
        for seconds in [0, 1, 1800, 3599] {
            let now = start + SignedDuration::from_secs(seconds);
            assert_eq!(slot_start(hour, "u", now), start);
        }
        assert_eq!(slot_start(hour, "u", start + hour), start + hour);
    }

    #[test]
    fn many_scopes_begin_at_many_times() {
        let now = at("2026-01-01T12:00:00Z");
        let day = SignedDuration::from_hours(24);
        let mut per_hour = [0; 24];
        for index in 0..2400 {
            let start = slot_start(day, &format!("uid-{index}"), now);
            let hours = now.duration_since(start).as_hours();
            per_hour[usize::try_from(hours).unwrap()] += 1;
        }
        assert!(per_hour.iter().all(|it| (60..140).contains(it)), "{per_hour:?}");
    }
}
