//! `NovaExternalCompute`: waits for its node and its cell, renders nova's configuration, and runs
//! libvirt, nova-compute and the check that the compute has registered. One that a service of type nova
//! deploys is only looked after.
//!
//! The controller watches computes, nodes, roles, cells, the runs that it created, and the Secrets
//! and ConfigMaps that the configuration is made from.

pub mod audit;
pub mod audit_runs;
pub mod credentials;
pub mod deploy;
pub mod host_layout;
pub mod lifecycle;
pub mod node_part;
pub mod removal;
pub mod rendered_secret;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use nova_config::oslo::Release;
use operator_core::finalizers::is_terminating;
use operator_core::object_key::Key;
use operator_core::plan::{Order, Plan};
use operator_core::rejected_write::RejectedWrite;
use operator_runtime::controller::{Controller, Decide};
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::compute::deploy::decide::decide;
use crate::compute::deploy::resolve::with_progress;
use crate::compute::deploy::{observe, observed_host};
use crate::controller_names::COMPUTE;
use crate::images::Images;
use crate::nova::drain::findings::WithFindings;
use crate::nova::drain::order::OrderOfHost;
use crate::nova::orders::NovaOrders;

/// The controller of computes.
pub struct ComputeDeployment {
    /// All caches of the operator.
    pub caches: Arc<Caches>,
    /// The default images.
    pub images: Images,
    /// The default release, for computes whose cell names none.
    pub release: Release,
    /// The orders about hosts of computes, or `None` where nova's API is not used.
    pub orders: Option<Arc<NovaOrders>>,
}

/// A compute, as the decisions on it need it.
#[derive(Debug)]
pub enum Seen {
    /// It stays.
    Present(Box<deploy::observed::Observed>),
    /// It is being deleted, or its host leaves.
    Ending(Box<removal::Observed>),
}

/// Decides on a compute that stays, or goes.
fn decide_on(
    seen: &WithFindings<Seen>,
    rejected: Option<&RejectedWrite>,
    now: Timestamp,
) -> Plan<OrderOfHost> {
    let found = &seen.found;
    match &seen.seen {
        Seen::Present(seen) if seen.compute.is_observed() => {
            observed_host::decide(&with_progress(seen, found), rejected, now)
        }
        Seen::Present(seen) => decide(&with_progress(seen, found), rejected, now),
        Seen::Ending(seen) => removal::decide(&removal::with_progress(seen, found), rejected, now),
    }
}

impl Controller<OrderOfHost> for ComputeDeployment {
    type Observed = WithFindings<Seen>;

    const NAME: &'static str = COMPUTE;

    const DECIDE: Decide<WithFindings<Seen>, OrderOfHost> = decide_on;

    async fn observe(&self, key: &Key) -> Result<Option<WithFindings<Seen>>> {
        let caches = &self.caches;
        let Some(compute) = caches.shared.computes.get(key) else {
            caches.sources.depends(COMPUTE, key, BTreeSet::new());
            return Ok(None);
        };
        let is_ending = is_terminating(&*compute) || removal::observe::is_leaving(caches, &compute);
        let seen = if is_ending {
            Seen::Ending(Box::new(removal::observe::observe(caches, compute).await?))
        } else {
            let present = observe::observe(caches, &self.images, self.release, compute).await?;
            Seen::Present(Box::new(present))
        };
        let found = self.orders.as_ref().map(|it| it.findings(key)).unwrap_or_default();
        Ok(Some(WithFindings { seen, found }))
    }

    fn give_orders(&self, key: &Key, orders: &[Order<OrderOfHost>]) {
        self.orders.iter().for_each(|it| it.give(key, orders));
    }

    fn keep_orders(&self, key: &Key, orders: &[Order<OrderOfHost>]) {
        self.orders.iter().for_each(|it| it.keep(key, orders));
    }
}
