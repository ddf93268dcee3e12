//! Faults in the user's objects or missing inputs, each with object, cause and next step.

use std::sync::Arc;

use api::dataplane::{Node, Service, service};
use api::problem::Problem;
use kube::ResourceExt;
use operator_core::data_sources::{NamedSource, SourceRef, sources_of};
use operator_core::plan::Target;
use operator_core::run_engine::ssh_secret::{KNOWN_HOSTS, PRIVATE_KEY};
use operator_runtime::source_cache::Digests;

use crate::effective_spec::EffectiveSpec;
use crate::host_conflicts::Claim;
use crate::reasons;
use crate::role::observed::{NodeGroup, Observed};
use crate::role::{networks, vars};

/// The faults that keep the services of a group from running, independently of the host.
#[derive(Clone, Debug, Default)]
pub struct OfGroup {
    /// The missing data sources of each service, with the service's name, in the order of the list.
    pub of_services: Vec<(String, Problem)>,
    /// The faults that concern all services.
    pub of_all: Vec<Problem>,
}

impl OfGroup {
    /// Returns all faults.
    pub fn all(&self) -> Vec<Problem> {
        let of_services = self.of_services.iter().map(|it| &it.1);
        self.of_all.iter().chain(of_services).cloned().collect()
    }

    /// Returns whether a host has to wait before this service.
    pub fn blocks(&self, service: &str) -> bool {
        self.of_services.iter().any(|it| it.0 == service)
    }
}

/// Returns the faults that keep the services of the group from running on any host.
pub fn of_group(seen: &Observed) -> OfGroup {
    let mut faults = OfGroup::default();
    for name in seen.listed() {
        // Nothing of an incomplete list is run.
        let Some(service) = seen.services.get(name) else {
            let why = seen.unreadable.get(name);
            faults.of_all.extend(seen.parent().map(|it| absent_service(&it, name, why)));
            continue;
        };
        faults.of_all.extend(invalid(service));
        let sources = sources_of(&service.spec);
        let is_there = |it: &NamedSource| seen.sources.contains_key(&it.source(&seen.namespace));
        let missing = sources.iter().filter(|it| !is_there(it) && !it.is_optional);
        faults.of_services.extend(missing.map(|it| (name.clone(), missing_source(name, it))));
    }
    faults.of_all.extend(vars::of_role(seen));
    faults.of_all.extend(networks::of_role(seen));
    faults
}

/// Returns the fault of a service that a parent lists and that does not exist.
///
/// `unreadable` is set when the service exists, and says why it cannot be parsed.
pub fn absent_service(parent: &Target, name: &str, unreadable: Option<&String>) -> Problem {
    let place = format!("spec.services of {} {}", parent.kind.kind, parent.name);
    if let Some(why) = unreadable {
        return unreadable_service(name, &place, why);
    }
    Problem::new(
        &reasons::inputs::SERVICE_NOT_FOUND,
        format!(
            "OpenStackDataPlaneService {name}, listed in {place}, does not exist: create it or take \
             it off the list."
        ),
    )
}

/// Returns whether a service of a host does not exist or cannot be parsed.
pub fn lack_services(faults: &[Problem]) -> bool {
    faults.iter().any(|it| {
        [&reasons::inputs::SERVICE_NOT_FOUND, &reasons::inputs::SERVICE_UNREADABLE]
            .contains(&it.reason)
    })
}

/// Returns the fault of a service that is listed at `place` and exists, but cannot be parsed.
pub fn unreadable_service(name: &str, place: &str, why: &str) -> Problem {
    let text = format!(
        "OpenStackDataPlaneService {name}, listed in {place}, exists and cannot be read: {why}. \
         Correct that field of it."
    );
    Problem::new(&reasons::inputs::SERVICE_UNREADABLE, text)
}

/// Returns the fault of an object that a service needs and that does not exist.
pub fn missing_source(service: &str, named: &NamedSource) -> Problem {
    Problem::new(
        &reasons::inputs::DATA_SOURCE_NOT_FOUND,
        format!(
            "{}, named by OpenStackDataPlaneService {service}, does not exist: create it.",
            named.title()
        ),
    )
}

/// Returns the first fault that the CRD's own validation rules reject where they are in force.
pub fn invalid(service: &Service) -> Option<Problem> {
    let first = service::faults::faults(service).into_iter().next()?;
    let name = service.name_any();
    let text = format!("OpenStackDataPlaneService {name} cannot be deployed: {first}.");
    Some(Problem::new(&reasons::inputs::SERVICE_INVALID, text))
}

/// Returns the faults that keep this node from being deployed, in addition to the group's.
pub fn of_node(seen: &Observed, node: &Arc<Node>, effective: &EffectiveSpec) -> Vec<Problem> {
    let name = node.name_any();
    if let Some(fault) = role_fault(seen, &name) {
        // The role may provide what else is missing.
        return vec![fault];
    }
    let mut faults = Vec::new();
    let claim = Claim::of_node_at(node, effective.address().as_deref());
    let taken = claim.taken(&seen.claims).into_iter();
    let object = format!("OpenStackDataPlaneNode {name}");
    // When the other object is gone, the node gets the host.
    faults.extend(taken.map(|it| Problem::new(&reasons::inputs::HOST_TAKEN, it.message(&object))));
    if effective.ansible_host.is_empty() {
        faults.push(Problem::new(
            &reasons::role::HOST_ADDRESS_MISSING,
            format!(
                "OpenStackDataPlaneNode {name} has neither spec.ansibleHost nor spec.hostName: set \
                 one, so that the host can be reached."
            ),
        ));
    }
    faults.extend(effective.undecided_address().into_iter().map(|var| {
        Problem::new(
            &reasons::inputs::HOST_ADDRESS_INVALID,
            format!(
                "The variable {var} of OpenStackDataPlaneNode {name} is no plain address or port, \
                 or comes from a Secret: two runs on one host are told apart by it, so set \
                 spec.ansibleHost and spec.node.ansiblePort instead."
            ),
        )
    }));
    match &effective.ssh_secret {
        None => faults.push(Problem::new(
            &reasons::role::SSH_SECRET_NOT_NAMED,
            format!(
                "OpenStackDataPlaneNode {name} names no ssh key: set \
                 spec.node.ansibleSSHPrivateKeySecret, or \
                 spec.nodeTemplate.ansibleSSHPrivateKeySecret of its role."
            ),
        )),
        Some(secret) => {
            let digests = seen.sources.get(&SourceRef::secret(&seen.namespace, secret));
            faults.extend(ssh_fault(&seen.namespace, secret, digests));
        }
    }
    faults.extend(vars::of_node(seen, node));
    faults.extend(networks::of_node(seen, node));
    faults
}

fn role_fault(seen: &Observed, node: &str) -> Option<Problem> {
    match &seen.group {
        NodeGroup::Node(_) if seen.listed().is_empty() => Some(Problem::new(
            &reasons::role::ROLE_NOT_NAMED,
            format!(
                "OpenStackDataPlaneNode {node} has neither spec.role nor spec.services: name the \
                 OpenStackDataPlaneRole whose services it gets, or list services of its own."
            ),
        )),
        NodeGroup::Role(role) if seen.role.is_none() => Some(Problem::new(
            &reasons::role::ROLE_NOT_FOUND,
            format!(
                "OpenStackDataPlaneRole {role}, named in spec.role of OpenStackDataPlaneNode \
                 {node}, does not exist: create it or correct spec.role."
            ),
        )),
        NodeGroup::Role(_) | NodeGroup::Node(_) => None,
    }
}

/// Returns the fault of the Secret with the ssh key, if it has one.
///
/// `digests` are those of its content; `None` means that the Secret does not exist.
pub fn ssh_fault(namespace: &str, secret: &str, digests: Option<&Digests>) -> Option<Problem> {
    let Some(digests) = digests else {
        return Some(Problem::new(
            &reasons::inputs::SSH_SECRET_NOT_FOUND,
            format!(
                "Secret {secret} with the ssh key does not exist: create it with kubectl create \
                 secret generic -n {namespace} {secret} --from-file={PRIVATE_KEY}=<private key>, \
                 and --from-file={KNOWN_HOSTS}=<known hosts> where you know the hosts' own keys."
            ),
        ));
    };
    if digests.keys.contains_key(PRIVATE_KEY) {
        return None;
    }
    let text = format!(
        "Secret {secret} has no key {PRIVATE_KEY}: add it with the private key that the hosts \
         accept."
    );
    Some(Problem::new(&reasons::inputs::SSH_SECRET_INCOMPLETE, text))
}
