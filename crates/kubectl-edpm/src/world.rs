//! Everything that was read, and the hosts in it.

use std::collections::BTreeMap;

use common::api::ansibleee::AnsibleEe;
use common::api::dataplane::{Node, Role};
use common::api::nova::{Cell, ExternalCompute};
use common::conditions::{Condition, READY, find};
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
        let index = Index::of(self);
        let mut hosts: Vec<Host<'_>> = self.nodes.iter().map(|it| index.host(it)).collect();
        hosts.sort_by(|a, b| a.place().cmp(&b.place()));
        hosts
    }

    /// The host of that name in the namespace.
    pub fn host(&self, namespace: &str, name: &str) -> Option<Host<'_>> {
        let node = self.nodes.iter().find(|it| place(*it) == (namespace, name))?;
        Some(Index::of(self).host(node))
    }

    /// The compute on a node.
    pub fn compute(&self, namespace: &str, node: &str) -> Option<&ExternalCompute> {
        let is_it = |it: &&ExternalCompute| {
            it.spec.dataplane_node_name == node && place(*it).0 == namespace
        };
        self.computes.iter().find(is_it)
    }

    /// The role of that name.
    pub fn role(&self, namespace: &str, name: &str) -> Option<&Role> {
        self.roles.iter().find(|it| place(*it) == (namespace, name))
    }

    /// The cell of that name.
    pub fn cell(&self, namespace: &str, name: &str) -> Option<&Cell> {
        self.cells.iter().find(|it| place(*it) == (namespace, name))
    }
}

/// Namespace and a name in it.
type Place<'a> = (&'a str, &'a str);

/// The objects by what hosts name them by: thousands of hosts are shown at once.
struct Index<'a> {
    roles: BTreeMap<Place<'a>, &'a Role>,
    /// By node.
    computes: BTreeMap<Place<'a>, &'a ExternalCompute>,
    cells: BTreeMap<Place<'a>, &'a Cell>,
    /// By each name and each address that a run is about: two names of one address are one host.
    runs: BTreeMap<Place<'a>, Vec<&'a AnsibleEe>>,
}

impl<'a> Index<'a> {
    fn of(world: &'a World) -> Self {
        let by_node =
            |it: &'a ExternalCompute| ((place(it).0, it.spec.dataplane_node_name.as_str()), it);
        let mut runs: BTreeMap<Place<'a>, Vec<&'a AnsibleEe>> = BTreeMap::new();
        for run in &world.runs {
            let namespace = place(run).0;
            for host in &run.spec.hosts {
                runs.entry((namespace, &host.name)).or_default().push(run);
                runs.entry((namespace, &host.address)).or_default().push(run);
            }
        }
        Self {
            roles: world.roles.iter().map(|it| (place(it), it)).collect(),
            computes: world.computes.iter().map(by_node).collect(),
            cells: world.cells.iter().map(|it| (place(it), it)).collect(),
            runs,
        }
    }

    /// The runs that are about a host, oldest first.
    fn runs(
        &self,
        namespace: &'a str,
        name: &'a str,
        address: Option<&'a str>,
    ) -> Vec<&'a AnsibleEe> {
        let of = |it: &'a str| self.runs.get(&(namespace, it)).into_iter().flatten().copied();
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
                // A compute that a human made may leave it to its node.
                stage.deploys = stage.deploys.or_else(|| status.and_then(|it| it.deploy));
                stages.push(stage);
            }
            None => stages.extend(nova_to_come(node)),
        }
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
            runs: self.runs(namespace, name, address),
        }
    }

    fn nova(&self, namespace: &'a str, compute: &'a ExternalCompute) -> Stage<'a> {
        let status = compute.status.as_ref();
        let cell = compute.spec.cell_name.as_str();
        let of_cell = self.cells.get(&(namespace, cell));
        Stage {
            phase: Phase::Nova,
            kind: "NovaExternalCompute",
            resource: "novaexternalcompute",
            name: place(compute).1,
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
        name: place(node).1,
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
    let told = find(conditions, COMPUTE_CONDITION)?;
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

fn of_role(role: &Role) -> &[Condition] {
    role.status.as_ref().map(|it| it.conditions.as_slice()).unwrap_or_default()
}

/// Namespace and name of an object.
pub fn place(object: &impl ResourceExt) -> (&str, &str) {
    let meta = object.meta();
    (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
}

fn created(object: &impl ResourceExt) -> Option<Timestamp> {
    object.meta().creation_timestamp.as_ref().map(|it| it.0)
}
