//! The metrics of an operator process, in the Prometheus text format.

use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
        info::Info,
    },
    registry::{Metric, Registry},
};

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct RequestLabels {
    verb: &'static str,
    resource: String,
    code: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct KindLabels {
    kind: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct FailureLabels {
    kind: String,
    reason: &'static str,
}

/// All metrics of one process; clones share them. Here are those that all operators have; each operator
/// registers its own ones.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Mutex<Registry>,
    requests: Family<RequestLabels, Counter>,
    reconciles: Family<KindLabels, Histogram, fn() -> Histogram>,
    failures: Family<FailureLabels, Counter>,
    queued: Family<KindLabels, Gauge>,
    unreadable: Family<KindLabels, Gauge>,
    leader: Gauge,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

fn reconcile_histogram() -> Histogram {
    // 1 ms to 16 s: a reconcile makes a few requests.
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

impl Metrics {
    /// Creates empty metrics for the operator of that name.
    pub fn new(operator: &str) -> Self {
        let mut registry = Registry::with_prefix("edpm");
        let requests = Family::default();
        let reconciles = Family::new_with_constructor(reconcile_histogram as fn() -> Histogram);
        let failures = Family::default();
        let queued = Family::default();
        let unreadable = Family::default();
        let leader = Gauge::default();
        registry.register("api_requests", "Requests to the API server", requests.clone());
        registry.register("reconcile_seconds", "Duration of reconciles", reconciles.clone());
        registry.register("reconcile_errors", "Failed reconciles", failures.clone());
        registry.register("workqueue_depth", "Objects that wait for a reconcile", queued.clone());
        let of_unreadable = "Objects that exist and cannot be read, which are left as they are";
        registry.register("unreadable_objects", of_unreadable, unreadable.clone());
        registry.register("leader", "1 where this process may write, else 0", leader.clone());
        let version = ("version", env!("CARGO_PKG_VERSION").to_owned());
        let build = Info::new(vec![("operator", operator.to_owned()), version]);
        registry.register("build", "The operator and its version", build);
        Self(Arc::new(Inner {
            registry: Mutex::new(registry),
            requests,
            reconciles,
            failures,
            queued,
            unreadable,
            leader,
        }))
    }

    /// Adds a metric that one operator alone has; its name gets the prefix `edpm_`.
    pub fn register(&self, name: &str, help: &str, metric: impl Metric) {
        self.0.registry.lock().register(name, help, metric);
    }

    /// Counts a request to the API server; `code` is the HTTP status, or a word when there was no
    /// response.
    pub fn count_request(&self, verb: &'static str, resource: &str, code: &str) {
        let labels = RequestLabels { verb, resource: resource.to_owned(), code: code.to_owned() };
        self.0.requests.get_or_create(&labels).inc();
    }

    /// Records the duration of a controller's reconcile, failed or not.
    pub fn reconciled(&self, kind: &str, took: Duration) {
        let labels = KindLabels { kind: kind.to_owned() };
        self.0.reconciles.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Counts a failed reconcile of a controller; `reason` is
    /// [`Error::reason`](crate::error::Error::reason).
    pub fn reconcile_failed(&self, kind: &str, reason: &'static str) {
        let labels = FailureLabels { kind: kind.to_owned(), reason };
        self.0.failures.get_or_create(&labels).inc();
    }

    /// Sets the number of objects that wait for a reconcile of a controller.
    pub fn queue_depth(&self, kind: &str, waiting: usize) {
        let labels = KindLabels { kind: kind.to_owned() };
        self.0.queued.get_or_create(&labels).set(i64::try_from(waiting).unwrap_or(i64::MAX));
    }

    /// Sets the number of objects of a kind that cannot be deserialized.
    pub fn unreadable(&self, kind: &str, objects: usize) {
        let labels = KindLabels { kind: kind.to_owned() };
        self.0.unreadable.get_or_create(&labels).set(i64::try_from(objects).unwrap_or(i64::MAX));
    }

    /// Sets whether this process may write.
    pub fn set_leader(&self, leads: bool) {
        self.0.leader.set(i64::from(leads));
    }

    /// Returns the number of requests of a verb on a resource, whatever their code.
    pub fn requests(&self, verb: &str, resource: &str) -> u64 {
        let desired = format!("edpm_api_requests_total{{verb=\"{verb}\",resource=\"{resource}\",");
        let text = self.encode();
        let counts = text.lines().filter(|it| it.starts_with(&desired));
        counts.filter_map(|it| it.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    /// Returns all metrics as text.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = text::encode(&mut text, &self.0.registry.lock());
        text
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_reconcile_is_counted_with_its_duration_and_the_word_of_its_failure() {
        let metrics = Metrics::new("test");
        metrics.reconciled("Node", Duration::from_millis(3));
        metrics.reconciled("Node", Duration::from_millis(3));
        metrics.reconcile_failed("Node", "Timeout");
        let text = metrics.encode();
        assert!(text.contains(r#"edpm_reconcile_seconds_count{kind="Node"} 2"#), "{text}");
        let failed = r#"edpm_reconcile_errors_total{kind="Node",reason="Timeout"} 1"#;
        assert!(text.contains(failed), "{text}");
    }

    /// Every metric that all operators have, where everything fails that can; the alerts and the dashboard
    /// of the chart are tested with this text and those of the operators' own metrics.
    #[test]
    fn the_example_has_every_metric_as_it_is_published() {
        let metrics = Metrics::new("nova-operator");
        metrics.count_request("get", "nodes", "200");
        metrics.reconciled("Node", Duration::from_millis(3));
        metrics.reconcile_failed("Node", "Timeout");
        metrics.queue_depth("Node", 1);
        metrics.unreadable("Node", 1);
        let version = env!("CARGO_PKG_VERSION");
        let text = metrics.encode().replace(version, "VERSION");
        // The order of a metric's series differs from process to process.
        let lines = |text: &str| -> BTreeSet<String> { text.lines().map(str::to_owned).collect() };
        let example = include_str!("metrics/example.txt");
        assert_eq!(lines(&text), lines(example), "write into metrics/example.txt:\n{text}");
    }

    #[test]
    fn requests_are_summed_over_their_codes() {
        let metrics = Metrics::new("test");
        metrics.count_request("get", "nodes", "200");
        metrics.count_request("get", "nodes", "404");
        assert_eq!((metrics.requests("get", "nodes"), metrics.requests("list", "nodes")), (2, 0));
    }
}
