//! What keeps a deployment from beginning or from going on, each with object, cause and next step.

use common::api::dataplane::{NodeSet, Service};
use common::conditions::{self, Truth};
use common::engine::build::PRIVATE_KEY;
use common::engine::limit;
use common::engine::mounts::node_sets;
use common::finalizers::is_terminating;
use kube::{Resource as _, ResourceExt};

use crate::deployment::hosts::{by_name, ssh_digests};
use crate::deployment::observe::Observed;
use crate::deployment::services::is_global;
use crate::deployment::tls;
use crate::group::build::sources;
use crate::group::faults::{Fault, Named, sources_of};
use crate::group::networks;
use crate::group::status::INPUT_READY;

/// The condition of a node set, and of a deployment, that all that precedes a deployment is done.
pub const SETUP_READY: &str = "SetupReady";

/// How many hosts one run may touch.
const RUN_LIMIT: usize = 500;

/// What a deployment waits for before it begins: its node sets.
pub fn of_setup(seen: &Observed) -> Vec<Fault> {
    seen.named().into_iter().filter_map(|it| not_set_up(seen, it)).collect()
}

fn not_set_up(seen: &Observed, name: &str) -> Option<Fault> {
    let Some(node_set) = seen.node_sets.get(name) else {
        let text = format!(
            "OpenStackDataPlaneNodeSet {name}, named in spec.nodeSets of \
             OpenStackDataPlaneDeployment {}, does not exist: create it, or delete the deployment \
             and create it with the right name.",
            seen.deployment.name_any()
        );
        return Some(Fault::missing("NodeSetNotFound", text));
    };
    let status = node_set.status.as_ref();
    let is_current =
        status.is_some_and(|it| it.observed_generation == node_set.metadata.generation);
    let conditions = status.map(|it| it.conditions.as_slice()).unwrap_or_default();
    let is_bad = |it: &&conditions::Condition| it.status != Truth::True;
    let told = [INPUT_READY, SETUP_READY].map(|it| conditions::find(conditions, it));
    let is_set_up = conditions::is_true(conditions, SETUP_READY);
    let is_there = seen.inventories.contains(name);
    let bad = told.into_iter().flatten().find(is_bad);
    let is_going = is_terminating(&**node_set);
    if is_current && is_set_up && is_there && bad.is_none() && !is_going {
        return None;
    }
    let why = match bad.filter(|_| is_current) {
        _ if is_going => "it is being deleted.".to_owned(),
        Some(bad) => format!("{}: {}", bad.type_, bad.message),
        None => "its operator has not finished looking at it.".to_owned(),
    };
    let text = format!("OpenStackDataPlaneNodeSet {name} is not set up: {why}");
    Some(Fault::missing("NodeSetNotReady", conditions::trimmed(&text, 1000)))
}

/// What services of a node set need and do not have.
pub fn of_services(seen: &Observed, node_set: &str, services: &[String]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for name in services {
        match seen.services.get(name) {
            None => faults.push(unknown_service(seen, node_set, name)),
            Some(service) => faults.extend(of_service(seen, node_set, name, service)),
        }
    }
    faults
}

fn unknown_service(seen: &Observed, node_set: &str, name: &str) -> Fault {
    let place = if seen.deployment.spec.services_override.is_empty() {
        format!("spec.services of OpenStackDataPlaneNodeSet {node_set}")
    } else {
        format!(
            "spec.servicesOverride of OpenStackDataPlaneDeployment {}",
            seen.deployment.name_any()
        )
    };
    let text = format!(
        "OpenStackDataPlaneService {name}, listed in {place}, does not exist: create it, or delete \
         the deployment and create it with the right list."
    );
    Fault::missing("ServiceNotFound", text)
}

fn of_service(seen: &Observed, node_set: &str, name: &str, service: &Service) -> Vec<Fault> {
    let is_missing =
        |it: &Named| !it.is_optional && !seen.sources.contains_key(&it.source(&seen.namespace));
    let tls = tls::needed(seen, node_set, service);
    let missing = sources_of(&service.spec).into_iter().chain(tls).filter(is_missing);
    let mut faults: Vec<Fault> = missing
        .map(|it| {
            let text = format!(
                "{}, named by OpenStackDataPlaneService {name}, does not exist: create it.",
                it.title()
            );
            Fault::missing("DataSourceNotFound", text)
        })
        .collect();
    let found = sources(&seen.sources, &seen.namespace, service);
    faults.extend(node_sets::faults(&found).iter().map(|it| {
        let text =
            format!("The files of OpenStackDataPlaneService {name} cannot be mounted: {it}.");
        Fault::wrong("DataSourceInvalid", text)
    }));
    if is_global(service) {
        faults.extend(too_many_hosts(seen, name));
    }
    faults
}

fn too_many_hosts(seen: &Observed, service: &str) -> Option<Fault> {
    let n_hosts: usize = seen.node_sets.values().map(|it| it.spec.nodes.len()).sum();
    (n_hosts > RUN_LIMIT).then(|| {
        let text = format!(
            "OpenStackDataPlaneService {service} has one run for all node sets \
             (deployOnAllNodeSets), and they have {n_hosts} hosts where {RUN_LIMIT} are possible: \
             create several deployments, each with fewer node sets."
        );
        Fault::wrong("TooManyHosts", text)
    })
}

/// What the runs on a node set's hosts need beside what its services do.
pub fn of_node_set(seen: &Observed, name: &str) -> Vec<Fault> {
    let Some(node_set) = seen.node_sets.get(name) else {
        return not_set_up(seen, name).into_iter().collect();
    };
    let mut faults: Vec<Fault> = ssh_fault(seen, node_set).into_iter().collect();
    if !seen.inventories.contains(name) {
        let text = format!(
            "Secret {}, the inventory of OpenStackDataPlaneNodeSet {name}, does not exist: the \
             operator writes it as soon as nothing else is wrong with the node set.",
            node_sets::inventory_name(name)
        );
        faults.push(Fault::missing("InventoryNotFound", text));
    }
    let attached = &node_set.spec.network_attachments;
    faults.extend(networks::missing(&seen.networks, attached, &NodeSet::kind(&()), name));
    faults
}

fn ssh_fault(seen: &Observed, node_set: &NodeSet) -> Option<Fault> {
    let secret = &node_set.spec.node_template.ansible_ssh_private_key_secret;
    match ssh_digests(seen, node_set) {
        None => {
            let namespace = &seen.namespace;
            let text = format!(
                "Secret {secret} with the ssh key of OpenStackDataPlaneNodeSet {} does not exist: \
                 create it with kubectl create secret generic -n {namespace} {secret} \
                 --from-file={PRIVATE_KEY}=<private key>.",
                node_set.name_any()
            );
            Some(Fault::missing("SshSecretNotFound", text))
        }
        Some(it) if !it.keys.contains_key(PRIVATE_KEY) => {
            let text = format!("Secret {secret} has no key {PRIVATE_KEY}: add the private key.");
            Some(Fault::missing("SshSecretIncomplete", text))
        }
        Some(_) => None,
    }
}

/// A limit that leaves out every host of all node sets: nothing would ever run.
pub fn of_limit(seen: &Observed) -> Option<Fault> {
    let limit = seen.deployment.spec.ansible_limit.as_deref()?;
    let hosts = |(name, it): (&String, &std::sync::Arc<NodeSet>)| {
        let hosts = by_name(it).into_keys().map(|host| (name.clone(), host));
        hosts.collect::<Vec<_>>()
    };
    let all: Vec<(String, String)> = seen.node_sets.iter().flat_map(hosts).collect();
    let is_out =
        |(group, host): &(String, String)| limit::leaves_out(limit, host, &[group.as_str()]);
    (!all.is_empty() && all.iter().all(is_out)).then(|| {
        let text = format!(
            "spec.ansibleLimit ({limit}) of OpenStackDataPlaneDeployment {} leaves out every host \
             of its node sets: delete it and create one with another limit.",
            seen.deployment.name_any()
        );
        Fault::wrong("LimitMatchesNoHost", conditions::trimmed(&text, 1000))
    })
}
