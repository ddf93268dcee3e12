//! The process: what it watches, what wakes which controller, and what it may do.

use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use common::api::ansibleee::AnsibleEe;
use common::api::baremetal::BaremetalSet;
use common::api::dataplane::{DataPlane, Deployment, Node, NodeSet, Role, Service};
use common::engine::build::KNOWN_HOSTS;
use common::keyed::Keys;
use ipnet::IpNet;
use ironic_client::Pool;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service as CoreService};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use shell::api::Api;
use shell::args::{CommonArgs, DigestArgs, WebhookArgs};
use shell::cache::{Absorb, Cache, Key, MetadataCache};
use shell::error::Result;
use shell::leader::{Candidate, Leader};
use shell::queue::Queue;
use shell::runtime::Runtime;
use shell::sources::{self, Sources};
use shell::vault::Vault;
use shell::webhook::stand_by;

use crate::admission::{self, Known};
use crate::attachments::Attachments;
use crate::baremetal_set::metal3::{self, Metal3};
use crate::baremetal_set::pauses::Pauses;
use crate::baremetal_set::{self, BaremetalSets};
use crate::claims::{BY_HOST, Claim, ClaimCaches, keys_of_node};
use crate::controllers::{Deployments, Groups, Maps, NodeSets};
use crate::deployment;
use crate::endpoints::World as Ports;
use crate::endpoints::observe::LABEL;
use crate::group::observe::{BY_HOST_KEY, BY_OWNER, BY_ROLE, World};
use crate::machines::Machines;
use crate::machines::observe::LOOK_AGAIN;
use crate::node_set::observe::{BY_LABEL, BY_NODE_SET, node_set_of, node_sets_of};
use crate::node_set::others::Others;
use crate::node_set::{self, World as Sets};
use crate::plane;
use crate::plane::children::controller;
use crate::plane::wake::{BY_NAMESPACE, BY_PLANE, namespace_of, plane_of};
use crate::service::{self, Services};

pub use rules::{DEFINITIONS, RULES};

mod rules;
mod wake;

/// The operator's name: its field manager, its Lease and its user agent.
pub const NAME: &str = "dataplane-operator";

/// Brings hosts into service, phase 0: the services of each role, host by host.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Args {
    /// What all operators share.
    #[command(flatten)]
    pub common: CommonArgs,
    /// The admission webhooks.
    #[command(flatten)]
    pub webhook: WebhookArgs,
    /// Digests of what Secrets hold.
    #[command(flatten)]
    pub digests: DigestArgs,
    /// Networks whose addresses may become endpoints of Kubernetes Services, as CIDRs separated by
    /// commas; all when empty.
    #[arg(long, env = "SERVICE_NETWORKS", value_delimiter = ',', value_name = "CIDRS")]
    pub service_networks: Vec<IpNet>,
}

/// Runs until the process is told to end.
pub async fn run(args: Args) -> Result<()> {
    let Args { common, webhook, digests, service_networks } = args;
    let mut runtime = Runtime::start(NAME, &common).await?;
    let candidate = Candidate::of(&runtime, NAME, &common);
    let known = Known::default();
    if webhook.enable_webhooks {
        admission::webhook(&known).serve(&webhook, &mut runtime).await?;
        let (ready, stop) = (runtime.health().readiness("admission"), runtime.shutdown());
        let (caches, open) = (ClaimCaches::new(), ClaimCaches::watch);
        let standing_by = stand_by(candidate.clone(), known.clone(), caches, open, ready, stop);
        runtime.spawn("admission's watches", standing_by);
    }
    let work = async move |candidate: &Candidate, leader: Leader| {
        let keys = candidate.keys(&digests).await?;
        work(candidate, leader, (keys, known, service_networks)).await
    };
    runtime.spawn("controllers", candidate.lead(work));
    runtime.run().await
}

/// The watches and the controllers.
async fn work(
    candidate: &Candidate,
    mut leader: Leader,
    (keys, known, networks): (Keys, Known, Vec<IpNet>),
) -> Result<()> {
    let machines = Machines::new(candidate.watches());
    let watched = Watched::new(candidate, keys, Others::new(|| candidate.watches()), machines);
    let api = candidate.api(watched.absorbing());
    let groups = watched.groups(candidate, &api);
    let services = watched.services(&api, &groups.sources, networks);
    let sets = watched.sets(&api, &groups.attachments);
    let deployments = watched.deployments(&groups);
    let maps = Maps { world: watched.planes() };
    let machines = watched.machines(candidate, &api);
    let queue = Arc::new(Queue::default());
    let (plane_queue, service_queue) = (Arc::new(Queue::default()), Arc::new(Queue::default()));
    let (set_queue, deployment_queue) = (Arc::new(Queue::default()), Arc::new(Queue::default()));
    let machine_queue = Arc::new(Queue::default());
    wake::by_objects(&queue, &watched, &groups.sources);
    wake::by_networks(&queue, &watched, &groups.attachments);
    wake::by_machines(&queue, &watched.machines);
    plane::wake::wake(&plane_queue, &queue, &maps.world);
    service::wake(&service_queue, &services);
    node_set::wake::wake(&set_queue, &sets);
    deployment::wake::wake(&deployment_queue, &deployments);
    baremetal_set::wake(&machine_queue, &machines);
    // Whoever is to be woken is known by now: no change is missed.
    watched.watch(&mut leader);
    leader.ready().await;
    known.lead(watched.claim_caches());
    // Another operator's objects may not even be readable, and a watch of what is not there would keep
    // all controllers waiting.
    let is_there = is_served(Arc::clone(&api)).await?;
    let mut late = Some((machines, machine_queue));
    if is_there && let Some((world, queue)) = late.take() {
        watched.look_after_machines(candidate, &mut leader, &api, world, queue).await?;
    }
    if candidate.drives::<DataPlane>().await? {
        leader.run(maps, Arc::clone(&api), plane_queue).await;
    }
    if candidate.drives::<Role>().await? && candidate.drives::<Node>().await? {
        leader.run(Groups { world: groups }, Arc::clone(&api), queue).await;
    }
    if candidate.drives::<NodeSet>().await? {
        leader.run(NodeSets { world: sets }, Arc::clone(&api), set_queue).await;
        if candidate.drives::<Deployment>().await? {
            let controller = Deployments { world: deployments };
            leader.run(controller, Arc::clone(&api), deployment_queue).await;
        }
    }
    if candidate.drives::<Service>().await? {
        leader.run(Services { world: services }, Arc::clone(&api), service_queue).await;
    }
    if let Some((world, queue)) = late {
        tokio::select! {
            outcome = leader.watches().end() => return outcome,
            () = appears(|| is_served(Arc::clone(&api)), LOOK_AGAIN) => {}
        }
        watched.look_after_machines(candidate, &mut leader, &api, world, queue).await?;
    }
    leader.finish().await
}

async fn is_served(api: Arc<Api>) -> Result<bool> {
    api.serves::<BaremetalSet>().await
}

/// Resolves when `is_there` says so; what keeps it from answering is no answer.
async fn appears<Answer: Future<Output = Result<bool>>>(
    is_there: impl Fn() -> Answer,
    pause: Duration,
) {
    while !is_there().await.unwrap_or_else(|error| {
        tracing::warn!(error = error.chain(), "whether a kind is there is not known");
        false
    }) {
        tokio::time::sleep(pause).await;
    }
}

/// Everything that is watched from the start.
struct Watched {
    planes: Arc<Cache<DataPlane>>,
    roles: Arc<Cache<Role>>,
    nodes: Arc<Cache<Node>>,
    node_sets: Arc<Cache<NodeSet>>,
    deployments: Arc<Cache<Deployment>>,
    services: Arc<Cache<Service>>,
    runs: Arc<Cache<AnsibleEe>>,
    exposed: Arc<Cache<CoreService>>,
    slices: Arc<Cache<EndpointSlice>>,
    baremetal_sets: Arc<Cache<BaremetalSet>>,
    secrets: Arc<MetadataCache<Secret>>,
    config_maps: Arc<MetadataCache<ConfigMap>>,
    others: Arc<Others>,
    machines: Arc<Machines>,
    metal3: Arc<Metal3>,
    keys: Keys,
}

impl Watched {
    fn new(candidate: &Candidate, keys: Keys, others: Others, machines: Machines) -> Self {
        // Inventories that are edited or deleted by hand are known by what is left of our own fields.
        let secrets = sources::metadata(
            NAME,
            vec![
                (BY_LABEL, Box::new(node_set_of)),
                (metal3::look::BY_SET, Box::new(metal3::look::set_of)),
            ],
        );
        let metal3 = Arc::new(Metal3::new(candidate, Arc::clone(&secrets)));
        Self {
            planes: Cache::new(vec![(BY_NAMESPACE, Box::new(namespace_of))]),
            roles: Cache::new(vec![
                (BY_OWNER, Box::new(controller_of)),
                (BY_PLANE, Box::new(plane_of)),
            ]),
            nodes: Cache::new(vec![
                (BY_OWNER, Box::new(controller_of)),
                (BY_ROLE, Box::new(role_of)),
                (BY_HOST, Box::new(keys_of_node)),
            ]),
            node_sets: Cache::new(vec![(BY_HOST, Box::new(|it| Claim::of_node_set(it).keys()))]),
            deployments: Cache::new(vec![(BY_NODE_SET, Box::new(node_sets_of))]),
            services: Cache::new(vec![]),
            runs: Cache::new(vec![
                (BY_OWNER, Box::new(owner_of)),
                (BY_HOST_KEY, Box::new(addresses_with_keys)),
            ]),
            exposed: Cache::new(vec![(BY_OWNER, Box::new(owner_of))]),
            slices: Cache::new(vec![(BY_OWNER, Box::new(owner_of))]),
            baremetal_sets: Cache::new(vec![]),
            secrets,
            config_maps: sources::metadata(NAME, vec![]),
            others: Arc::new(others),
            machines: Arc::new(machines),
            metal3,
            keys,
        }
    }

    fn absorbing(&self) -> Vec<Arc<dyn Absorb>> {
        let mut all: Vec<Arc<dyn Absorb>> = vec![
            Arc::<Cache<DataPlane>>::clone(&self.planes),
            Arc::<Cache<Role>>::clone(&self.roles),
            Arc::<Cache<Node>>::clone(&self.nodes),
            Arc::<Cache<NodeSet>>::clone(&self.node_sets),
            Arc::<Cache<Deployment>>::clone(&self.deployments),
            Arc::<Cache<Service>>::clone(&self.services),
            Arc::<Cache<AnsibleEe>>::clone(&self.runs),
            Arc::<Cache<CoreService>>::clone(&self.exposed),
            Arc::<Cache<EndpointSlice>>::clone(&self.slices),
            Arc::<Cache<BaremetalSet>>::clone(&self.baremetal_sets),
            Arc::<MetadataCache<Secret>>::clone(&self.secrets),
            Arc::<MetadataCache<ConfigMap>>::clone(&self.config_maps),
        ];
        all.extend(self.others.absorbing());
        all.push(self.machines.absorbing());
        all.push(self.metal3.absorbing());
        all
    }

    fn groups(&self, candidate: &Candidate, api: &Arc<Api>) -> World {
        World {
            planes: Arc::clone(&self.planes),
            roles: Arc::clone(&self.roles),
            nodes: Arc::clone(&self.nodes),
            claim_caches: self.claim_caches(),
            services: Arc::clone(&self.services),
            runs: Arc::clone(&self.runs),
            sources: self.sources(),
            vault: Vault::default(),
            attachments: Arc::new(Attachments::new(candidate.watches())),
            machines: Arc::clone(&self.machines),
            api: Arc::clone(api),
        }
    }

    fn sets(&self, api: &Arc<Api>, attachments: &Arc<Attachments>) -> Sets {
        Sets {
            node_sets: Arc::clone(&self.node_sets),
            deployments: Arc::clone(&self.deployments),
            claim_caches: self.claim_caches(),
            services: Arc::clone(&self.services),
            runs: Arc::clone(&self.runs),
            sources: self.sources(),
            secrets: Arc::clone(&self.secrets),
            vault: Vault::default(),
            others: Arc::clone(&self.others),
            attachments: Arc::clone(attachments),
            machines: Arc::clone(&self.machines),
            api: Arc::clone(api),
        }
    }

    fn machines(&self, candidate: &Candidate, api: &Arc<Api>) -> baremetal_set::World {
        baremetal_set::World {
            metal3: Arc::clone(&self.metal3),
            sets: Arc::clone(&self.baremetal_sets),
            sources: self.sources(),
            vault: Vault::default(),
            pool: Pool::counted(candidate.metrics()),
            pauses: Pauses::default(),
            api: Arc::clone(api),
        }
    }

    fn claim_caches(&self) -> ClaimCaches {
        let (roles, nodes) = (Arc::clone(&self.roles), Arc::clone(&self.nodes));
        ClaimCaches { roles, nodes, node_sets: Arc::clone(&self.node_sets) }
    }

    /// Each road has its own, for their readers are woken by different queues.
    fn sources(&self) -> Arc<Sources> {
        let (secrets, config_maps) = (Arc::clone(&self.secrets), Arc::clone(&self.config_maps));
        Sources::keeping(&[KNOWN_HOSTS], &self.keys, secrets, config_maps)
    }

    fn planes(&self) -> plane::observe::World {
        plane::observe::World {
            planes: Arc::clone(&self.planes),
            roles: Arc::clone(&self.roles),
            nodes: Arc::clone(&self.nodes),
        }
    }

    fn services(
        &self,
        api: &Arc<Api>,
        sources: &Arc<Sources>,
        networks: Vec<IpNet>,
    ) -> service::World {
        let ports = Ports {
            services: Arc::clone(&self.services),
            roles: Arc::clone(&self.roles),
            nodes: Arc::clone(&self.nodes),
            exposed: Arc::clone(&self.exposed),
            slices: Arc::clone(&self.slices),
            networks,
            api: Arc::clone(api),
        };
        let node_sets = Arc::clone(&self.node_sets);
        service::World { ports, sources: Arc::clone(sources), node_sets }
    }

    /// They share the digests of sources, and the watch of network attachments, with the groups.
    fn deployments(&self, groups: &World) -> deployment::observe::World {
        deployment::observe::World {
            deployments: Arc::clone(&self.deployments),
            node_sets: Arc::clone(&self.node_sets),
            services: Arc::clone(&self.services),
            runs: Arc::clone(&self.runs),
            sources: Arc::clone(&groups.sources),
            attachments: Arc::clone(&groups.attachments),
            api: Arc::clone(&groups.api),
        }
    }

    /// Runs the controller of sets of machines, whose kind is served, unless they are somebody else's.
    async fn look_after_machines(
        &self,
        candidate: &Candidate,
        leader: &mut Leader,
        api: &Arc<Api>,
        world: baremetal_set::World,
        queue: Arc<Queue>,
    ) -> Result<()> {
        if candidate.drives::<BaremetalSet>().await? {
            leader.watch_owned(&self.baremetal_sets);
            leader.run(BaremetalSets { world }, Arc::clone(api), queue).await;
        }
        Ok(())
    }

    fn watch(&self, leader: &mut Leader) {
        leader.watch_owned(&self.planes);
        leader.watch_owned(&self.roles);
        leader.watch_owned(&self.nodes);
        leader.watch_owned(&self.node_sets);
        leader.watch_owned(&self.deployments);
        leader.watch_owned(&self.services);
        leader.watch(&self.runs, "");
        leader.watch(&self.secrets, "");
        leader.watch(&self.config_maps, "");
        leader.watch(&self.exposed, LABEL);
        leader.watch(&self.slices, LABEL);
    }
}

fn namespace<K: kube::Resource>(object: &K) -> String {
    object.namespace().unwrap_or_default()
}

fn role_of(node: &Node) -> Vec<Key> {
    let role = node.spec.role.iter().filter(|it| !it.is_empty());
    role.map(|it| Key::new(namespace(node), it)).collect()
}

fn addresses_with_keys(run: &AnsibleEe) -> Vec<Key> {
    let reports = run.status.as_ref().map(|it| it.host_keys.as_slice()).unwrap_or_default();
    let told = |name: &str| reports.iter().any(|it| it.name == name && it.key.is_some());
    let hosts = run.spec.hosts.iter().filter(|it| told(&it.name));
    hosts.map(|it| Key::new(namespace(run), &it.address)).collect()
}

fn owner_of<K: kube::Resource>(object: &K) -> Vec<Key> {
    object.owner_references().iter().map(|it| Key::new(namespace(object), &it.uid)).collect()
}

fn controller_of<K: kube::Resource>(object: &K) -> Vec<Key> {
    let owner = controller(object.meta());
    owner.map(|it| Key::new(namespace(object), &it.uid)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use shell::error::Error;

    use super::*;

    #[tokio::test]
    async fn a_kind_that_appears_later_is_found_whatever_went_wrong_before() {
        let away = || Err(Error::Process { what: "the API server is away".into(), source: None });
        let answers = Mutex::new(vec![Ok(true), Ok(false), away(), Ok(false)]);
        appears(async || answers.lock().unwrap().pop().unwrap(), Duration::ZERO).await;
        assert!(answers.lock().unwrap().is_empty());
    }
}
