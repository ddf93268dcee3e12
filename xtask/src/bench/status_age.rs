//! How old the statuses of objects became, read from the audit log.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

const DAY: Duration = Duration::from_hours(24);

/// When objects were created, and when operators wrote their statuses; by resource and name. Times
/// are those of the day, in UTC: no phase lasts a day.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct StatusWrites {
    created: BTreeMap<(String, String), Duration>,
    written: BTreeMap<(String, String), Vec<Duration>>,
}

/// How long a user waited for the status of an object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct StatusAge {
    /// From its creation, or the start of the phase, to its first status.
    first: Duration,
    /// The longest time between a status and the next one.
    longest: Duration,
}

impl StatusWrites {
    /// Takes in a completed request of an operator, or of another client.
    pub(super) fn count(&mut self, operator: Option<&str>, event: &Value) {
        let reference = &event["objectRef"];
        let text = |name: &str| reference[name].as_str().unwrap_or_default().to_owned();
        let code = event["responseStatus"]["code"].as_u64().unwrap_or_default();
        let time = event["stageTimestamp"].as_str().and_then(time_of_day);
        let Some(time) = time.filter(|_| event["stage"] == "ResponseComplete" && code < 300) else {
            return;
        };
        let object = (text("resource"), text("name"));
        match (event["verb"].as_str().unwrap_or_default(), text("subresource").as_str()) {
            ("create", "") => drop(self.created.insert(object, time)),
            ("patch" | "update", "status") if operator.is_some() => {
                self.written.entry(object).or_default().push(time);
            }
            _ => {}
        }
    }

    /// Returns the worst ages among the statuses of a resource in a phase that began at this time of
    /// the day; `None` when no operator wrote one.
    pub(super) fn age(&self, resource: &str, begun: Duration) -> Option<StatusAge> {
        let written = self.written.iter().filter(|((it, _), _)| it == resource);
        let ages = written.filter_map(|(object, times)| {
            let begun = self.created.get(object).copied().unwrap_or(begun);
            let between = times.windows(2).map(|it| from_to(it[0], it[1]));
            Some(StatusAge {
                first: from_to(begun, *times.first()?),
                longest: between.max().unwrap_or_default(),
            })
        });
        ages.reduce(|a, b| StatusAge {
            first: a.first.max(b.first),
            longest: a.longest.max(b.longest),
        })
    }
}

impl StatusAge {
    /// Returns the seconds to the first status.
    pub(super) fn first(&self) -> f64 {
        self.first.as_secs_f64()
    }

    /// Returns the most seconds from one status to the next.
    pub(super) fn longest(&self) -> f64 {
        self.longest.as_secs_f64()
    }

    /// Returns both as JSON.
    pub(super) fn as_json(&self) -> Value {
        json!({ "firstSeconds": self.first(), "longestSeconds": self.longest() })
    }
}

/// Returns the present time of the day.
pub(super) fn now() -> Duration {
    let since_1970 = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    Duration::new(since_1970.as_secs() % DAY.as_secs(), since_1970.subsec_nanos())
}

/// Returns the time of the day in a timestamp such as `2026-11-29T08:44:12.123456Z`.
fn time_of_day(timestamp: &str) -> Option<Duration> {
    let (_, time) = timestamp.strip_suffix('Z')?.split_once('T')?;
    let (hours, rest) = time.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':')?;
    let whole = hours.parse::<u64>().ok()? * 3600 + minutes.parse::<u64>().ok()? * 60;
    let seconds = Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?;
    Some(Duration::from_secs(whole) + seconds)
}

/// Returns the time from one time of the day to a later one, maybe on the next day.
fn from_to(from: Duration, to: Duration) -> Duration {
    to.checked_sub(from).unwrap_or_else(|| (to + DAY).saturating_sub(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLES: &str = "openstackdataplaneroles";

    fn event(verb: &str, subresource: &str, time: &str, code: u64) -> Value {
        json!({
            "stage": "ResponseComplete", "verb": verb, "responseStatus": { "code": code },
            "stageTimestamp": format!("2026-11-29T{time}Z"),
            "objectRef": { "resource": ROLES, "name": "x", "subresource": subresource },
        })
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn the_age_of_a_status_is_read_from_the_times_at_which_operators_wrote_it() {
        let mut writes = StatusWrites::default();
        let of = Some("dataplane-operator");
        writes.count(None, &event("create", "", "08:00:00.500000", 201));
        assert_eq!(writes.age(ROLES, seconds(0)), None);
        // Neither a user, nor a failed write, nor one of something else makes a status.
        writes.count(None, &event("patch", "status", "08:00:01.000000", 200));
        writes.count(of, &event("patch", "status", "08:00:01.000000", 409));
        writes.count(of, &event("patch", "", "08:00:01.000000", 200));
        for time in ["08:00:02.000000", "08:00:03.000000", "08:00:07.250000", "08:00:08.000000"] {
            writes.count(of, &event("patch", "status", time, 200));
        }
        let age = writes.age(ROLES, seconds(8 * 3600)).unwrap();
        assert_eq!((age.first(), age.longest()), (1.5, 4.25));
        assert_eq!(writes.age("others", seconds(0)), None);
        // Of several objects the oldest statuses count.
        let mut other = event("patch", "status", "08:00:10.500000", 200);
        other["objectRef"]["name"] = json!("y");
        writes.count(of, &other);
        let age = writes.age(ROLES, seconds(8 * 3600)).unwrap();
        assert_eq!((age.first(), age.longest()), (10.5, 4.25));
    }

    #[test]
    fn an_object_of_an_earlier_phase_is_as_old_as_the_phase() {
        let mut writes = StatusWrites::default();
        writes.count(Some("nova-operator"), &event("update", "status", "00:00:01.000000", 200));
        let age = writes.age(ROLES, DAY.saturating_sub(seconds(2))).unwrap();
        assert_eq!((age.first(), age.longest()), (3.0, 0.0));
    }

    #[test]
    fn times_of_the_day_are_read_as_the_api_server_writes_them() {
        let found = time_of_day("2026-11-29T08:44:12.123456Z").map(|it| it.as_micros());
        assert_eq!(found, Some(31_452_123_456));
        assert_eq!(time_of_day("2026-11-29T08:44:12+01:00"), None);
        assert_eq!(time_of_day("08:44"), None);
        assert!(now() < DAY);
    }
}
