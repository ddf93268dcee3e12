//! The metrics of an operator process, in the Prometheus text format.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use operator_core::object_key::Key;
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

/// How many cells of one namespace have series.
const MOST_CELLS: usize = 32;

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

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct NovaLabels {
    result: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ComputesLabels {
    namespace: String,
    cell: String,
    state: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct FailedReadingsLabels {
    namespace: String,
    cell: String,
    result: &'static str,
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
    nova: Family<NovaLabels, Histogram, fn() -> Histogram>,
    computes: Family<ComputesLabels, Gauge>,
    failed_readings: Family<FailedReadingsLabels, Gauge>,
    /// The result of the last reading by cell: its series is the only one of the cell.
    last_results: Mutex<BTreeMap<Key, &'static str>>,
    /// The cells without series, because enough others of their namespaces have some.
    left_out: Mutex<BTreeSet<Key>>,
    cells_left_out: Gauge,
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

fn openstack_histogram() -> Histogram {
    // 10 ms to 82 s: some verbs of Ironic wait for a machine's management controller, and nova waits
    // for a cell that does not answer, for a minute at most.
    Histogram::new(exponential_buckets(0.01, 2.0, 14))
}

impl Metrics {
    /// Creates empty metrics for the operator of that name.
    pub fn new(operator: &str) -> Self {
        let mut registry = Registry::with_prefix("edpm");
        let requests = Family::default();
        let reconciles = Family::new_with_constructor(reconcile_histogram as fn() -> Histogram);
        let failures = Family::default();
        let queued = Family::default();
        let nova = Family::new_with_constructor(openstack_histogram as fn() -> Histogram);
        let (unreadable, computes) = (Family::default(), Family::default());
        let failed_readings = Family::default();
        let (leader, cells_left_out) = (Gauge::default(), Gauge::default());
        registry.register("api_requests", "Requests to the API server", requests.clone());
        registry.register("reconcile_seconds", "Duration of reconciles", reconciles.clone());
        registry.register("reconcile_errors", "Failed reconciles", failures.clone());
        registry.register("workqueue_depth", "Objects that wait for a reconcile", queued.clone());
        let of_nova = "Duration of requests to nova's API, by their result";
        registry.register("nova_request_seconds", of_nova, nova.clone());
        let of_computes =
            "Hosts of a cell, of nodes and node sets, by what nova's API says of their services";
        registry.register("nova_computes", of_computes, computes.clone());
        let of_readings =
            "Readings of nova's API in a row that failed, by the result of the last one";
        registry.register("nova_failed_readings", of_readings, failed_readings.clone());
        let of_left_out = "Cells without series of their own, as their namespaces have too many";
        registry.register("nova_cells_left_out", of_left_out, cells_left_out.clone());
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
            nova,
            computes,
            failed_readings,
            last_results: Mutex::default(),
            left_out: Mutex::default(),
            cells_left_out,
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

    /// Records a request to nova's API; `result` is the error's word, or `Ok`.
    pub fn asked_nova(&self, result: &'static str, took: Duration) {
        self.0.nova.get_or_create(&NovaLabels { result }).observe(took.as_secs_f64());
    }

    /// Sets how many hosts of a cell are up, down and unknown, if [`Metrics::nova_failed_readings`] has
    /// let it have series; `None` for a cell that does not exist.
    pub fn nova_computes(&self, cell: &Key, counts: Option<[usize; 3]>) {
        if counts.is_some() && self.0.left_out.lock().contains(cell) {
            return;
        }
        for (idx, state) in ["up", "down", "unknown"].into_iter().enumerate() {
            let (namespace, cell) = (cell.namespace.clone(), cell.name.clone());
            let labels = ComputesLabels { namespace, cell, state };
            let Some(counts) = counts else {
                self.0.computes.remove(&labels);
                continue;
            };
            let n = i64::try_from(counts[idx]).unwrap_or(i64::MAX);
            self.0.computes.get_or_create(&labels).set(n);
        }
    }

    /// Sets how many readings of nova's API for a cell have failed in a row, with the word of the last
    /// error, or `Ok`; `None` for a cell that does not exist. A namespace's cells beyond the first
    /// [`MOST_CELLS`] have no series.
    pub fn nova_failed_readings(&self, cell: &Key, failed: Option<(&'static str, u32)>) {
        let labels = |result| {
            let (namespace, cell) = (cell.namespace.clone(), cell.name.clone());
            FailedReadingsLabels { namespace, cell, result }
        };
        let mut last = self.0.last_results.lock();
        if !self.has_series(cell, failed.is_some(), &last) {
            return;
        }
        let before = match failed {
            Some((result, _)) => last.insert(cell.clone(), result),
            None => last.remove(cell),
        };
        let gauges = &self.0.failed_readings;
        if let Some(before) = before.filter(|before| failed.is_none_or(|it| it.0 != *before)) {
            gauges.remove(&labels(before));
        }
        if let Some((result, n)) = failed {
            gauges.get_or_create(&labels(result)).set(i64::from(n));
        }
    }

    /// Notes whether a cell is left out; `known` are those with series.
    fn has_series(&self, cell: &Key, exists: bool, known: &BTreeMap<Key, &'static str>) -> bool {
        let of_namespace = known.keys().filter(|it| it.namespace == cell.namespace).count();
        let has_series = !exists || known.contains_key(cell) || of_namespace < MOST_CELLS;
        let mut left_out = self.0.left_out.lock();
        if has_series {
            left_out.remove(cell);
        } else {
            left_out.insert(cell.clone());
        }
        self.0.cells_left_out.set(i64::try_from(left_out.len()).unwrap_or(i64::MAX));
        has_series
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
        metrics.asked_nova("Ok", Duration::from_millis(30));
        metrics.asked_nova("Unreachable", Duration::from_millis(30));
        metrics.nova_computes(&Key::new("openstack", "cell1"), Some([2, 1, 1]));
        metrics.nova_failed_readings(&Key::new("openstack", "cell1"), Some(("Unreachable", 3)));
        metrics.unreadable("Node", 1);
        let version = env!("CARGO_PKG_VERSION");
        let text = metrics.encode().replace(version, "VERSION");
        // The order of a metric's series differs from process to process.
        let lines = |text: &str| -> BTreeSet<String> { text.lines().map(str::to_owned).collect() };
        let example = include_str!("metrics/example.txt");
        assert_eq!(lines(&text), lines(example), "write into metrics/example.txt:\n{text}");
    }

    #[test]
    fn a_cell_has_the_series_of_its_last_result_alone() {
        let (metrics, cell) = (Metrics::new("test"), Key::new("ns", "cell1"));
        let series = |failed| {
            metrics.nova_failed_readings(&cell, failed);
            let text = metrics.encode();
            let of_cell =
                text.lines().filter_map(|it| it.strip_prefix("edpm_nova_failed_readings{"));
            let results = of_cell.filter_map(|it| it.split_once("result="));
            results.map(|it| it.1.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(series(Some(("Ok", 0))), [r#""Ok"} 0"#]);
        assert_eq!(series(Some(("Busy", 1))), [r#""Busy"} 1"#]);
        assert_eq!(series(Some(("Unreachable", 2))), [r#""Unreachable"} 2"#]);
        assert_eq!(series(Some(("Ok", 0))), [r#""Ok"} 0"#]);
        assert_eq!(series(None), [""; 0]);
    }

    #[test]
    fn a_namespace_has_series_of_its_first_cells_alone() {
        let metrics = Metrics::new("test");
        let cell = |namespace: &str, number: usize| Key::new(namespace, format!("cell{number}"));
        let read = |cell: &Key| {
            metrics.nova_failed_readings(cell, Some(("Ok", 0)));
            metrics.nova_computes(cell, Some([1, 0, 0]));
        };
        (0..1000).for_each(|it| read(&cell("hostile", it)));
        read(&cell("honest", 1));
        let counts = || {
            let text = metrics.encode();
            let of = |words: &str| text.lines().filter(|it| it.contains(words)).count();
            let left_out = text.lines().find_map(|it| it.strip_prefix("edpm_nova_cells_left_out "));
            (of(r#"namespace="hostile""#), of(r#"namespace="honest""#), left_out.map(str::to_owned))
        };
        assert_eq!(counts(), (4 * MOST_CELLS, 4, Some("968".to_owned())));
        // One that goes makes room for another one.
        metrics.nova_computes(&cell("hostile", 0), None);
        metrics.nova_failed_readings(&cell("hostile", 0), None);
        read(&cell("hostile", 999));
        metrics.nova_failed_readings(&cell("hostile", 500), None);
        assert_eq!(counts(), (4 * MOST_CELLS, 4, Some("966".to_owned())));
    }

    #[test]
    fn requests_are_summed_over_their_codes() {
        let metrics = Metrics::new("test");
        metrics.count_request("get", "nodes", "200");
        metrics.count_request("get", "nodes", "404");
        assert_eq!((metrics.requests("get", "nodes"), metrics.requests("list", "nodes")), (2, 0));
    }
}
