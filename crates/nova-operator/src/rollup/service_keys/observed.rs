//! What was observed of a service of nova's type, as plain data.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::{Condition, find};
use api::dataplane::Service;
use nova_config::conditions::CONFIG_CONDITION;
use operator_core::data_sources::SourceRef;

/// A snapshot of everything that the decision on a service uses.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The service.
    pub service: Arc<Service>,
    /// Whether the service is of type nova; otherwise its condition is removed.
    pub is_nova: bool,
    /// Whether its data sources include the files that a `NovaCell` generates.
    pub has_cell: bool,
    /// The keys of its other data sources that exist.
    pub sources: BTreeMap<SourceRef, Vec<String>>,
}

/// Returns this operator's condition on a service, or `None` without one.
pub fn own_condition(service: &Service) -> Option<&Condition> {
    find(&service.status.as_ref()?.conditions, CONFIG_CONDITION)
}
