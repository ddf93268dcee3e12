//! What holds of the host of a compute before anything is found of it, whether this operator deploys it or
//! others do.

use api::dataplane::{DisruptionTarget, Node};
use api::nova::{Cell, ExternalCompute};
use operator_runtime::source_cache::Digests;

use crate::compute::deploy::identity::MissedIdentity;
use crate::compute::deploy::messages::{in_service, way_to_deploy};
use crate::compute::deploy::observed::Observed;
use crate::compute_status::registration::{has_registered, was_deployed};
use crate::group::Group;
use crate::nova::drain::before::{DrainBefore, drain_before};
use crate::nova::identity::{Identity, IdentitySources};

/// What holds of a host before anything is found of it, so that its order follows from nothing else.
#[derive(Debug)]
pub struct HostFacts<'a> {
    /// The compute.
    pub compute: &'a ExternalCompute,
    /// The node, or `None` when it does not exist.
    pub node: Option<&'a Node>,
    /// What its identity in nova follows from.
    pub sources: IdentitySources<'a>,
    /// What the node belongs to, or `None` when it names nothing or that does not exist.
    pub group: Option<&'a Group>,
    /// The cell, where this operator reconciles it.
    pub own_cell: Option<&'a Cell>,
    /// The digests of the ssh Secret, or `None` when it does not exist.
    pub ssh: Option<&'a Digests>,
    /// Whether the compute is known to have registered.
    pub is_registered: bool,
    /// The identity in nova that is recorded.
    pub recorded: Identity,
    /// What the last run missed of that identity.
    pub missed: MissedIdentity<'a>,
    /// What is asked for before a deployment; `None` without a node.
    pub drain_before: Option<DrainBefore>,
    /// Whether a drain is asked for before each change. The first deployment of a host waits for
    /// nothing.
    pub asks_for_drain: bool,
    /// Whether nova's API is used.
    pub uses_nova: bool,
    /// That the compute is in service, in a clause.
    pub in_service: String,
    /// How nova-compute is deployed there once more, by the operator or others.
    pub way_to_deploy: String,
    /// Whether a renewed certificate is all that is to be deployed; `None` where one is renewed, and
    /// the other inputs are unknown.
    pub renews_certificate: Option<bool>,
}

impl<'a> HostFacts<'a> {
    /// Resolves the host of a compute whose certificate is not renewed.
    pub fn resolve(seen: &'a Observed) -> Self {
        let (sources, group) = (seen.identity_sources(), seen.group.as_ref());
        let IdentitySources { compute, node, .. } = sources;
        let drain_before = node.map(|it| drain_before(group, it));
        let uses_nova = seen.drain.is_some();
        Self {
            compute,
            node,
            sources,
            group,
            own_cell: sources.cell.filter(|_| seen.cells_are_ours),
            ssh: seen.ssh.as_ref(),
            is_registered: has_registered(compute),
            recorded: Identity::recorded(compute),
            missed: MissedIdentity::resolve(sources, uses_nova),
            asks_for_drain: drain_before == Some(DrainBefore::Yes) && was_deployed(compute),
            drain_before,
            uses_nova,
            in_service: in_service(compute),
            way_to_deploy: way_to_deploy(compute, node),
            renews_certificate: Some(false),
        }
    }

    /// Returns the node of a compute that others deploy.
    pub fn node_of_others(&self) -> Option<&'a Node> {
        self.node.filter(|_| self.compute.is_observed())
    }

    /// Returns the deployment of a node set that waits for the host of a compute which it deploys;
    /// `None` where none does.
    pub fn disruption_target(&self) -> Option<&'a DisruptionTarget> {
        self.node_of_others()?.disruption_target()
    }
}
