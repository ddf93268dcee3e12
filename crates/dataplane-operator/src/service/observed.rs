//! What was observed of a service.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::dataplane::Service;
use operator_core::data_sources::SourceRef;

use crate::default_services::DefaultServices;
use crate::endpoints::observed as ports;

/// Plain copies of everything that was observed.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The service; `None` for a default service that is to be created.
    pub service: Option<Arc<Service>>,
    /// The content of the default services.
    pub defaults: DefaultServices,
    /// Its existing data sources with their keys. A single source is not read, because its keys
    /// cannot clash with others.
    pub sources: BTreeMap<SourceRef, Vec<String>>,
    /// Whether a role, node or node set lists it; true without a look where no data source is
    /// missing.
    pub is_listed: bool,
    /// What it exposes or is to expose.
    pub ports: Option<ports::Observed>,
}
