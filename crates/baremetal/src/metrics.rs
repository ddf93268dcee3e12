//! The metrics of Ironic.

use operator_runtime::metrics::Metrics;
use operator_runtime::request_times::RequestTimes;

/// Registers the metric of the requests to Ironic.
pub fn request_times(metrics: &Metrics) -> RequestTimes {
    let help = "Duration of requests to Ironic, by what came of them";
    RequestTimes::register(metrics, "ironic_request_seconds", help, |method, result| {
        vec![("method", method.to_owned()), ("result", result.to_owned())]
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;

    /// The alerts and the dashboard of the chart are tested with this text.
    #[test]
    fn the_example_has_every_metric_of_ironic_as_it_is_published() {
        let metrics = Metrics::new("test");
        let times = request_times(&metrics);
        times.record("GET", "Ok", Duration::from_millis(30));
        times.record("GET", "Unreachable", Duration::from_millis(30));
        let text = metrics.encode();
        // The order of a metric's series differs from process to process.
        let published: BTreeSet<&str> =
            text.lines().filter(|it| it.contains("edpm_ironic_")).collect();
        let example: BTreeSet<&str> = include_str!("metrics/example.txt").lines().collect();
        assert_eq!(published, example, "write into metrics/example.txt:\n{text}");
    }
}
