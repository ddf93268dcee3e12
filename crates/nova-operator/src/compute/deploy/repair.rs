//! The repair of a host that an audit found out of sync: by a deployment of its compute, or of all
//! services of its node, which that of the compute follows.

use api::conditions::ConditionDraft;
use api::nova::ExternalCompute;
use kube::ResourceExt;
use nova_config::annotations::AUDIT_REPAIR;
use nova_config::conditions::{CONFIG_WARNINGS, REDEPLOY_REQUESTED};
use operator_core::run_engine::retry;

use crate::compute::audit::condition::named;
use crate::compute::audit::report::{LastAudit, Verdict};
use crate::compute::deploy::observed::Observed;
use crate::reasons;
use crate::requested::cell_immutability::owns;

/// The repair of a host that the operator deploys.
#[derive(Debug)]
pub struct Repair<'a> {
    /// The audit whose result is repaired now, in either way; `None` where none is, or nothing is
    /// deployed.
    pub due: Option<&'a LastAudit>,
    /// Whether services of the node are audited too: a report does not say whose a difference is. Only
    /// a compute that the node owns has its conditions repeated there.
    needs_node: bool,
}

impl<'a> Repair<'a> {
    /// Resolves the repair of a host; `deploys` is whether changes of its compute are deployed.
    pub fn resolve(seen: &'a Observed, deploys: bool) -> Self {
        let node = seen.node.as_deref();
        let is_owned = node.is_some_and(|it| owns(it, &seen.compute));
        let needs_node = is_owned && !seen.audited.playbooks.is_empty();
        let of_node = || node.and_then(|it| it.status.as_ref()?.deploy) != Some(false);
        let is_deployed = deploys && (!needs_node || of_node());
        Self { due: seen.audited.repair(&seen.compute).filter(|_| is_deployed), needs_node }
    }

    /// Returns the UID of the audit that is repaired now by a deployment of the compute alone; `None`
    /// where none is.
    pub fn of_compute(&self) -> Option<&'a str> {
        self.due.filter(|_| !self.needs_node).map(|it| it.uid.as_str())
    }

    /// Returns the condition that requests a deployment of all services of a node; `None` where no
    /// repair needs one.
    ///
    /// The name of the run makes the message another one for each result, and another message is served
    /// by another deployment: so the words of it must not change either while a repair waits.
    pub fn node_redeploy(&self, node: &str) -> Option<ConditionDraft> {
        let audit = self.due.filter(|_| self.needs_node)?;
        let Verdict::Differs(found) = &audit.verdict else { return None };
        let text = format!(
            "Audit {} found differences on host {node}: {}. All services of the node are deployed once \
             more, and then the compute, because annotation {AUDIT_REPAIR} is true.",
            audit.name,
            named(found, 1)
        );
        Some(reasons::audit::REPAIR_REQUESTED.condition(REDEPLOY_REQUESTED, text))
    }

    /// Returns the command that deploys everything again that the audits of the host compare;
    /// `of_compute` is the one that deploys its compute.
    pub fn command(&self, compute: &ExternalCompute, of_compute: &str) -> String {
        if !self.needs_node {
            return of_compute.to_owned();
        }
        let namespace = compute.namespace().unwrap_or_default();
        retry::redeploy_command(&namespace, &compute.spec.dataplane_node_name)
    }
}

/// Returns that repairs are asked for of a compute that others deploy, which repair nothing; `None` where
/// none are.
pub fn not_possible(seen: &Observed) -> Option<ConditionDraft> {
    let asks = seen.audited.request.policy().is_some_and(|it| it.repairs);
    let text = format!(
        "Annotation {AUDIT_REPAIR} of OpenStackDataPlaneNode {}, or of what it belongs to, is true, and \
         the operator does not deploy nova-compute there, so it repairs nothing: remove the annotation. \
         ConfigurationInSync says what to deploy where an audit finds differences.",
        seen.compute.spec.dataplane_node_name
    );
    asks.then(|| reasons::compute::REPAIR_NOT_POSSIBLE.condition(CONFIG_WARNINGS, text))
}
