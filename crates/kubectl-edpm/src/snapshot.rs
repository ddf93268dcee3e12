//! The objects that a command has read, and the hosts that they describe.

use std::borrow::Cow;
use std::collections::BTreeMap;

use api::ansibleee::AnsibleEe;
use api::conditions::{Condition, READY, find};
use api::dataplane::{Deployment, Node, NodeSet, Role, ServiceRun};
use api::nova::{Cell, ExternalCompute};
use nova_config::conditions::COMPUTE_CONDITION;
use nova_config::services::{LIBVIRT, NOVA, NOVA_REGISTERED};

use crate::host::Host;
use crate::kinds::{NODE, NODE_SET};
use crate::node_set_host::{Member, deployments_of};
use crate::object_meta::{created, is_deleted, place};
use crate::stage::{Group, Phase, Stage};

/// The objects of one namespace, or of all.
///
/// Another API for hosts adds its kind here and its hosts to [`Snapshot::hosts`]; the commands work on
/// hosts and stages only.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Roles, which nodes inherit from.
    pub roles: Vec<Role>,
    /// Single hosts, and those of node sets, which their entries there describe.
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
        let mut hosts: Vec<Host<'_>> = self.single_nodes().map(|it| index.host(it)).collect();
        hosts.extend(self.members(|_| true).into_iter().map(|it| index.member(it)));
        hosts.sort_by(|a, b| a.place().cmp(&b.place()));
        hosts
    }

    /// Returns the host with this name in the namespace. If two objects describe it, the older one
    /// wins, because the operator rejects the other.
    pub fn host(&self, namespace: &str, name: &str) -> Option<Host<'_>> {
        let index = Index::of(self);
        let node = self.single_nodes().find(|it| place(*it) == (namespace, name));
        let mut members = self.members(|it| place(it).0 == namespace);
        members.retain(|it| it.is_called(name));
        members.sort_by_key(Member::is_taken);
        let member = members.into_iter().next();
        match (node, member) {
            (Some(node), Some(member)) if member.is_taken() => Some(index.host(node)),
            (_, Some(member)) => Some(index.member(member)),
            (node, None) => node.map(|it| index.host(it)),
        }
    }

    /// Returns the nodes that no node set has.
    fn single_nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|it| it.node_set().is_none())
    }

    /// Returns the hosts of the node sets that match.
    fn members(&self, is_asked: impl Fn(&NodeSet) -> bool) -> Vec<Member<'_>> {
        let all = self.node_sets.iter().filter(|it| is_asked(it));
        all.flat_map(|it| Member::all(it, &deployments_of(it, &self.deployments))).collect()
    }

    /// Returns the compute of a node, or `None` when it has none.
    pub fn compute(&self, namespace: &str, node: &str) -> Option<&ExternalCompute> {
        let is_it = |it: &&ExternalCompute| {
            it.spec.dataplane_node_name == node && place(*it).0 == namespace
        };
        self.computes.iter().find(is_it)
    }

    /// Returns the role with this name.
    pub fn role(&self, namespace: &str, name: &str) -> Option<&Role> {
        self.roles.iter().find(|it| place(*it) == (namespace, name))
    }

    /// Returns the cell with this name.
    pub fn cell(&self, namespace: &str, name: &str) -> Option<&Cell> {
        self.cells.iter().find(|it| place(*it) == (namespace, name))
    }
}

/// A namespace and a name in it.
type Place<'a> = (&'a str, &'a str);

/// The objects indexed by the names that hosts refer to, since a command may show thousands of
/// hosts.
struct Index<'a> {
    roles: BTreeMap<Place<'a>, &'a Role>,
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
        let status = node.status.as_ref();
        let address = status.and_then(|it| it.address.as_deref());
        let role = node.spec.role.as_deref();
        let found = role.and_then(|it| self.roles.get(&(namespace, it)).copied());
        let mut stages = vec![prepare(node, found)];
        match self.computes.get(&(namespace, name)) {
            Some(compute) => {
                let mut stage = self.nova(namespace, compute);
                // A compute that a user created may leave it to its node.
                stage.deploys = stage.deploys.or_else(|| status.and_then(|it| it.deploy));
                stages.push(stage);
            }
            None => stages.extend(nova_to_come(node)),
        }
        Host {
            namespace,
            name: name.to_owned(),
            group: role.map(|name| Group {
                kind: "OpenStackDataPlaneRole",
                name,
                conditions: found.map(of_role),
            }),
            address: address.map(str::to_owned),
            created: created(node),
            is_deleting: is_deleted(node)
                || self.computes.get(&(namespace, name)).is_some_and(|it| is_deleted(*it)),
            stages,
            runs: self.runs(namespace, name, address),
            member: None,
        }
    }

    fn member(&self, member: Member<'a>) -> Host<'a> {
        let (namespace, name) = place(member.node_set);
        let runs = self.runs(namespace, &member.name, Some(&member.address));
        let status = member.node_set.status.as_ref();
        Host {
            namespace,
            name: member.name.clone(),
            group: Some(Group {
                kind: NODE_SET,
                name,
                conditions: Some(status.map(|it| it.conditions.as_slice()).unwrap_or_default()),
            }),
            address: Some(member.address.clone()),
            created: created(member.node_set),
            is_deleting: is_deleted(member.node_set) || member.is_terminating(),
            stages: vec![member.stage(&runs)],
            runs,
            member: Some(member),
        }
    }

    fn nova(&self, namespace: &'a str, compute: &'a ExternalCompute) -> Stage<'a> {
        let status = compute.status.as_ref();
        let cell = compute.spec.cell_name.as_str();
        let of_cell = self.cells.get(&(namespace, cell));
        Stage {
            phase: Phase::Nova,
            kind: "NovaExternalCompute",
            name: place(compute).1,
            conditions: status.map(|it| it.conditions.clone()).unwrap_or_default(),
            services: recorded(status.map(|it| &it.services)),
            desired: vec![LIBVIRT, NOVA, NOVA_REGISTERED],
            deployed_inputs: status.map(|it| &it.deployed_inputs),
            deploys: compute.spec.deploy,
            deployment: None,
            below: Some(Group {
                kind: "NovaCell",
                name: cell,
                conditions: of_cell.map(|it| match &it.status {
                    Some(status) => status.conditions.as_slice(),
                    None => &[],
                }),
            }),
        }
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
        conditions: status.map(|it| it.conditions.clone()).unwrap_or_default(),
        services: recorded(status.map(|it| &it.services)),
        desired: services.iter().map(String::as_str).collect(),
        deployed_inputs: status.map(|it| &it.deployed_inputs),
        deploys: status.and_then(|it| it.deploy),
        below: None,
        deployment: None,
    }
}

/// Returns the stage of a compute that is requested but not created yet; nova-operator reports the
/// reason in a condition of the node.
fn nova_to_come(node: &Node) -> Option<Stage<'_>> {
    let conditions = &node.status.as_ref()?.conditions;
    let condition = find(conditions, COMPUTE_CONDITION)?;
    Some(Stage {
        phase: Phase::Nova,
        kind: "NovaExternalCompute",
        name: "",
        conditions: vec![Condition { type_: READY.to_owned(), ..condition.clone() }],
        services: Cow::Borrowed(&[]),
        desired: vec![],
        deployed_inputs: None,
        deploys: None,
        below: None,
        deployment: None,
    })
}

fn recorded(services: Option<&Vec<ServiceRun>>) -> Cow<'_, [ServiceRun]> {
    Cow::Borrowed(services.map(Vec::as_slice).unwrap_or_default())
}

fn of_role(role: &Role) -> &[Condition] {
    role.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default()
}
