//! Faults that keep a deployment from beginning or continuing, each with object, cause and next
//! step.

use std::collections::BTreeMap;
use std::slice;

use api::conditions::{self, ConditionStatus};
use api::dataplane::condition_types::{INPUT_READY, NODE_SET_PROVISION_READY, SETUP_READY};
use api::dataplane::node_section::DEFAULT_BATCH_SIZE;
use api::dataplane::{DeploymentNodeSet, Node, NodeSet, Service};
use api::problem::Problem;
use kube::{Resource as _, ResourceExt};
use operator_core::data_sources::{NamedSource, sources_of};
use operator_core::finalizers::is_terminating;
use operator_core::run_engine::limit;
use operator_core::run_engine::mounts::node_sets;

use crate::conditions::NAMED;
use crate::deployment::hosts::{by_name, has_machine, hosts_of, ssh_digests, within_limit};
use crate::deployment::node_set_part::NodeSetPart;
use crate::deployment::observed::Observed;
use crate::deployment::services::{List, is_global};
use crate::deployment::{order, tls};
use crate::host::networks;
use crate::host::services::{
    ServiceFaults, invalid, of_one_type, source_fault, sources, unreadable_service,
};
use crate::host::ssh_trust::secret_fault;
use crate::reasons;

/// The maximum number of hosts of one run.
const RUN_LIMIT: usize = 500;
/// The maximum size in bytes of a status after each service has run once.
///
/// An object has 1.5 MiB at most, and the status also records further attempts.
const STATUS_LIMIT: usize = 700_000;
/// The size in bytes of a host's entry beside its name: hosts are a list of names.
const HOST_SIZE: usize = 4;
/// The size in bytes of a run's entry in the status.
const RUN_SIZE: usize = 330;

/// Returns the missing inputs of the next runs of a node set that has begun, of which some host has not
/// completed the `open` services yet.
pub fn missing_inputs(seen: &Observed, part: &NodeSetPart, open: &[String]) -> ServiceFaults {
    let node_set = part.name.as_str();
    if let Some(fault) = of_replaced(seen, node_set, &part.begun) {
        return ServiceFaults { of_all: vec![fault], ..ServiceFaults::default() };
    }
    let of_service = |name: &String| {
        let faults = of_services(seen, node_set, slice::from_ref(name));
        faults.into_iter().map(|it| (name.clone(), it)).collect::<Vec<_>>()
    };
    let of_services = open.iter().flat_map(of_service).collect();
    ServiceFaults { of_all: of_node_set(seen, node_set), of_services }
}

/// Returns the faults of node sets that a deployment waits for before it begins, and of other
/// deployments.
pub fn of_setup(seen: &Observed) -> Vec<Problem> {
    let of_sets = seen.named().into_iter().filter_map(|it| not_set_up(seen, it));
    of_sets.chain(order::faults(seen)).collect()
}

fn not_set_up(seen: &Observed, name: &str) -> Option<Problem> {
    let Some(node_set) = seen.node_sets.get(name) else {
        if let Some(why) = seen.unreadable_sets.get(name) {
            return Some(unreadable_set(seen, name, why));
        }
        let text = format!(
            "OpenStackDataPlaneNodeSet {name}, named in spec.nodeSets of \
             OpenStackDataPlaneDeployment {}, does not exist: create it, or delete the deployment \
             and create it with the right name.",
            seen.deployment.name_any()
        );
        return Some(Problem::new(&reasons::deployment::NODE_SET_NOT_FOUND, text));
    };
    let status = node_set.status.as_ref();
    let is_current =
        status.is_some_and(|it| it.observed_generation == node_set.metadata.generation);
    // Its other conditions may be about services that this deployment does not have.
    let setup = conditions::find(node_set.conditions(), SETUP_READY).filter(|_| is_current);
    let is_set_up = setup.is_some_and(|it| it.status == ConditionStatus::True);
    let is_going = is_terminating(&**node_set);
    if is_set_up && seen.inventories.contains(name) && !is_going {
        let is_empty = hosts_of(seen, name).next().is_none();
        // Where all hosts were left out, nothing would be run, and that would be a success.
        let hosts: Vec<String> = if is_empty {
            within_limit(&seen.deployment, node_set).collect()
        } else {
            hosts_of(seen, name).collect()
        };
        let nodes = of_nodes(seen, name, hosts.iter().cloned());
        return nodes.or_else(|| of_machines(seen, name, hosts.into_iter()));
    }
    let cause = setup.filter(|it| it.reason == reasons::inputs::INPUT_MISSING.word);
    let cause = cause.and_then(|_| conditions::find(node_set.conditions(), INPUT_READY));
    let why = match cause.or(setup).filter(|_| !is_set_up) {
        _ if is_going => "it is being deleted.".to_owned(),
        Some(bad) => format!("{}: {}", bad.type_, bad.message),
        None => "its operator has not finished reconciling it.".to_owned(),
    };
    let text = format!("OpenStackDataPlaneNodeSet {name} is not set up: {why}");
    Some(Problem::new(&reasons::deployment::NODE_SET_NOT_READY, conditions::shortened(&text, 1000)))
}

fn unreadable_set(seen: &Observed, name: &str, why: &str) -> Problem {
    let text = format!(
        "OpenStackDataPlaneNodeSet {name}, named in spec.nodeSets of OpenStackDataPlaneDeployment {}, \
         exists and cannot be read: {why}. Correct that field of it.",
        seen.deployment.name_any()
    );
    Problem::new(&reasons::deployment::NODE_SET_UNREADABLE, conditions::shortened(&text, 1000))
}

/// Returns the fault of hosts without a node that stays; nothing is deployed to them.
pub fn of_nodes(
    seen: &Observed,
    name: &str,
    hosts: impl Iterator<Item = String>,
) -> Option<Problem> {
    seen.node_sets.get(name)?;
    let has_none = |it: &String| seen.node(name, it).is_none_or(Node::is_leaving);
    let open: Vec<String> = hosts.filter(has_none).collect();
    if open.is_empty() {
        return None;
    }
    let text = format!(
        "{} hosts of OpenStackDataPlaneNodeSet {name} have no OpenStackDataPlaneNode yet, or it is \
         being deleted, and nothing is deployed to them until they have: {}. The operator makes them; \
         where that is not possible, NodesAccepted of the node set says why.",
        open.len(),
        conditions::first_names(&open, NAMED)
    );
    Some(Problem::new(&reasons::deployment::NODES_NOT_READY, conditions::shortened(&text, 1000)))
}

/// Returns the fault of hosts without a ready machine; nothing is deployed to them.
pub fn of_machines(
    seen: &Observed,
    name: &str,
    hosts: impl Iterator<Item = String>,
) -> Option<Problem> {
    let node_set = seen.node_sets.get(name)?;
    let has_machine = |it: &str| has_machine(node_set, it, seen.node(name, it));
    let open: Vec<String> = hosts.filter(|it| !has_machine(it)).collect();
    if open.is_empty() {
        return None;
    }
    let reported = conditions::find(node_set.conditions(), NODE_SET_PROVISION_READY);
    let reported = reported.map(|it| format!(" {}: {}", it.type_, it.message)).unwrap_or_default();
    let text = format!(
        "{} hosts of OpenStackDataPlaneNodeSet {name} have no machine yet, and nothing is deployed to \
         them until they have: {}.{reported}",
        open.len(),
        conditions::first_names(&open, NAMED)
    );
    Some(Problem::new(&reasons::deployment::MACHINES_NOT_READY, conditions::shortened(&text, 1000)))
}

/// Returns the faults of a node set's list of services.
pub fn of_list(seen: &Observed, node_set: &str) -> Vec<Problem> {
    of_one_type(&place(seen, node_set), seen.listed(node_set), &seen.services)
}

/// Returns the faults of a node set's services and of what they need.
pub fn of_services(seen: &Observed, node_set: &str, services: &[String]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for name in services {
        match seen.services.get(name) {
            None => problems.push(absent_service(seen, node_set, name)),
            Some(service) => problems.extend(of_service(seen, node_set, name, service)),
        }
    }
    problems
}

/// Returns the path of the list of services that a node set gets from the deployment.
fn place(seen: &Observed, node_set: &str) -> String {
    if seen.deployment.spec.services_override.is_empty() {
        return format!("spec.services of OpenStackDataPlaneNodeSet {node_set}");
    }
    let deployment = seen.deployment.name_any();
    format!("spec.servicesOverride of OpenStackDataPlaneDeployment {deployment}")
}

fn absent_service(seen: &Observed, node_set: &str, name: &str) -> Problem {
    let place = place(seen, node_set);
    if let Some(why) = seen.unreadable.get(name) {
        return unreadable_service(name, &place, why);
    }
    let text = format!(
        "OpenStackDataPlaneService {name}, listed in {place}, does not exist: create it, or delete \
         the deployment and create it with the right list."
    );
    Problem::new(&reasons::inputs::SERVICE_NOT_FOUND, text)
}

fn of_service(seen: &Observed, node_set: &str, name: &str, service: &Service) -> Vec<Problem> {
    let fault = |it: NamedSource| {
        let found = seen.sources.get(&it.source(&seen.namespace));
        source_fault(&seen.namespace, name, &it, found)
    };
    let tls = tls::needed(seen, node_set, (name, service));
    let needed = sources_of(&service.spec).into_iter().chain(tls);
    let mut problems: Vec<Problem> = needed.filter_map(fault).collect();
    problems.extend(invalid(service));
    let found = sources(&seen.sources, &seen.namespace, service);
    problems.extend(node_sets::faults(&found).iter().map(|it| {
        let text =
            format!("The files of OpenStackDataPlaneService {name} cannot be mounted: {it}.");
        Problem::new(&reasons::inputs::DATA_SOURCE_INVALID, text)
    }));
    if is_global(service) {
        problems.extend(too_many_hosts(seen, name));
    }
    problems
}

/// Returns the faults of certificates that services of a node set wait for before a deployment
/// begins.
///
/// Afterwards they exist, and a later change of them does not block the deployment.
pub fn of_certificates(seen: &Observed, node_set: &str, services: &[String]) -> Vec<Problem> {
    let Some(set) = seen.node_sets.get(node_set) else { return Vec::new() };
    let of_service = |name: &String| {
        let service = seen.services.get(name)?;
        let why = tls::uncertified(seen, set, (name, service))?;
        let text = format!(
            "OpenStackDataPlaneService {name} waits for certificates of OpenStackDataPlaneNodeSet \
             {node_set}: {why}"
        );
        Some(Problem::new(
            &reasons::deployment::CERTIFICATES_NOT_READY,
            conditions::shortened(&text, 1000),
        ))
    };
    services.iter().filter_map(of_service).collect()
}

fn too_many_hosts(seen: &Observed, service: &str) -> Option<Problem> {
    let n_hosts: usize = seen.node_sets.values().map(|it| it.spec.nodes.len()).sum();
    (n_hosts > RUN_LIMIT).then(|| {
        let text = format!(
            "OpenStackDataPlaneService {service} has one run for all node sets \
             (deployOnAllNodeSets), and they have {n_hosts} hosts where {RUN_LIMIT} are possible: \
             create several deployments, each with fewer node sets."
        );
        Problem::new(&reasons::deployment::TOO_MANY_HOSTS, text)
    })
}

/// Returns the fault of a deployment whose status would become too large to be written.
pub fn of_size(seen: &Observed, lists: &BTreeMap<String, List>) -> Option<Problem> {
    let sizes = lists.iter().map(|(name, list)| {
        let names: Vec<String> = hosts_of(seen, name).collect();
        let n_runs = names.len().div_ceil(DEFAULT_BATCH_SIZE) * list.services.len();
        let hosts: usize = names.iter().map(|it| it.len() + HOST_SIZE).sum();
        (names.len(), hosts + n_runs * RUN_SIZE)
    });
    let (n_hosts, size) = sizes.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    (size > STATUS_LIMIT).then(|| {
        let text = format!(
            "OpenStackDataPlaneDeployment {} is for {n_hosts} hosts, which its status cannot list \
             one by one: delete it, and create several deployments, each with fewer node sets or \
             with an ansibleLimit.",
            seen.deployment.name_any()
        );
        Problem::new(&reasons::deployment::TOO_MANY_HOSTS, text)
    })
}

/// Returns the faults of what the runs on a node set's hosts need besides their services' inputs.
pub fn of_node_set(seen: &Observed, name: &str) -> Vec<Problem> {
    let Some(node_set) = seen.node_sets.get(name) else {
        return not_set_up(seen, name).into_iter().collect();
    };
    let secret = &node_set.spec.node_template.ansible_ssh_private_key_secret;
    let ssh = secret_fault(&seen.namespace, secret, ssh_digests(seen, node_set));
    let mut problems: Vec<Problem> = ssh.into_iter().collect();
    if !seen.inventories.contains(name) {
        let text = format!(
            "Secret {}, the inventory of OpenStackDataPlaneNodeSet {name}, does not exist: the \
             operator writes it as soon as nothing else is wrong with the node set.",
            node_sets::inventory_name(name)
        );
        problems.push(Problem::new(&reasons::deployment::INVENTORY_NOT_FOUND, text));
    }
    let attached = &node_set.spec.network_attachments;
    problems.extend(networks::missing(&seen.networks, attached, &NodeSet::kind(&()), name));
    problems
}

/// Returns the fault of a node set that was replaced by another one of its name after the
/// deployment began.
fn of_replaced(seen: &Observed, name: &str, begun: &DeploymentNodeSet) -> Option<Problem> {
    let is_replaced = seen.node_sets.get(name).is_some_and(|it| !begun.is_of(it));
    is_replaced.then(|| {
        let text = format!(
            "OpenStackDataPlaneNodeSet {name}, with which OpenStackDataPlaneDeployment {deployment} \
             began, was deleted, and another one has its name now: delete \
             OpenStackDataPlaneDeployment {deployment}, and create one for the new node set.",
            deployment = seen.deployment.name_any()
        );
        Problem::new(&reasons::deployment::NODE_SET_REPLACED, text)
    })
}

/// Returns the fault of node sets without hosts: a run needs hosts, so nothing would ever run, not
/// even on localhost.
pub fn of_no_hosts(seen: &Observed) -> Option<Problem> {
    let named = seen.named();
    let is_empty = |it: &&str| seen.node_sets.get(*it).is_some_and(|it| it.spec.nodes.is_empty());
    (!named.is_empty() && named.iter().all(is_empty)).then(|| {
        let text = format!(
            "Nothing is run: no hosts are in the node sets of OpenStackDataPlaneDeployment {} ({}), \
             and a service runs on hosts alone. Add spec.nodes to one of them, and the deployment \
             begins; or delete it.",
            seen.deployment.name_any(),
            conditions::first_names(&named, NAMED)
        );
        Problem::new(&reasons::deployment::NO_HOSTS, text)
    })
}

/// Returns the fault of a limit that excludes every host of all node sets, so that nothing would
/// ever run, or that names a host which none of them has.
pub fn of_limit(seen: &Observed) -> Option<Problem> {
    let limit = seen.deployment.spec.ansible_limit.as_deref()?;
    let hosts: Vec<(String, &str)> = seen
        .node_sets
        .iter()
        .flat_map(|(name, it)| by_name(it).into_keys().map(move |host| (host, name.as_str())))
        .collect();
    let is_known = seen.named().iter().all(|it| seen.node_sets.contains_key(*it));
    if hosts.is_empty() || !is_known {
        return None;
    }
    let unmatched = limit::unmatched(limit, &hosts);
    let what = if seen.node_sets.keys().all(|it| hosts_of(seen, it).next().is_none()) {
        "leaves out every host of its node sets".to_owned()
    } else if unmatched.is_empty() {
        return None;
    } else {
        let names = conditions::first_names(&unmatched, NAMED);
        format!("names {names}, which no host of its node sets is called")
    };
    let text = format!(
        "spec.ansibleLimit ({limit}) of OpenStackDataPlaneDeployment {} {what}: delete it and create \
         one with another limit.",
        seen.deployment.name_any()
    );
    Some(Problem::new(
        &reasons::deployment::LIMIT_MATCHES_NO_HOST,
        conditions::shortened(&text, 1000),
    ))
}
