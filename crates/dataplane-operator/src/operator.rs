//! The process: what it watches, what wakes which group, and what it may do.

use std::sync::Arc;

use clap::Parser;
use common::api::ansibleee::AnsibleEe;
use common::api::dataplane::{Node, Role, Service};
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
use shell::vault::Vault;

use crate::group::networks::Attachments;
use crate::group::observe::{self, BY_OWNER, BY_ROLE, World};
use crate::group::{Group, Observed, decide};

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
    Rule::of(
        &["dataplane.openstack.org"],
        &["openstackdataplaneroles", "openstackdataplanenodes"],
        &["get", "list", "watch"],
    ),
    Rule::of(
        &["dataplane.openstack.org"],
        &["openstackdataplaneservices"],
        &["create", "get", "list", "watch"],
    ),
    Rule::of(
        &["dataplane.openstack.org"],
        &["openstackdataplaneroles/status", "openstackdataplanenodes/status"],
        &["patch"],
    ),
    // blockOwnerDeletion in the owner references of inventories and runs.
    Rule::of(
        &["dataplane.openstack.org"],
        &["openstackdataplaneroles/finalizers", "openstackdataplanenodes/finalizers"],
        &["update"],
    ),
    Rule::of(
        &["ansibleee.openstack.org"],
        &["openstackansibleees"],
        &["create", "delete", "get", "list", "watch"],
    ),
    Rule::of(&[""], &["configmaps"], &["create", "get", "list", "patch", "watch"]),
    // Variables from Secrets go into Secrets beside the inventories.
    Rule::of(&[""], &["secrets"], &["create", "get", "list", "patch", "watch"]),
    Rule::of(&["k8s.cni.cncf.io"], &["network-attachment-definitions"], &["get", "list", "watch"]),
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

/// The watches and the one controller.
async fn work(candidate: &Candidate, mut leader: Leader) -> Result<()> {
    let roles: Arc<Cache<Role>> = Cache::new(vec![]);
    let nodes: Arc<Cache<Node>> = Cache::new(vec![(BY_ROLE, Box::new(role_of))]);
    let services: Arc<Cache<Service>> = Cache::new(vec![]);
    let runs: Arc<Cache<AnsibleEe>> = Cache::new(vec![(BY_OWNER, Box::new(owner_of))]);
    // Inventories that are edited or deleted by hand are known by what is left of our own fields.
    let secrets: Arc<MetadataCache<Secret>> = sources::metadata(NAME);
    let config_maps: Arc<MetadataCache<ConfigMap>> = sources::metadata(NAME);
    let sources = Sources::new(Arc::clone(&secrets), Arc::clone(&config_maps));
    let caches: Vec<Arc<dyn Absorb>> = vec![
        Arc::<Cache<Role>>::clone(&roles),
        Arc::<Cache<Node>>::clone(&nodes),
        Arc::<Cache<Service>>::clone(&services),
        Arc::<Cache<AnsibleEe>>::clone(&runs),
        Arc::<MetadataCache<Secret>>::clone(&secrets),
        Arc::<MetadataCache<ConfigMap>>::clone(&config_maps),
    ];
    let api = candidate.api(caches);
    let queue = Arc::new(Queue::default());
    wake(&queue, &roles, &nodes, &services, &runs, &sources);
    let attachments = Attachments::new(candidate.watches());
    wake_by_networks(&queue, &roles, &nodes, &attachments);
    leader.watch(&roles, "");
    leader.watch(&nodes, "");
    leader.watch(&services, "");
    leader.watch(&runs, "");
    leader.watch(&secrets, "");
    leader.watch(&config_maps, "");
    let vault = Vault::default();
    let world =
        World { roles, nodes, services, runs, sources, vault, attachments, api: Arc::clone(&api) };
    leader.run(Groups { world }, api, queue).await;
    leader.finish().await
}

/// Which change concerns which group.
fn wake(
    queue: &Arc<Queue>,
    roles: &Arc<Cache<Role>>,
    nodes: &Arc<Cache<Node>>,
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
    let (all_roles, all_nodes) = (Arc::clone(roles), Arc::clone(nodes));
    services.on_change(move |service| {
        let lists = |role: &Arc<Role>| role.spec.services.contains(&service.name_any());
        let same_namespace = |role: &Arc<Role>| namespace(&**role) == namespace(service);
        for role in all_roles.all().iter().filter(|it| same_namespace(it) && lists(it)) {
            push(Group::Role(role.name_any()), &namespace(service));
        }
        let lists = |node: &Arc<Node>| node.spec.services.contains(&service.name_any());
        let same_namespace = |node: &Arc<Node>| namespace(&**node) == namespace(service);
        for node in all_nodes.all().iter().filter(|it| same_namespace(it) && lists(it)) {
            push(Group::of(node), &namespace(service));
        }
    });
    let push = to(queue);
    runs.on_change(move |run| {
        for owner in run.owner_references() {
            match owner.kind.as_str() {
                "OpenStackDataPlaneRole" => push(Group::Role(owner.name.clone()), &namespace(run)),
                "OpenStackDataPlaneNode" => push(Group::Node(owner.name.clone()), &namespace(run)),
                _ => {}
            }
        }
    });
    let readers = Arc::clone(queue);
    sources.on_change(move |reader| readers.push(reader));
}

/// A network attachment that comes or goes concerns whoever names it.
fn wake_by_networks(
    queue: &Arc<Queue>,
    roles: &Arc<Cache<Role>>,
    nodes: &Arc<Cache<Node>>,
    attachments: &Attachments,
) {
    let (queue, roles, nodes) = (Arc::clone(queue), Arc::clone(roles), Arc::clone(nodes));
    attachments.on_change(move |key| {
        for role in roles.all() {
            if namespace(&*role) == key.namespace
                && role.spec.network_attachments.contains(&key.name)
            {
                queue.push(Group::Role(role.name_any()).key(&key.namespace));
            }
        }
        for node in nodes.all() {
            if namespace(&*node) == key.namespace
                && node.spec.network_attachments.contains(&key.name)
            {
                queue.push(Group::of(&node).key(&key.namespace));
            }
        }
    });
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
