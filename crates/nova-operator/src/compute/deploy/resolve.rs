//! Resolves a compute that the operator deploys: what holds of it whatever its runs do.

use api::conditions::{ConditionDraft, Severity};
use api::nova::ExternalCompute;
use operator_core::keyed::{Digest, Inputs, changed_inputs};
use operator_core::run_engine::DesiredService;

use crate::cell_inputs::of_cell;
use crate::compute::deploy::config_inputs::Complete;
use crate::compute::deploy::drain::{self, HostDrain};
use crate::compute::deploy::host_facts::HostFacts;
use crate::compute::deploy::inputs::{Instance, OfServices, as_recorded, desired_services};
use crate::compute::deploy::libvirt_tls::HostCertificate;
use crate::compute::deploy::observed::Observed;
use crate::compute::deploy::preconditions::Precondition;
use crate::compute::deploy::repair::Repair;
use crate::compute::deploy::{
    config, inputs, migration_key, nova_matches, preconditions, warnings,
};
use crate::nova::drain::findings::Findings;
use crate::rollout::deploy_strategy::deploys;

/// A resolved compute.
pub struct Resolved<'a> {
    /// What holds of its host.
    pub host: HostFacts<'a>,
    /// Whether every input is present and valid.
    pub input: ConditionDraft,
    /// Whether the node can be used.
    pub node: Precondition,
    /// Whether the cell can be used.
    pub cell: Precondition,
    /// Whether the files are rendered.
    pub config: ConditionDraft,
    /// Warnings about the user's options.
    pub warnings: ConditionDraft,
    /// Whether the node asks for no other cell.
    pub cell_matches: ConditionDraft,
    /// Whether the cell's current credentials have not been tried yet; until then nothing changes.
    pub is_untried: bool,
    /// Whether changes are deployed at all.
    pub deploy: bool,
    /// Whether they are, and nothing that a run needs is missing.
    pub may_run: bool,
    /// All inputs, or `None` when they are incomplete.
    pub inputs: Option<KnownInputs>,
    /// The desired services.
    pub desired: Vec<DesiredService>,
    /// The instance of the host, and what was requested of the compute.
    pub instance: Instance<'a>,
    /// The repair of the host.
    pub repair: Repair<'a>,
    /// libvirt's certificate.
    pub certificate: HostCertificate,
    /// The files of the key for migrations that a host gets with its next deployment.
    pub due_key_files: Vec<String>,
}

/// The inputs of a compute, of which none is missing.
pub struct KnownInputs {
    /// Those of its files.
    pub config: Complete,
    /// Those of each service.
    pub services: OfServices,
    /// Those of all services.
    pub all: Inputs,
}

/// Resolves the host of a compute that this operator or others deploy.
pub fn host_of(seen: &Observed) -> HostFacts<'_> {
    if seen.compute.is_observed() { HostFacts::resolve(seen) } else { resolve(seen).host }
}

/// Returns what was observed with how far the order about the host is that follows from it.
pub fn with_progress(seen: &Observed, found: &Findings) -> Observed {
    if seen.drain.is_none() {
        return seen.clone();
    }
    let host = host_of(seen);
    let order = drain::order(&host, &HostDrain::resolve(&host, seen.drain.as_ref()));
    let progress = nova_matches::held(host.sources).unwrap_or_else(|| found.of(order.as_ref()));
    Observed { drain: Some(progress), ..seen.clone() }
}

/// Resolves a compute.
pub fn resolve(seen: &Observed) -> Resolved<'_> {
    let mut host = HostFacts::resolve(seen);
    let deploy = deploys(&seen.compute, seen.node.as_deref());
    let repair = Repair::resolve(seen, deploy);
    let instance = Instance::resolve(seen, repair.of_compute());
    let secrets = (seen.cell_secret.as_ref(), seen.message_bus.as_ref());
    let of_cell = seen.cell.as_deref().map(|it| of_cell(it, secrets.0, secrets.1));
    let of_cell = of_cell.unwrap_or_default();
    let node = preconditions::node(seen, host.is_registered);
    let cell = preconditions::cell(seen);
    let is_untried = preconditions::is_untried(seen, &of_cell);
    let cell_matches = preconditions::cell_matches(seen);
    let certificate = HostCertificate::resolve(seen, node.is_usable);
    let of_runs = certificate.fault.clone().into_iter().chain(drain::fault(&host));
    let input = preconditions::input(seen, migration_key::fault(seen), of_runs);
    let services = |it| inputs::service_inputs(seen, it, &instance, &certificate, &of_cell);
    let services = input.complete.as_ref().map(services);
    let renews = renews_certificate(&seen.compute, &certificate.inputs, services.as_ref());
    host.renews_certificate = renews;
    let config = config::condition(&seen.compute, input.complete.as_ref());
    let is_known = config.holds() && !is_untried;
    let known = input.complete.zip(services).filter(|_| is_known);
    let known =
        known.map(|(config, services)| KnownInputs { all: services.union(), config, services });
    let is_rendered = config.holds();
    let config = config::of_others(seen).filter(|_| is_rendered).unwrap_or(config);
    let is_bad = config.severity == Some(Severity::Error);
    let unknown = || as_recorded(seen.compute.services(), is_bad);
    let is_complete = known.is_some() && config.holds() && input.condition.holds();
    Resolved {
        desired: known.as_ref().map_or_else(unknown, |it| desired_services(&it.services)),
        due_key_files: known
            .as_ref()
            .map(|it| migration_key::due(seen, &it.all))
            .unwrap_or_default(),
        warnings: warnings::config_warnings(seen),
        cell_matches,
        may_run: deploy && is_complete && node.is_usable && cell.is_usable,
        host,
        input: input.condition,
        node,
        cell,
        config,
        is_untried,
        deploy,
        inputs: known,
        instance,
        repair,
        certificate,
    }
}

/// Whether a renewed certificate is all that is to be deployed; `None` where one is renewed, and the
/// inputs of the services are unknown.
fn renews_certificate(
    compute: &ExternalCompute,
    certificate: &Inputs,
    services: Option<&OfServices>,
) -> Option<bool> {
    let Some(status) = &compute.status else { return Some(false) };
    let deployed = &status.deployed_inputs;
    let is_renewed = |(name, digest): (&String, &Digest)| {
        deployed.get(name).is_some_and(|text| !digest.is(text))
    };
    if !certificate.iter().any(is_renewed) {
        return Some(false);
    }
    Some(changed_inputs(deployed, &services?.union()).len() == 1)
}
