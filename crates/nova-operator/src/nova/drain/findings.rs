//! What passes over nova have found, each with the order that it was about.

use operator_core::plan::Order;

use crate::nova::drain::order::OrderOfHost;
use crate::nova::drain::progress::HostProgress;

/// The present orders about one object, each with what its last pass has found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings(Vec<(OrderOfHost, HostProgress)>);

/// What was observed of an object, and what passes over nova have found for its orders.
///
/// Which of the findings count follows from the orders that are decided now.
#[derive(Debug)]
pub struct WithFindings<T> {
    /// What was observed.
    pub seen: T,
    /// What was found.
    pub found: Findings,
}

impl Findings {
    /// Returns what the last pass has found; [`HostProgress::Pending`] without an order, and before the
    /// first pass over exactly this one: what was found with another order says nothing.
    pub fn of(&self, order: Option<&Order<OrderOfHost>>) -> HostProgress {
        let of_order = |it: &&(OrderOfHost, HostProgress)| order.is_some_and(|of| of.what == it.0);
        self.0.iter().find(of_order).map(|it| it.1.clone()).unwrap_or_default()
    }
}

impl FromIterator<(OrderOfHost, HostProgress)> for Findings {
    fn from_iter<I: IntoIterator<Item = (OrderOfHost, HostProgress)>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}
