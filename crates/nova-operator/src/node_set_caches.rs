//! The caches of node sets and of the reports about them, whose definitions a cluster may lack.

use std::future::pending;
use std::sync::Arc;

use api::dataplane::{HostReadiness, NodeSet};
use operator_core::node_set_host::is_about;
use operator_core::object_key::Key;
use operator_runtime::api::Api;
use operator_runtime::cache_registry::CacheRegistry;
use operator_runtime::error::Result;
use operator_runtime::manager::ManagerBuilder;
use operator_runtime::optional_informer::{OptionalInformer, appears};

use crate::node_set_computes::observed::CRD_POLL_INTERVAL;
use crate::node_set_readiness::{is_left, is_ours, report_key};

/// Node sets, and the reports about them; each is watched once the cluster serves the kind.
pub struct NodeSetCaches {
    /// All node sets.
    pub node_sets: OptionalInformer<NodeSet>,
    /// All reports about hosts of node sets, of every operator.
    pub reports: OptionalInformer<HostReadiness>,
}

impl NodeSetCaches {
    /// Creates the caches without starting an informer.
    pub fn new(builder: &ManagerBuilder, registry: &mut CacheRegistry) -> Self {
        let node_sets = OptionalInformer::new(builder, registry);
        Self { node_sets, reports: OptionalInformer::new(builder, registry) }
    }

    /// Returns this operator's report about a node set, as far as reports are cached.
    pub fn report_about(&self, set: &NodeSet) -> Option<Arc<HostReadiness>> {
        let report = self.reports.cache().get(&report_key(&Key::of(set)))?;
        (is_ours(&report) && is_about(&report, set)).then_some(report)
    }

    /// Returns the report about a node set that is gone, if it is to be deleted.
    pub async fn left_report(&self, api: &Api, set: &Key) -> Result<Option<Arc<HostReadiness>>> {
        let report = self.reports.cache().get(&report_key(set)).filter(|it| is_left(it, set));
        // Before the first list, the cache lacks node sets that exist.
        if report.is_none() || !self.node_sets.open(api).await? {
            return Ok(None);
        }
        let is_gone = matches!(self.node_sets.cache().try_get(set), Ok(None));
        Ok(report.filter(|_| is_gone))
    }

    /// Watches node sets and the reports about them as soon as the cluster serves them; it never
    /// returns.
    pub async fn follow(&self, api: &Api) -> Result<()> {
        appears(|| self.node_sets.open(api), CRD_POLL_INTERVAL).await;
        // Also without node sets: a report may be left of one that went while the operator was down.
        appears(|| self.reports.open(api), CRD_POLL_INTERVAL).await;
        pending().await
    }
}
