//! How long requests to another service take, and what comes of them, counted however they end.

use std::time::{Duration, Instant};

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use crate::metrics::Metrics;

/// The result of a request that the caller abandoned, because callers have their own deadlines.
const GIVEN_UP: &str = "GivenUp";

/// The labels of a request, by name.
type Labels = Vec<(&'static str, String)>;

/// The metric of the requests to one service; clones share it.
#[derive(Clone, Debug)]
pub struct RequestTimes {
    family: Family<Labels, Histogram, fn() -> Histogram>,
    labels: fn(&str, &str) -> Labels,
}

impl RequestTimes {
    /// Registers the metric, with the labels that `labels` returns of a request's method and result.
    pub fn register(
        metrics: &Metrics,
        name: &str,
        help: &str,
        labels: fn(&str, &str) -> Labels,
    ) -> Self {
        let family = Family::new_with_constructor(histogram as fn() -> Histogram);
        metrics.register(name, help, family.clone());
        Self { family, labels }
    }

    /// Records a request; `result` is the error's word, or `Ok`.
    pub fn record(&self, method: &str, result: &str, took: Duration) {
        self.family.get_or_create(&(self.labels)(method, result)).observe(took.as_secs_f64());
    }
}

fn histogram() -> Histogram {
    // 10 ms to 82 s: some verbs of Ironic wait for a machine's management controller, and nova waits
    // for a cell that does not answer, for a minute at most.
    Histogram::new(exponential_buckets(0.01, 2.0, 14))
}

/// A request in progress.
#[derive(Debug)]
pub struct Timed<'a> {
    times: Option<&'a RequestTimes>,
    method: &'a str,
    begun: Instant,
    result: &'static str,
}

impl<'a> Timed<'a> {
    /// Starts the timer.
    pub fn begin(times: Option<&'a RequestTimes>, method: &'a str) -> Self {
        Self { times, method, begun: Instant::now(), result: GIVEN_UP }
    }

    /// Records that the request was answered with an error of that word, or without one.
    pub fn end(mut self, error: Option<&'static str>) {
        self.result = error.unwrap_or("Ok");
    }
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        if let Some(times) = self.times {
            times.record(self.method, self.result, self.begun.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_also_where_its_caller_gives_it_up() {
        let metrics = Metrics::new("test");
        let times =
            RequestTimes::register(&metrics, "request_seconds", "Requests", |method, result| {
                vec![("method", method.to_owned()), ("result", result.to_owned())]
            });
        Timed::begin(Some(&times), "GET").end(None);
        Timed::begin(Some(&times), "GET").end(Some("Busy"));
        drop(Timed::begin(Some(&times), "PUT"));
        let text = metrics.encode();
        for labels in [
            r#"method="GET",result="Ok""#,
            r#"method="GET",result="Busy""#,
            r#"method="PUT",result="GivenUp""#,
        ] {
            assert!(text.contains(&format!("edpm_request_seconds_count{{{labels}}} 1")), "{text}");
        }
    }
}
