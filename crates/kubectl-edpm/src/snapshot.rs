//! The objects that a command has read, and the hosts that they describe.

use std::collections::BTreeMap;

use api::ansibleee::AnsibleEe;
use api::conditions::{Condition, READY, find};
use api::dataplane::{Deployment, Node, NodeSet, Role};
use api::nova::{Cell, ExternalCompute};
use nova_config::conditions::COMPUTE_CONDITION;
use nova_config::services::{LIBVIRT, NOVA, NOVA_REGISTERED};

use crate::deployments::{self, BySet};
use crate::host::{Host, is_called};
use crate::kinds::{NODE, NODE_SET};
use crate::object_meta::{created, place};
use crate::stage::{Group, Phase, Stage};

/// The objects of one namespace, or of all.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Roles, which nodes inherit from.
    pub roles: Vec<Role>,
    /// The hosts.
    pub nodes: Vec<Node>,
    /// Sets of hosts that are deployed together.
    pub node_sets: Vec<NodeSet>,
    /// Deployments of node sets.
    pub deployments: Vec<Deployment>,
    /// Computes, which nova-operator deploys on nodes.
    pub computes: Vec<ExternalCompute>,
    /// Cells that computes register in.
    pub cells: Vec<Cell>,
    /// Ansible runs.
    pub runs: Vec<AnsibleEe>,
}

impl Snapshot {
    /// Returns all hosts, sorted by namespace, group and name.
    pub fn hosts(&self) -> Vec<Host<'_>> {
        let index = Index::of(self);
        let mut hosts: Vec<Host<'_>> = self.nodes.iter().map(|it| index.host(it)).collect();
        hosts.sort_by(|a, b| a.place().cmp(&b.place()));
        hosts
    }

    /// Returns the host with this name in the namespace; the name of a node comes before other names.
    pub fn host(&self, namespace: &str, name: &str) -> Option<Host<'_>> {
        let named = self.nodes.iter().find(|it| place(*it) == (namespace, name));
        let called = |it: &&Node| place(*it).0 == namespace && is_called(it, name);
        let node = named.or_else(|| self.nodes.iter().find(called))?;
        Some(Index::of(self).host(node))
    }
}

/// A namespace and a name in it.
type Place<'a> = (&'a str, &'a str);

/// The objects indexed by the names that hosts refer to, since a command may show thousands of
/// hosts.
struct Index<'a> {
    roles: BTreeMap<Place<'a>, &'a Role>,
    node_sets: BTreeMap<Place<'a>, &'a NodeSet>,
    deployments: BySet<'a>,
    /// By node name.
    computes: BTreeMap<Place<'a>, &'a ExternalCompute>,
    cells: BTreeMap<Place<'a>, &'a Cell>,
    /// By the name and by the address of each targeted host: two names with one address are one
    /// host.
    runs: BTreeMap<Place<'a>, Vec<&'a AnsibleEe>>,
}

impl<'a> Index<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
        let by_node =
            |it: &'a ExternalCompute| ((place(it).0, it.spec.dataplane_node_name.as_str()), it);
        let mut runs: BTreeMap<Place<'a>, Vec<&'a AnsibleEe>> = BTreeMap::new();
        for run in &snapshot.runs {
            let namespace = place(run).0;
            for host in &run.spec.hosts {
                runs.entry((namespace, &host.name)).or_default().push(run);
                runs.entry((namespace, &host.address)).or_default().push(run);
            }
        }
        Self {
            roles: snapshot.roles.iter().map(|it| (place(it), it)).collect(),
            node_sets: snapshot.node_sets.iter().map(|it| (place(it), it)).collect(),
            deployments: deployments::by_set(&snapshot.deployments),
            computes: snapshot.computes.iter().map(by_node).collect(),
            cells: snapshot.cells.iter().map(|it| (place(it), it)).collect(),
            runs,
        }
    }

    /// Returns the runs that target a host, oldest first.
    fn runs(&self, namespace: &str, name: &str, address: Option<&str>) -> Vec<&'a AnsibleEe> {
        let all: &BTreeMap<Place<'_>, Vec<&'a AnsibleEe>> = &self.runs;
        let of = |it| all.get(&(namespace, it)).into_iter().flatten().copied();
        let mut runs: Vec<&AnsibleEe> = of(name).chain(address.into_iter().flat_map(of)).collect();
        let key = |it: &&'a AnsibleEe| (created(*it), place(*it).1);
        runs.sort_by_key(key);
        runs.dedup_by_key(|it| place(*it));
        runs
    }

    fn host(&self, node: &'a Node) -> Host<'a> {
        let (namespace, name) = place(node);
        let deployments = deployments::of_node(node, &self.deployments);
        let node_set = node.node_set().and_then(|it| self.node_sets.get(&(namespace, it)).copied());
        let role = node.spec.role.as_deref();
        let role = role.and_then(|it| self.roles.get(&(namespace, it)).copied());
        let compute = self.computes.get(&(namespace, name)).copied();
        let cell = compute.map(|it| (namespace, it.spec.cell_name.as_str()));
        let cell = cell.and_then(|it| self.cells.get(&it).copied());
        let first = match node.node_set() {
            Some(_) => deploy(node, node_set, &deployments),
            None => prepare(node, role),
        };
        let nova = match compute {
            Some(compute) => Some(nova(node, compute, cell)),
            None => nova_to_come(node),
        };
        let address = node.status.as_ref().and_then(|it| it.address.as_deref());
        Host {
            namespace,
            name,
            node,
            group: group(node, node_set, role),
            role,
            compute,
            cell,
            stages: [first].into_iter().chain(nova).collect(),
            runs: self.runs(namespace, name, address),
            node_set,
            deployments,
        }
    }
}

/// Returns what a node inherits from: a node set, or a role.
fn group<'a>(
    node: &'a Node,
    node_set: Option<&'a NodeSet>,
    role: Option<&'a Role>,
) -> Option<Group<'a>> {
    if let Some(name) = node.node_set() {
        return Some(Group { kind: NODE_SET, name, conditions: node_set.map(NodeSet::conditions) });
    }
    let conditions = role.map(Role::conditions);
    Some(Group { kind: "OpenStackDataPlaneRole", name: node.spec.role.as_deref()?, conditions })
}

fn nova<'a>(node: &Node, compute: &'a ExternalCompute, cell: Option<&'a Cell>) -> Stage<'a> {
    let status = compute.status.as_ref();
    let is_deployed = !compute.is_observed();
    // A compute that a user created may leave it to its node.
    let inherited = || node.status.as_ref().and_then(|it| it.deploy);
    let name = compute.spec.cell_name.as_str();
    let cell = Group { kind: "NovaCell", name, conditions: cell.map(Cell::conditions) };
    Stage {
        phase: Phase::Nova,
        kind: "NovaExternalCompute",
        name: place(compute).1,
        conditions: compute.conditions().to_vec(),
        services: status.map(|it| it.services.clone()).unwrap_or_default(),
        desired: if is_deployed { vec![LIBVIRT, NOVA, NOVA_REGISTERED] } else { vec![] },
        deployed_inputs: status.map(|it| &it.deployed_inputs),
        deploys: compute.spec.deploy.or_else(inherited).filter(|_| is_deployed),
        // That of an observed compute may be unknown.
        below: Some(cell).filter(|it| !it.name.is_empty()),
        deployment: None,
    }
}

fn prepare<'a>(node: &'a Node, role: Option<&'a Role>) -> Stage<'a> {
    let status = node.status.as_ref();
    let of_role = || role.map(|it| it.spec.services.as_slice()).unwrap_or_default();
    let services = if node.spec.role.is_some() { of_role() } else { node.spec.services.as_slice() };
    Stage {
        phase: Phase::Prepare,
        kind: NODE,
        name: place(node).1,
        conditions: node.conditions().to_vec(),
        services: status.map(|it| it.services.clone()).unwrap_or_default(),
        desired: services.iter().map(String::as_str).collect(),
        deployed_inputs: status.map(|it| &it.deployed_inputs),
        deploys: status.and_then(|it| it.deploy),
        ..Stage::default()
    }
}

/// Returns the stage of a host of a node set, with the deployment that is there or was last.
fn deploy<'a>(
    node: &'a Node,
    node_set: Option<&'a NodeSet>,
    deployments: &[&'a Deployment],
) -> Stage<'a> {
    let status = node.status.as_ref();
    let deployment = deployments.iter().copied().find(|it| deployments::is_last(node, it));
    let was_deployed = status.is_some_and(|it| it.deployed_config_hash.is_some());
    let of_set = node_set.and_then(|it| it.status.as_ref()).filter(|_| was_deployed);
    Stage {
        phase: Phase::Deploy,
        desired: deployments::services(deployment, node_set),
        deployed_inputs: of_set.map(|it| &it.deployed_inputs),
        deploys: None,
        deployment,
        ..prepare(node, None)
    }
}

/// Returns the stage of a compute that is requested but not created yet; nova-operator reports the
/// reason in a condition of the node.
fn nova_to_come<'a>(node: &Node) -> Option<Stage<'a>> {
    let condition = find(node.conditions(), COMPUTE_CONDITION)?;
    Some(Stage {
        phase: Phase::Nova,
        kind: "NovaExternalCompute",
        conditions: vec![Condition { type_: READY.to_owned(), ..condition.clone() }],
        ..Stage::default()
    })
}
