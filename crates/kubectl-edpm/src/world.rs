//! Everything that was read, and the hosts in it.

use common::api::ansibleee::AnsibleEe;
use common::api::dataplane::{Node, Role};
use common::api::nova::{Cell, ExternalCompute};
use common::conditions::{Condition, READY};
use jiff::Timestamp;
use kube::ResourceExt;
use nova_operator::annotations::{COMPUTE_CONDITION, REDEPLOY};
use nova_operator::compute::build::{LIBVIRT, NOVA, NOVA_REGISTERED};

use crate::host::{Group, Host, Phase, Stage};

/// Annotation on a role or a node that asks for another attempt of every service of phase 0.
pub const NODE_REDEPLOY: &str = "dataplane.openstack.org/redeploy";

/// The objects of one namespace, or of all.
///
/// Another front end to hosts, such as a node set, adds its kind here and its hosts to
/// [`World::hosts`]; the commands know hosts and stages alone.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// Groups of hosts.
    pub roles: Vec<Role>,
    /// Hosts.
    pub nodes: Vec<Node>,
    /// What nova-operator does on hosts.
    pub computes: Vec<ExternalCompute>,
    /// Where computes register.
    pub cells: Vec<Cell>,
    /// Runs of Ansible.
    pub runs: Vec<AnsibleEe>,
}

impl World {
    /// All hosts, by namespace, group and name.
    pub fn hosts(&self) -> Vec<Host<'_>> {
        let mut hosts: Vec<Host<'_>> = self.nodes.iter().map(|it| self.of_node(it)).collect();
        hosts.sort_by(|a, b| a.place().cmp(&b.place()));
        hosts
    }

    /// The host of that name in the namespace.
    pub fn host(&self, namespace: &str, name: &str) -> Option<Host<'_>> {
        let is_it = |it: &&Node| it.name_any() == name && namespace_of(*it) == namespace;
        self.nodes.iter().find(is_it).map(|it| self.of_node(it))
    }

    /// The compute on a node.
    pub fn compute(&self, namespace: &str, node: &str) -> Option<&ExternalCompute> {
        let mut all = self.computes.iter();
        all.find(|it| it.spec.dataplane_node_name == node && namespace_of(*it) == namespace)
    }

    /// The role of that name.
    pub fn role(&self, namespace: &str, name: &str) -> Option<&Role> {
        self.roles.iter().find(|it| it.name_any() == name && namespace_of(*it) == namespace)
    }

    /// The cell of that name.
    pub fn cell(&self, namespace: &str, name: &str) -> Option<&Cell> {
        self.cells.iter().find(|it| it.name_any() == name && namespace_of(*it) == namespace)
    }

    fn of_node<'a>(&'a self, node: &'a Node) -> Host<'a> {
        let namespace = namespace_of(node);
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let status = node.status.as_ref();
        let address = status.and_then(|it| it.address.as_deref());
        let role = node.spec.role.as_deref();
        let found = role.and_then(|it| self.role(namespace, it));
        let mut stages = vec![prepare(node, found)];
        match self.compute(namespace, name) {
            Some(compute) => {
                let mut stage = self.nova(namespace, compute);
                // A compute that a human made may leave it to its node.
                stage.deploys = stage.deploys.or_else(|| status.and_then(|it| it.deploy));
                stages.push(stage);
            }
            None => stages.extend(nova_to_come(node)),
        }
        let mut runs: Vec<&AnsibleEe> = self
            .runs
            .iter()
            .filter(|it| namespace_of(*it) == namespace && touches(it, name, address))
            .collect();
        runs.sort_by_key(|it| (it.creation_timestamp().map(|it| it.0), it.name_any()));
        Host {
            namespace,
            name,
            group: role.map(|name| Group {
                kind: "OpenStackDataPlaneRole",
                name,
                conditions: found.map(of_role),
            }),
            address,
            created: created(node),
            stages,
            runs,
        }
    }

    fn nova<'a>(&'a self, namespace: &str, compute: &'a ExternalCompute) -> Stage<'a> {
        let status = compute.status.as_ref();
        let cell = compute.spec.cell_name.as_str();
        let of_cell = self.cell(namespace, cell);
        Stage {
            phase: Phase::Nova,
            kind: "NovaExternalCompute",
            resource: "novaexternalcompute",
            name: compute.metadata.name.as_deref().unwrap_or_default(),
            conditions: status.map(|it| it.conditions.clone()).unwrap_or_default(),
            services: status.map(|it| it.services.as_slice()).unwrap_or_default(),
            wanted: vec![LIBVIRT, NOVA, NOVA_REGISTERED],
            deployed_inputs: status.map(|it| &it.deployed_inputs),
            deploys: compute.spec.deploy,
            redeploy: REDEPLOY,
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
        kind: "OpenStackDataPlaneNode",
        resource: "openstackdataplanenode",
        name: node.metadata.name.as_deref().unwrap_or_default(),
        conditions: status.map(|it| it.conditions.clone()).unwrap_or_default(),
        services: status.map(|it| it.services.as_slice()).unwrap_or_default(),
        wanted: services.iter().map(String::as_str).collect(),
        deployed_inputs: status.map(|it| &it.deployed_inputs),
        deploys: status.and_then(|it| it.deploy),
        redeploy: NODE_REDEPLOY,
        below: None,
    }
}

/// A compute that is asked for and was not made yet: nova-operator tells on the node why.
fn nova_to_come(node: &Node) -> Option<Stage<'_>> {
    let conditions = &node.status.as_ref()?.conditions;
    let told = conditions.iter().find(|it| it.type_ == COMPUTE_CONDITION)?;
    Some(Stage {
        phase: Phase::Nova,
        kind: "NovaExternalCompute",
        resource: "novaexternalcompute",
        name: "",
        conditions: vec![Condition { type_: READY.to_owned(), ..told.clone() }],
        services: &[],
        wanted: vec![],
        deployed_inputs: None,
        deploys: None,
        redeploy: REDEPLOY,
        below: None,
    })
}

/// Whether a run is about a host: by its name in the inventory, or by its address.
fn touches(run: &AnsibleEe, host: &str, address: Option<&str>) -> bool {
    run.spec.hosts.iter().any(|it| it.name == host || Some(it.address.as_str()) == address)
}

fn of_role(role: &Role) -> &[Condition] {
    role.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default()
}

/// The namespace of an object.
pub fn namespace_of(object: &impl ResourceExt) -> &str {
    object.meta().namespace.as_deref().unwrap_or_default()
}

fn created(object: &impl ResourceExt) -> Option<Timestamp> {
    object.meta().creation_timestamp.as_ref().map(|it| it.0)
}
