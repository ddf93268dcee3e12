//! Faults of a node set: what the user wrote wrongly, or what is missing, each with object, cause
//! and next step.

use api::dataplane::node_set::MAX_HOSTS;
use api::dataplane::{AnsibleOpts, Service};
use api::names::is_dns_label;
use api::problem::Problem;
use kube::ResourceExt;
use operator_core::data_sources::{NamedSource, SourceRef, sources_of};
use operator_core::node_set_host;
use operator_core::node_set_host::Host;
use operator_core::plan::Target;
use operator_core::run_engine::connection_vars::{HOST_VAR, PORT_VAR};
use operator_core::run_engine::mounts::node_sets::faults as source_faults;
use operator_core::run_engine::run_template::MountedSource;
use operator_core::run_engine::ssh_secret::{KeyFault, PRIVATE_KEY};

use crate::host::conflicts::{Claim, ClaimIndex};
use crate::host::services::{
    absent_service, ca_bundle, invalid, not_included, of_one_type, source_fault,
};
use crate::host::ssh_trust::secret_fault;
use crate::host::{networks, vars};
use crate::node_set::inventory::given;
use crate::node_set::kept_hosts::TerminatingHosts;
use crate::node_set::machine_request::{Machines, name_fault};
use crate::node_set::observed::Observed;
use crate::reasons;

/// Size limit of an inventory in bytes: an object has 1 MiB at most, and its metadata needs room.
pub const SIZE_LIMIT: usize = 1_000_000;

const KIND: &str = "OpenStackDataPlaneNodeSet";

/// Returns the faults of the hosts. With any of them, nothing is requested for the hosts.
pub fn of_hosts(
    seen: &Observed,
    hosts: &[Host<'_>],
    terminating: &TerminatingHosts,
    machines: &Machines,
) -> Vec<Problem> {
    let name = seen.set.name_any();
    let mut problems = of_size(&name, hosts.len(), terminating.len());
    problems.extend(hosts.iter().filter_map(|it| of_name(&name, it)));
    if machines.are_asked {
        let fault = |it| name_fault(&machines.names, &seen.set, it);
        problems.extend(hosts.iter().filter_map(fault));
    }
    problems.extend(hosts.iter().filter_map(|it| of_address(seen, it)));
    problems.extend(of_claims(seen, terminating));
    problems
}

/// Returns the other faults that keep the node set from having an inventory; then nothing can be
/// deployed.
pub fn of_set(seen: &Observed) -> Vec<Problem> {
    let mut problems = of_variables(seen);
    let secret = &seen.set.spec.node_template.ansible_ssh_private_key_secret;
    let digests = seen.sources.get(&SourceRef::secret(&seen.namespace, secret));
    problems.extend(secret_fault(&seen.namespace, secret, digests));
    problems.extend(of_volumes(seen));
    problems
}

/// Returns the faults of the networks that the node set names: each deployment waits for these, and
/// the inventory does not need them.
pub fn of_networks(seen: &Observed) -> Vec<Problem> {
    let attachments = &seen.set.spec.network_attachments;
    networks::missing(&seen.networks, attachments, KIND, &seen.set.name_any())
}

/// Returns the faults that keep listed services from being deployed. A deployment of other services
/// may go on.
pub fn of_services(seen: &Observed) -> Vec<Problem> {
    let set = &seen.set;
    let place = format!("spec.services of {KIND} {}", set.name_any());
    let mut problems = of_one_type(&place, &set.spec.services, &seen.services);
    for name in &set.spec.services {
        match seen.services.get(name) {
            None => {
                let why = seen.unreadable.get(name);
                problems.push(absent_service(&Target::of(&**set), name, why));
            }
            Some(service) => problems.extend(of_sources(seen, name, service)),
        }
    }
    problems
}

fn of_sources(seen: &Observed, name: &str, service: &Service) -> Vec<Problem> {
    let mut problems: Vec<Problem> = invalid(service).into_iter().collect();
    problems.extend(not_included(service, seen.runner));
    let bundle = ca_bundle(service).filter(|(_, is_demanded)| *is_demanded);
    let bundle = bundle.map(|(name, _)| NamedSource::secret(name));
    let found = |it: &NamedSource| seen.sources.get(&it.source(&seen.namespace));
    let fault = |it: &NamedSource| source_fault(&seen.namespace, name, it, found(it));
    problems.extend(bundle.and_then(|it| fault(&it)));
    let mut sources = Vec::new();
    for named in sources_of(&service.spec) {
        problems.extend(fault(&named));
        let Some(digests) = found(&named) else { continue };
        problems.extend(digests.ssh_key_fault.map(|it| unusable_key(name, &named, it)));
        let keys = digests.keys.keys().cloned().collect();
        sources.push(MountedSource { kind: named.kind, name: named.name, keys });
    }
    problems.extend(source_faults(&sources).into_iter().map(|it| {
        Problem::new(
            &reasons::inputs::DATA_SOURCE_INVALID,
            format!("OpenStackDataPlaneService {name}: {it}."),
        )
    }));
    problems
}

/// Returns the fault of an ssh key among the files of a service.
fn unusable_key(service: &str, named: &NamedSource, fault: KeyFault) -> Problem {
    let text = format!(
        "{PRIVATE_KEY} of {}, named by OpenStackDataPlaneService {service}, {}.",
        named.title(),
        fault.text()
    );
    Problem::new(&reasons::inputs::DATA_SOURCE_INVALID, text)
}

fn of_size(name: &str, n_hosts: usize, n_terminating: usize) -> Vec<Problem> {
    let terminating = if n_terminating > 0 {
        format!(" and {n_terminating} hosts that are still terminating")
    } else {
        String::new()
    };
    let text = format!(
        "{KIND} {name} has {n_hosts} nodes{terminating}, and {MAX_HOSTS} is the most: divide them \
         among several node sets, which one deployment can name together."
    );
    if n_hosts + n_terminating > MAX_HOSTS {
        vec![Problem::new(&reasons::node_set::TOO_MANY_HOSTS, text)]
    } else {
        Vec::new()
    }
}

/// Returns the fault of an inventory that is too large for an object.
pub fn of_inventory(name: &str, size: usize) -> Option<Problem> {
    let text = format!(
        "The inventory of {KIND} {name} has {size} bytes, and {SIZE_LIMIT} is the most that an \
         object can hold: divide its nodes among several node sets, or put large variables into \
         files of a service's dataSources."
    );
    (size > SIZE_LIMIT).then(|| Problem::new(&reasons::node_set::INVENTORY_TOO_LARGE, text))
}

fn of_name(set: &str, host: &Host<'_>) -> Option<Problem> {
    (!is_dns_label(&host.name)).then(|| {
        let text = format!(
            "Node {} of {KIND} {set} has the host name {:?}, which no host can have: up to the first \
             dot it consists of at most 63 lower-case letters, digits and dashes. Correct \
             spec.nodes[{}].hostName.",
            host.key, host.host_name, host.key
        );
        Problem::new(&reasons::node_set::HOST_NAME_INVALID, text)
    })
}

fn of_address(seen: &Observed, host: &Host<'_>) -> Option<Problem> {
    let opts = host.node.ansible.as_ref();
    let address = opts.and_then(|it| it.ansible_host.as_deref()).unwrap_or_default();
    let is_address = address.parse::<std::net::IpAddr>().is_ok();
    (seen.set.spec.pre_provisioned && !is_address).then(|| {
        let text = format!(
            "Node {} of {KIND} {} has no valid IP address in ansible.ansibleHost, which a \
             pre-provisioned node needs: set spec.nodes[{}].ansible.ansibleHost.",
            host.key,
            seen.set.name_any(),
            host.key
        );
        Problem::new(&reasons::node_set::HOST_ADDRESS_MISSING, text)
    })
}

fn of_claims(seen: &Observed, terminating: &TerminatingHosts) -> Vec<Problem> {
    let name = seen.set.name_any();
    let mut all = Claim::of_node_set(&seen.set).with_nodes(seen.nodes.all().map(|it| it.1));
    all.hosts.retain(|it| !it.is_terminating || terminating.contains_key(&it.name));
    let still = all.still_terminating().into_iter().map(|(host, other, mark)| {
        let text = format!(
            "Host {host} of {KIND} {name} has the {mark} of host {other}, which was taken out and is \
             still terminating: it is deployed once status.hosts no longer has {other}, see \
             docs/removal.md. To deploy it before, describe it as {other} again."
        );
        Problem::new(&reasons::inputs::HOST_TAKEN, text)
    });
    let still: Vec<Problem> = still.collect();
    let claim = all.without_terminating();
    let twice = claim.twice().into_iter().map(|(host, before, mark)| {
        let text = format!(
            "{before} and {host} of {KIND} {name} are one host, for both have the {mark}: take one \
             of them out, or correct it."
        );
        Problem::new(&reasons::node_set::HOST_TWICE, text)
    });
    let object = format!("{KIND} {name}");
    let taken = claim.taken(&ClaimIndex::of(&seen.neighbours)).into_iter();
    // If the other object goes away, this one gets the host.
    let taken = taken.map(|it| Problem::new(&reasons::inputs::HOST_TAKEN, it.message(&object)));
    twice.chain(taken).chain(still).collect()
}

fn of_variables(seen: &Observed) -> Vec<Problem> {
    let name = seen.set.name_any();
    let template = seen.set.spec.node_template.ansible.as_ref();
    let template = template.map(|it| ("spec.nodeTemplate.ansible".to_owned(), it));
    let nodes = seen.set.spec.nodes.iter();
    let nodes = nodes
        .filter_map(|(key, it)| Some((format!("spec.nodes[{key}].ansible"), it.ansible.as_ref()?)));
    let mut problems = Vec::new();
    for (place, opts) in template.into_iter().chain(nodes) {
        let list = format!("{place}.ansibleVarsFrom of {KIND} {name}");
        let (namespace, entries) = (&seen.namespace, &opts.ansible_vars_from);
        problems.extend(vars::faults(namespace, &seen.objects, entries, &list));
        problems.extend(undecided(seen, opts).into_iter().map(|var| {
            Problem::new(
                &reasons::inputs::HOST_ADDRESS_INVALID,
                format!(
                    "The variable {var} in {place} of {KIND} {name} is no plain address or port, \
                     or comes from an object: two runs on one host are distinguished by it, so set \
                     ansibleHost and ansiblePort there instead."
                ),
            )
        }));
    }
    problems
}

fn undecided(seen: &Observed, opts: &AnsibleOpts) -> Vec<&'static str> {
    let given = given(&seen.namespace, opts, &seen.objects);
    let from_objects = [HOST_VAR, PORT_VAR].into_iter().filter(|it| given.contains_key(*it));
    node_set_host::undecided(opts).into_iter().chain(from_objects).collect()
}

fn of_volumes(seen: &Observed) -> Vec<Problem> {
    let mounts = seen.set.spec.node_template.extra_mounts.iter();
    let names = mounts.flat_map(|it| &it.volumes).map(|it| it.name.as_str());
    let fault = |volume: &str| {
        let text = format!(
            "Volume {volume:?} in spec.nodeTemplate.extraMounts of {KIND} {} has a name that no \
             volume can have: at most 63 lower-case letters, digits and dashes.",
            seen.set.name_any()
        );
        Problem::new(&reasons::node_set::VOLUME_NAME_INVALID, text)
    };
    names.filter(|it| !is_dns_label(it)).map(fault).collect()
}
