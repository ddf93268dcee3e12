//! What was observed of a service that exposes ports.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::dataplane::Service;
use k8s_openapi::api::core::v1::Service as CoreService;
use k8s_openapi::api::discovery::v1::EndpointSlice;

use crate::endpoints::build::ExposedAddresses;

/// Plain copies of everything that was observed.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The service.
    pub service: Arc<Service>,
    /// The addresses of the nodes that run it.
    pub addresses: ExposedAddresses,
    /// The Kubernetes Services that it owns.
    pub exposed: Vec<Arc<CoreService>>,
    /// The EndpointSlices that it owns.
    pub slices: Vec<Arc<EndpointSlice>>,
    /// Needed names that other owners' objects have, as in `Service x`.
    pub taken: BTreeSet<String>,
}
