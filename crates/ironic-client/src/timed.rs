//! Duration and result of requests, counted however they end.

use std::time::Instant;

use ironic::{Error, Method};
use operator_runtime::metrics::Metrics;

/// The result of a request that the caller abandoned, because callers have their own deadlines.
const GIVEN_UP: &str = "GivenUp";

/// A request in progress.
pub(crate) struct Timed<'a> {
    metrics: Option<&'a Metrics>,
    method: Method,
    begun: Instant,
    result: &'static str,
}

impl<'a> Timed<'a> {
    /// Starts the timer.
    pub(crate) fn begin(metrics: Option<&'a Metrics>, method: Method) -> Self {
        Self { metrics, method, begun: Instant::now(), result: GIVEN_UP }
    }

    /// Records the response or the error.
    pub(crate) fn end<T>(mut self, answer: &Result<T, Error>) {
        self.result = answer.as_ref().map_or_else(|it| it.reason().word, |_| "Ok");
    }
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        if let Some(metrics) = self.metrics {
            metrics.asked_ironic(self.method.word(), self.result, self.begun.elapsed());
        }
    }
}
