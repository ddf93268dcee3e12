//! The process: what it watches, what wakes which controller, and what it may do.

use std::sync::Arc;

use clap::Parser;
use common::api::ansibleee::AnsibleEe;
use common::api::dataplane::{DataPlane, Node, Role, Service};
use common::plan::Plan;
use common::rbac::{EVENTS, Rule};
use common::refusal::Refusal;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use shell::args::CommonArgs;
use shell::cache::{Absorb, Cache, Key, MetadataCache};
use shell::controller::Controller;
use shell::error::Result;
use shell::leader::{Candidate, Leader};
use shell::queue::Queue;
use shell::runtime::Runtime;
use shell::sources::{self, Sources};

use crate::group::observe::{self, BY_OWNER, BY_ROLE, World};
use crate::group::{Group, Observed, decide};
use crate::plane;
use crate::plane::children::controller;
use crate::plane::wake::{BY_NAMESPACE, BY_PLANE, namespace_of, plane_of};

/// The operator's name: its field manager, its Lease and its user agent.
pub const NAME: &str = "dataplane-operator";

/// Brings hosts into service, phase 0: the services of each role, host by host.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Args {
    /// What all operators share.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// What the operator may do in the watched namespaces.
pub const RULES: &[Rule] = &[
    Rule::of(&["dataplane.openstack.org"], &["openstackdataplanes"], &["get", "list", "watch"]),
    // What the maps of a data plane state.
    Rule::of(
        &["dataplane.openstack.org"],
        &["openstackdataplaneroles", "openstackdataplanenodes"],
        &["create", "delete", "get", "list", "patch", "watch"],
    ),
    Rule::of(
        &["dataplane.openstack.org"],
        &["openstackdataplaneservices"],
        &["create", "get", "list", "watch"],
    ),
    Rule::of(
        &["dataplane.openstack.org"],
        &[
            "openstackdataplanes/status",
            "openstackdataplaneroles/status",
            "openstackdataplanenodes/status",
        ],
        &["patch"],
    ),
    // blockOwnerDeletion in the owner references of roles, nodes, inventories and runs.
    Rule::of(
        &["dataplane.openstack.org"],
        &[
            "openstackdataplanes/finalizers",
            "openstackdataplaneroles/finalizers",
            "openstackdataplanenodes/finalizers",
        ],
        &["update"],
    ),
    Rule::of(
        &["ansibleee.openstack.org"],
        &["openstackansibleees"],
        &["create", "delete", "get", "list", "watch"],
    ),
    Rule::of(&[""], &["configmaps"], &["create", "get", "list", "patch", "watch"]),
    Rule::of(&[""], &["secrets"], &["get", "list", "watch"]),
    EVENTS,
];

/// Runs until the process is told to end.
pub async fn run(args: Args) -> Result<()> {
    let Args { common } = args;
    let mut runtime = Runtime::start(NAME, &common).await?;
    let candidate = Candidate::of(&runtime, NAME, common.namespaces());
    runtime.spawn("controllers", candidate.lead(work));
    runtime.run().await
}

/// The watches and the controllers.
async fn work(candidate: &Candidate, mut leader: Leader) -> Result<()> {
    let planes: Arc<Cache<DataPlane>> = Cache::new(vec![(BY_NAMESPACE, Box::new(namespace_of))]);
    let roles: Arc<Cache<Role>> =
        Cache::new(vec![(BY_OWNER, Box::new(controller_of)), (BY_PLANE, Box::new(plane_of))]);
    let nodes: Arc<Cache<Node>> =
        Cache::new(vec![(BY_OWNER, Box::new(controller_of)), (BY_ROLE, Box::new(role_of))]);
    let services: Arc<Cache<Service>> = Cache::new(vec![]);
    let runs: Arc<Cache<AnsibleEe>> = Cache::new(vec![(BY_OWNER, Box::new(owner_of))]);
    let secrets: Arc<MetadataCache<Secret>> = Cache::new(vec![]);
    // Inventories that are edited or deleted by hand are known by what is left of our own fields.
    let config_maps: Arc<MetadataCache<ConfigMap>> = sources::metadata(NAME);
    let sources = Sources::new(Arc::clone(&secrets), Arc::clone(&config_maps));
    let caches: Vec<Arc<dyn Absorb>> = vec![
        Arc::<Cache<DataPlane>>::clone(&planes),
        Arc::<Cache<Role>>::clone(&roles),
        Arc::<Cache<Node>>::clone(&nodes),
        Arc::<Cache<Service>>::clone(&services),
        Arc::<Cache<AnsibleEe>>::clone(&runs),
        Arc::<MetadataCache<ConfigMap>>::clone(&config_maps),
    ];
    let api = candidate.api(caches);
    let queue = Arc::new(Queue::default());
    wake(&queue, &roles, &nodes, &services, &runs, &sources);
    let maps = Maps {
        world: plane::observe::World {
            planes: Arc::clone(&planes),
            roles: Arc::clone(&roles),
            nodes: Arc::clone(&nodes),
        },
    };
    let plane_queue = Arc::new(Queue::default());
    plane::wake::wake(&plane_queue, &queue, &maps.world);
    leader.watch(&planes, "");
    leader.watch(&roles, "");
    leader.watch(&nodes, "");
    leader.watch(&services, "");
    leader.watch(&runs, "");
    leader.watch(&secrets, "");
    leader.watch(&config_maps, "");
    let world = World { planes, roles, nodes, services, runs, sources, api: Arc::clone(&api) };
    leader.run(maps, Arc::clone(&api), plane_queue).await;
    leader.run(Groups { world }, api, queue).await;
    leader.finish().await
}

/// Which change concerns which group.
fn wake(
    queue: &Arc<Queue>,
    roles: &Arc<Cache<Role>>,
    nodes: &Cache<Node>,
    services: &Cache<Service>,
    runs: &Cache<AnsibleEe>,
    sources: &Arc<Sources>,
) {
    let to = |queue: &Arc<Queue>| {
        let queue = Arc::clone(queue);
        move |group: Group, namespace: &str| queue.push(group.key(namespace))
    };
    let push = to(queue);
    roles.on_change(move |it| push(Group::Role(it.name_any()), &namespace(it)));
    let push = to(queue);
    nodes.on_change(move |it| push(Group::of(it), &namespace(it)));
    let push = to(queue);
    let all_roles = Arc::clone(roles);
    services.on_change(move |service| {
        let lists = |role: &Arc<Role>| role.spec.services.contains(&service.name_any());
        let same_namespace = |role: &Arc<Role>| namespace(&**role) == namespace(service);
        for role in all_roles.all().iter().filter(|it| same_namespace(it) && lists(it)) {
            push(Group::Role(role.name_any()), &namespace(service));
        }
    });
    let push = to(queue);
    runs.on_change(move |run| {
        for owner in run.owner_references().iter().filter(|it| it.kind == "OpenStackDataPlaneRole")
        {
            push(Group::Role(owner.name.clone()), &namespace(run));
        }
    });
    let readers = Arc::clone(queue);
    sources.on_change(move |reader| readers.push(reader));
}

fn namespace<K: kube::Resource>(object: &K) -> String {
    object.namespace().unwrap_or_default()
}

fn role_of(node: &Node) -> Vec<Key> {
    let role = node.spec.role.iter().filter(|it| !it.is_empty());
    role.map(|it| Key::new(namespace(node), it)).collect()
}

fn owner_of(run: &AnsibleEe) -> Vec<Key> {
    run.owner_references().iter().map(|it| Key::new(namespace(run), &it.uid)).collect()
}

fn controller_of<K: kube::Resource>(object: &K) -> Vec<Key> {
    let owner = controller(object.meta());
    owner.map(|it| Key::new(namespace(object), &it.uid)).into_iter().collect()
}

struct Maps {
    world: plane::observe::World,
}

impl Controller for Maps {
    type Observed = plane::Observed;

    const NAME: &'static str = "data-plane";

    async fn observe(&self, key: &Key) -> Result<Option<plane::Observed>> {
        Ok(plane::observe::observe(&self.world, key))
    }

    fn decide(seen: &plane::Observed, now: Timestamp) -> Plan {
        plane::decide::decide(seen, now)
    }

    fn refused(seen: &plane::Observed, refusal: &Refusal, now: Timestamp) -> Plan {
        plane::decide::refused(seen, refusal, now)
    }
}

struct Groups {
    world: World,
}

impl Controller for Groups {
    type Observed = Observed;

    const NAME: &'static str = "group";

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        observe::observe(&self.world, key).await
    }

    fn decide(seen: &Observed, now: Timestamp) -> Plan {
        decide::decide(seen, now)
    }

    fn refused(seen: &Observed, refusal: &Refusal, now: Timestamp) -> Plan {
        decide::refused(seen, refusal, now)
    }
}
