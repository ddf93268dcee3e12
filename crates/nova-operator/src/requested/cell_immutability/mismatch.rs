//! A compute whose node requests another cell, or none, and what the user can do about it.

use api::nova::ExternalCompute;
use kube::ResourceExt;
use nova_config::annotations::{ALLOW_REMOVAL, CELL};

/// A compute that stays in its cell although its node requests another cell or none.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mismatch {
    /// The namespace of the compute.
    pub namespace: String,
    /// The name of the compute, which is also the name of the node.
    pub compute: String,
    /// The cell of the compute.
    pub own: String,
    /// The requested cell; `None` when no compute is requested.
    pub requested: Option<String>,
    /// Whether the compute has ever had a run.
    pub has_run: bool,
    /// Whether the compute has a user's configuration that deleting it would lose.
    pub has_config: bool,
    /// Whether a service of type nova has deployed the compute.
    pub is_observed: bool,
}

impl Mismatch {
    /// Returns the mismatch of a compute and the requested cell.
    pub fn of(compute: &ExternalCompute, requested: Option<String>, has_run: bool) -> Self {
        Self {
            namespace: compute.namespace().unwrap_or_default(),
            compute: compute.name_any(),
            own: compute.spec.cell_name.clone(),
            requested,
            has_run,
            has_config: compute.spec.custom_service_config.is_some(),
            is_observed: compute.is_observed(),
        }
    }

    /// Returns why a change that would cause this mismatch is rejected.
    pub(super) fn cause(&self) -> String {
        let Self { compute, own, .. } = self;
        match &self.requested {
            Some(asked) => format!(
                "NovaExternalCompute {compute} has run in cell {own}, and nova cannot move it to \
                 {asked}."
            ),
            None => format!(
                "NovaExternalCompute {compute} has run in cell {own}, and with this change its \
                 node would have none."
            ),
        }
    }

    /// Returns the allowed procedure to reach the result of the rejected change.
    pub(super) fn way(&self) -> String {
        let Self { namespace, compute, .. } = self;
        let node =
            format!("kubectl annotate --overwrite -n {namespace} openstackdataplanenode/{compute}");
        let lost = self.lost();
        match &self.requested {
            Some(asked) => format!(
                "To bring the host to {asked}, take its instances away, then its compute ({lost}) \
                 with `{node} {ALLOW_REMOVAL}=true {CELL}=`, and when NovaExternalCompute {compute} \
                 is gone, set {CELL} of the node to {asked}."
            ),
            None => format!(
                "To let the compute go ({lost}), take its instances away and allow it first: \
                 `{node} {ALLOW_REMOVAL}=true`."
            ),
        }
    }

    /// Returns the condition message while the mismatch lasts.
    pub fn message(&self) -> String {
        if self.is_observed {
            return self.message_of_observed();
        }
        let Self { namespace, compute, own, .. } = self;
        let lost = self.lost();
        match &self.requested {
            Some(asked) => format!(
                "Annotation {CELL} asks for cell {asked}, but NovaExternalCompute {compute} is in \
                 cell {own}, and nova cannot move it. Set the annotation back to {own}, or delete \
                 the compute, and it is made again in {asked} ({lost}; first take its instances \
                 away, afterwards nova's records of it in {own}): {}",
                self.delete_command()
            ),
            None => format!(
                "Neither OpenStackDataPlaneNode {compute} nor its role names a cell any more, but \
                 NovaExternalCompute {compute} is in cell {own}. Set annotation {CELL} back to \
                 {own}, or let the compute go ({lost}): kubectl annotate --overwrite -n \
                 {namespace} openstackdataplanenode/{compute} {ALLOW_REMOVAL}=true"
            ),
        }
    }

    /// Returns the same for a compute that a service of type nova has deployed.
    fn message_of_observed(&self) -> String {
        let Self { namespace, compute, own, .. } = self;
        let place = if own.is_empty() { String::new() } else { format!(" in cell {own}") };
        let begin = format!(
            "NovaExternalCompute {compute} was deployed{place} by a service of type nova, and"
        );
        match &self.requested {
            Some(asked) => format!(
                "{begin} its node now asks for cell {asked}: nova cannot move it, and the operator \
                 does not take it over. Set the Secret that the service mounts, or annotation {CELL}, \
                 back, or delete the compute, and it is made again in {asked} (first take its \
                 instances away): {}",
                self.delete_command()
            ),
            None => format!(
                "{begin} none is listed for OpenStackDataPlaneNode {compute} any more, whose \
                 annotation {CELL} asks for no compute. List the service again, or let the compute \
                 go: kubectl annotate --overwrite -n {namespace} openstackdataplanenode/{compute} \
                 {ALLOW_REMOVAL}=true"
            ),
        }
    }

    fn delete_command(&self) -> String {
        format!("kubectl delete -n {} novaexternalcompute {}", self.namespace, self.compute)
    }

    fn lost(&self) -> &'static str {
        if self.has_config {
            "its customServiceConfig is lost with it"
        } else {
            "it has no customServiceConfig to lose"
        }
    }
}
