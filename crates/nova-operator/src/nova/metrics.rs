//! The metrics of nova: the requests to its API, and what it says of the hosts of each cell.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use operator_core::object_key::Key;
use operator_runtime::metrics::Metrics;
use operator_runtime::request_times::RequestTimes;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// How many cells of one namespace have series.
const MOST_CELLS: usize = 32;

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

/// The metrics of nova of one process; clones share them.
#[derive(Clone, Debug)]
pub struct NovaMetrics {
    requests: RequestTimes,
    computes: Family<ComputesLabels, Gauge>,
    failed_readings: Family<FailedReadingsLabels, Gauge>,
    cells_left_out: Gauge,
    cells: Arc<Mutex<Cells>>,
}

#[derive(Debug, Default)]
struct Cells {
    /// The result of the last reading by cell: its series is the only one of the cell.
    last_results: BTreeMap<Key, &'static str>,
    /// Those without series, because enough others of their namespaces have some.
    left_out: BTreeSet<Key>,
}

impl NovaMetrics {
    /// Registers them.
    pub fn register(metrics: &Metrics) -> Self {
        let help = "Duration of requests to nova's API, by their result";
        let requests =
            RequestTimes::register(metrics, "nova_request_seconds", help, |_, result| {
                vec![("result", result.to_owned())]
            });
        let (computes, failed_readings) = (Family::default(), Family::default());
        let cells_left_out = Gauge::default();
        let of_computes =
            "Hosts of a cell, of nodes and node sets, by what nova's API says of their services";
        metrics.register("nova_computes", of_computes, computes.clone());
        let of_readings =
            "Readings of nova's API in a row that failed, by the result of the last one";
        metrics.register("nova_failed_readings", of_readings, failed_readings.clone());
        let of_left_out = "Cells without series of their own, as their namespaces have too many";
        metrics.register("nova_cells_left_out", of_left_out, cells_left_out.clone());
        Self { requests, computes, failed_readings, cells_left_out, cells: Arc::default() }
    }

    /// Returns where requests to nova's API are recorded.
    pub fn requests(&self) -> RequestTimes {
        self.requests.clone()
    }

    /// Sets how many hosts of a cell are up, down and unknown, if [`Self::set_failed_readings`] has let
    /// it have series; `None` for a cell that does not exist.
    pub fn set_computes(&self, cell: &Key, counts: Option<[usize; 3]>) {
        if counts.is_some() && self.cells.lock().left_out.contains(cell) {
            return;
        }
        for (idx, state) in ["up", "down", "unknown"].into_iter().enumerate() {
            let (namespace, cell) = (cell.namespace.clone(), cell.name.clone());
            let labels = ComputesLabels { namespace, cell, state };
            let Some(counts) = counts else {
                self.computes.remove(&labels);
                continue;
            };
            let n = i64::try_from(counts[idx]).unwrap_or(i64::MAX);
            self.computes.get_or_create(&labels).set(n);
        }
    }

    /// Sets how many readings of nova's API for a cell have failed in a row, with the word of the last
    /// error, or `Ok`; `None` for a cell that does not exist. A namespace's cells beyond the first
    /// [`MOST_CELLS`] have no series.
    pub fn set_failed_readings(&self, cell: &Key, failed: Option<(&'static str, u32)>) {
        let labels = |result| {
            let (namespace, cell) = (cell.namespace.clone(), cell.name.clone());
            FailedReadingsLabels { namespace, cell, result }
        };
        let mut cells = self.cells.lock();
        let has_series = cells.has_series(cell, failed.is_some());
        self.cells_left_out.set(i64::try_from(cells.left_out.len()).unwrap_or(i64::MAX));
        if !has_series {
            return;
        }
        let before = match failed {
            Some((result, _)) => cells.last_results.insert(cell.clone(), result),
            None => cells.last_results.remove(cell),
        };
        if let Some(before) = before.filter(|before| failed.is_none_or(|it| it.0 != *before)) {
            self.failed_readings.remove(&labels(before));
        }
        if let Some((result, n)) = failed {
            self.failed_readings.get_or_create(&labels(result)).set(i64::from(n));
        }
    }
}

impl Cells {
    /// Notes whether a cell is left out.
    fn has_series(&mut self, cell: &Key, exists: bool) -> bool {
        let known = &self.last_results;
        let of_namespace = known.keys().filter(|it| it.namespace == cell.namespace).count();
        let has_series = !exists || known.contains_key(cell) || of_namespace < MOST_CELLS;
        if has_series {
            self.left_out.remove(cell);
        } else {
            self.left_out.insert(cell.clone());
        }
        has_series
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn registered() -> (Metrics, NovaMetrics) {
        let metrics = Metrics::new("test");
        let of_nova = NovaMetrics::register(&metrics);
        (metrics, of_nova)
    }

    /// The alerts and the dashboard of the chart are tested with this text.
    #[test]
    fn the_example_has_every_metric_of_nova_as_it_is_published() {
        let (metrics, of_nova) = registered();
        of_nova.requests().record("GET", "Ok", Duration::from_millis(30));
        of_nova.requests().record("GET", "Unreachable", Duration::from_millis(30));
        of_nova.set_computes(&Key::new("openstack", "cell1"), Some([2, 1, 1]));
        of_nova.set_failed_readings(&Key::new("openstack", "cell1"), Some(("Unreachable", 3)));
        let text = metrics.encode();
        // The order of a metric's series differs from process to process.
        let published: BTreeSet<&str> =
            text.lines().filter(|it| it.contains("edpm_nova_")).collect();
        let example: BTreeSet<&str> = include_str!("metrics/example.txt").lines().collect();
        assert_eq!(published, example, "write into metrics/example.txt:\n{text}");
    }

    #[test]
    fn a_cell_has_the_series_of_its_last_result_alone() {
        let ((metrics, of_nova), cell) = (registered(), Key::new("ns", "cell1"));
        let series = |failed| {
            of_nova.set_failed_readings(&cell, failed);
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
        let (metrics, of_nova) = registered();
        let cell = |namespace: &str, number: usize| Key::new(namespace, format!("cell{number}"));
        let read = |cell: &Key| {
            of_nova.set_failed_readings(cell, Some(("Ok", 0)));
            of_nova.set_computes(cell, Some([1, 0, 0]));
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
        of_nova.set_computes(&cell("hostile", 0), None);
        of_nova.set_failed_readings(&cell("hostile", 0), None);
        read(&cell("hostile", 999));
        of_nova.set_failed_readings(&cell("hostile", 500), None);
        assert_eq!(counts(), (4 * MOST_CELLS, 4, Some("966".to_owned())));
    }
}
