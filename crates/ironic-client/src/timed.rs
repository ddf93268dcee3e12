//! How long a request took and what came of it, counted however it ends.

use std::time::Instant;

use ironic::{Error, Method};
use operator_runtime::metrics::Metrics;

/// What is counted of a request for whose answer nobody waited: whoever asks has his own deadlines.
const GIVEN_UP: &str = "GivenUp";

/// A request that is under way.
pub(crate) struct Timed<'a> {
    metrics: Option<&'a Metrics>,
    method: Method,
    begun: Instant,
    result: &'static str,
}

impl<'a> Timed<'a> {
    /// It begins now.
    pub(crate) fn begin(metrics: Option<&'a Metrics>, method: Method) -> Self {
        Self { metrics, method, begun: Instant::now(), result: GIVEN_UP }
    }

    /// It was answered, well or not.
    pub(crate) fn end<T>(mut self, answer: &Result<T, Error>) {
        self.result = answer.as_ref().map_or_else(Error::reason, |_| "Ok");
    }
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        if let Some(metrics) = self.metrics {
            metrics.asked_ironic(self.method.word(), self.result, self.begun.elapsed());
        }
    }
}
