//! The machines of a node set's hosts: the baremetal set that it requests, and each machine's
//! provisioning state.

use std::collections::{BTreeMap, BTreeSet};

use api::baremetal::BaremetalHost;
use api::conditions::ConditionDraft;
use api::dataplane::condition_types::NODE_SET_PROVISION_READY;
use api::dataplane::{HostMachine, NodeSet, NodeSetMachines};
use api::problem::Problem;
use api::shared::AnyMap;
use jiff::Timestamp;
use kube::ResourceExt;
use operator_core::finalizers::is_terminating;
use operator_core::hash;
use operator_core::keyed::short;
use operator_core::node_set_host::{Host, hosts, machine_template};
use operator_core::plan::{Step, Target};
use operator_core::run_engine::host_key::recorded_trust;
use serde_json::{Value, json};

use crate::finalizers::is_used;
use crate::host::effective_spec::has_own_options;
use crate::host::inputs::Inputs;
use crate::host::machines::machine_names::{MachineNames, is_on_unmanaged_machine, renamed};
use crate::host::machines::provisioning_state::{
    self, Known, ProvisioningState, is_awaited, knows,
};
use crate::host::machines::request::MachineRequest;
use crate::host::machines::template::{merged, with_prefix};
use crate::host::machines::{machine_conditions, set};
use crate::node_set::external_resources::ExternalResources;
use crate::node_set::ipam::{DNS_SERVERS, labels};
use crate::node_set::kept_hosts::{KeptHosts, TerminatingHosts};
use crate::node_set::last_looks;
use crate::node_set::observed::{Observed, own_set};
use crate::reasons;

/// The evaluated machines of a node set.
#[derive(Clone, Debug, Default)]
pub struct Machines {
    /// Whether the node set requests machines.
    pub are_asked: bool,
    /// Provisioning state by host name, or the fault that keeps the host from getting a machine.
    pub states: BTreeMap<String, Result<ProvisioningState, Problem>>,
    /// The status record of each machine, by host name. A record that cannot be updated now is
    /// kept.
    pub records: BTreeMap<String, HostMachine>,
    /// The records of hosts that are terminating, which are no inputs of a deployment.
    pub of_terminating: BTreeMap<String, HostMachine>,
    /// The names under which the machines of hosts are known, by the host's key in `spec.nodes`.
    pub names: MachineNames,
}

impl Machines {
    /// Evaluates the machines of all hosts.
    pub fn of(
        seen: &Observed,
        hosts: &[Host<'_>],
        terminating: &TerminatingHosts,
        now: Timestamp,
    ) -> Self {
        let recorded = seen.set.status.as_ref().map(|it| &it.machines);
        let recorded = |it: &str| recorded?.get(it);
        let mut machines =
            Self { are_asked: machine_template(&seen.set).is_some(), ..Self::default() };
        let kept = terminating.keys().filter_map(|it| Some((it.clone(), recorded(it)?.clone())));
        machines.of_terminating = kept.collect();
        let request = request(seen, hosts);
        // Keeps the records of hosts that have been renamed.
        for (name, record) in request.names.all().filter_map(|it| Some((it, recorded(it)?.clone())))
        {
            let ready = record.ready && !machines.are_asked;
            machines.records.insert(name.to_owned(), HostMachine { ready, ..record });
        }
        let title = format!("{} {}", request.owner.kind.kind, request.owner.name);
        for host in hosts {
            let name = &host.name;
            let mut record = recorded(name).cloned();
            if machines.are_asked {
                let fault = name_fault(&request.names, &seen.set, host).map_or(Ok(()), Err);
                let followed = || request.provisioning((name, &title), &known(seen, host), now);
                let provisioning = fault.and_then(|()| followed());
                record = provisioning_state::record(&provisioning, recorded(name));
                machines.states.insert(name.clone(), provisioning);
            }
            machines.records.extend(record.map(|it| (name.clone(), it)));
        }
        Self { names: request.names, ..machines }
    }

    /// Returns the inputs of a deployment that come from the machines.
    pub fn inputs(&self) -> Inputs {
        let one = |(name, it): (&String, &HostMachine)| {
            Some((format!("machine {name}"), hash::short(it.own_installation()?).into()))
        };
        self.records.iter().filter_map(one).collect()
    }

    /// Returns the digest of all installations; `None` if there are none.
    pub fn digest(&self) -> Option<String> {
        let inputs = self.inputs();
        (!inputs.is_empty()).then(|| short(&inputs).text())
    }

    /// Reports the state of the machines. Returns `None` for pre-provisioned and empty node sets.
    pub fn condition<'a>(&self, seen: &Observed, hosts: &'a [Host<'_>]) -> Option<ConditionDraft> {
        if seen.set.spec.pre_provisioned || seen.set.spec.nodes.is_empty() {
            return None;
        }
        if !self.are_asked {
            let text = "The hosts are provisioned by others.";
            return Some(reasons::machines::NOT_REQUIRED.condition(NODE_SET_PROVISION_READY, text));
        }
        let owner = Target::of(&*seen.set);
        let found = |host: &'a Host<'_>| {
            let machine = self.states.get(&host.name)?;
            let address = host.address();
            let found =
                machine_conditions::condition(NODE_SET_PROVISION_READY, &owner, machine, &address);
            Some((host.name.as_str(), found))
        };
        let all: Vec<(&str, ConditionDraft)> = hosts.iter().filter_map(found).collect();
        Some(machine_conditions::sum(NODE_SET_PROVISION_READY, &all))
    }
}

/// Returns the node set's request for the machines of these hosts.
fn request<'a>(seen: &'a Observed, hosts: &[Host<'_>]) -> MachineRequest<'a> {
    let asked = hosts.iter().map(|it| it.name.clone()).collect();
    MachineRequest::of(&seen.machines, Target::of(&*seen.set), names_of(seen), asked)
}

/// Returns the names of the hosts whose machines are chosen and still part of the baremetal set, by
/// the host's key in `spec.nodes`.
fn names_of(seen: &Observed) -> MachineNames {
    let mut names = MachineNames::default();
    let (Some(own), Some(status)) = (own_set(seen), &seen.set.status) else { return names };
    // If several machines name one host, the last one is its.
    for (name, machine) in status.machines.iter().rev() {
        let key = machine.node.as_ref().filter(|it| seen.set.spec.nodes.contains_key(*it));
        if let Some(key) = key.filter(|_| machine.is_chosen() && knows(own, name)) {
            names.give(key, name);
        }
    }
    names
}

/// Returns the fault of a host whose machine has another name, or whose name belongs to another
/// host's machine.
pub fn name_fault(names: &MachineNames, set: &NodeSet, host: &Host<'_>) -> Option<Problem> {
    let (key, called, title) =
        (host.key, &host.name, format!("OpenStackDataPlaneNodeSet {}", set.name_any()));
    if let Some(known) = names.machine(key).filter(|it| it != called) {
        let template = machine_template(set).and_then(|it| it.template.domain_name.as_deref());
        let domain = template.filter(|it| !it.is_empty());
        // With a domain in the template, a host name without one would not count.
        let way = domain.map_or_else(|| known.to_owned(), |it| format!("{known}.{it}"));
        let fix = format!(
            "Set spec.nodes[{key}].hostName to {way} again, or take the node out and put it in under \
             another key."
        );
        return Some(renamed(&format!("Node {key} of {title}"), called, known, &fix));
    }
    let other = names.owner(called).filter(|it| *it != key)?;
    let text = format!(
        "Node {key} of {title} has the host name {called}, by which the machine of node {other} is \
         known: correct spec.nodes[{key}].hostName."
    );
    Some(Problem::new(&reasons::machines::HOST_TWICE_IN_SET, text))
}

fn known<'a>(seen: &'a Observed, host: &Host<'a>) -> Known<'a> {
    let (set, node) = (&*seen.set, seen.nodes.get(&host.name));
    // The node may have forgotten the key for an installation that the node set has not recorded.
    let former = || node?.status.as_ref()?.machine.as_ref()?.former_key.clone();
    let key = node.and_then(|it| recorded_trust(it).key).map(|it| it.fingerprint()).or_else(former);
    let levels = [host.node.ansible.as_ref(), set.spec.node_template.ansible.as_ref()];
    let is_plain = !levels.into_iter().flatten().any(|it| has_own_options(&it.ansible_vars));
    Known {
        node: Some(host.key),
        recorded: set.status.as_ref().and_then(|it| it.machines.get(&host.name)),
        key,
        can_be_asked: is_plain && set.spec.network_attachments.is_empty(),
        answers: seen.machines.answering.contains(&host.address()),
        keeps_unmanaged_machine: node.is_some_and(|it| is_on_unmanaged_machine(it))
            && !merged(None, host.node.baremetal_host.as_ref()).adopt,
    }
}

/// Returns the addresses of hosts that have their machine, but whose ssh server has not answered
/// yet.
pub fn awaited(seen: &Observed) -> BTreeSet<String> {
    let own = machine_template(&seen.set).and_then(|_| own_set(seen));
    let is_due = |it: &Host<'_>| own.is_some_and(|own| is_awaited(own, &it.name, &known(seen, it)));
    hosts(&seen.set).into_iter().filter(is_due).map(|it| it.address()).collect()
}

/// Returns the step that applies the desired baremetal set, if it differs, or releases one that is
/// being deleted and no longer used.
///
/// Machines of removed hosts stay if the hosts are `kept`.
pub fn step(
    seen: &Observed,
    hosts: &[Host<'_>],
    machines: &Machines,
    served: &ExternalResources,
    kept: KeptHosts<'_>,
) -> Option<Step> {
    let own = own_set(seen);
    let is_unused = !kept.are_any() && seen.set.spec.nodes.is_empty();
    if own.is_some_and(|it| is_terminating(&**it)) && is_unused {
        return set::deletion(own?);
    }
    let Some(template) = machine_template(&seen.set) else {
        let hosts = own?.spec.baremetal_hosts.keys();
        let is_held = |it: &str| seen.nodes.get(it).is_some_and(|it| is_used(&**it));
        let is_used_set = is_used(&*seen.set);
        let in_use = hosts.filter(|it| is_used_set || is_held(it) || kept.is_terminating(it));
        return set::release_of(own?, last_looks::are_let_go(seen, own?), in_use);
    };
    let present = own.map(|it| &it.spec.baremetal_hosts);
    let kept = present.into_iter().flatten().filter(|(name, _)| kept.has(name));
    let kept = kept.map(|(name, _)| (name.clone(), None));
    let desired = hosts.iter().map(|host| {
        let is_free = matches!(machines.states.get(&host.name), Some(Ok(_)));
        // A machine keeps its address for its lifetime.
        let entry = || entry(host, served, seen.infra.is_used);
        (host.name.clone(), is_free.then(entry).flatten())
    });
    let fields = fields(seen, template, hosts, served);
    request(seen, hosts).step(labels(&seen.set), fields, kept.chain(desired))
}

/// Returns the fields of the baremetal set, except for its hosts.
fn fields(
    seen: &Observed,
    template: &NodeSetMachines,
    hosts: &[Host<'_>],
    served: &ExternalResources,
) -> AnyMap {
    let given = serde_json::to_value(template).unwrap_or_default();
    let fields: AnyMap = serde_json::from_value(given).unwrap_or_default();
    let own = &seen.set.spec.node_template;
    let dns = served.vars.values().find_map(|it| it.get(DNS_SERVERS)).filter(|it| is_some(it));
    let mtu = served.vars.values().find_map(|it| it.get("ctlplane_mtu"));
    let mtu = mtu.filter(|it| it.as_i64().is_some_and(|it| it >= 576));
    let common = set::common_fields(
        Some(&own.ansible_ssh_private_key_secret),
        own.user_data.as_ref(),
        own.network_data.as_ref(),
        hosts.iter().map(|it| it.host_name.as_str()),
    );
    let of_network = [
        ("bootstrapDns", dns.cloned()),
        ("ctlplaneMtu", mtu.cloned()),
        ("dnsSearchDomains", served.search_domain.as_ref().map(|it| json!([it]))),
    ];
    set::with_defaults(fields, common.into_iter().chain(of_network))
}

fn is_some(list: &Value) -> bool {
    list.as_array().is_some_and(|it| !it.is_empty())
}

/// Returns the baremetal set's entry for a host; `None` while its address is not reserved yet.
fn entry(host: &Host<'_>, served: &ExternalResources, are_reserved: bool) -> Option<BaremetalHost> {
    let node = host.node;
    let mut entry = merged(None, node.baremetal_host.as_ref());
    entry.user_data = node.user_data.clone().or(entry.user_data);
    entry.network_data = node.network_data.clone().or(entry.network_data);
    let interface = node.ctlplane_interface.clone().filter(|it| !it.is_empty());
    entry.ctlplane_interface = interface.or(entry.ctlplane_interface);
    if !node.bmh_label_selector.is_empty() {
        entry.bmh_label_selector.clone_from(&node.bmh_label_selector);
    }
    let var = |name: &str| served.vars.get(&host.host_name)?.get(name);
    let text = |name: &str| var(name).and_then(Value::as_str).map(str::to_owned);
    let reserved = text("ctlplane_ip").zip(var("ctlplane_cidr").and_then(Value::as_u64));
    if entry.ctl_plane_ip.is_none() && are_reserved {
        let (address, prefix) = reserved?;
        entry.ctl_plane_ip = Some(format!("{address}/{prefix}"));
        entry.ctlplane_gateway = entry.ctlplane_gateway.or_else(|| text("ctlplane_gateway_ip"));
        entry.ctlplane_vlan =
            entry.ctlplane_vlan.or_else(|| var("ctlplane_vlan_id").and_then(Value::as_i64));
    } else if entry.ctl_plane_ip.is_none() {
        entry.ctl_plane_ip = with_prefix(&host.ansible_host, None);
    }
    Some(entry)
}
