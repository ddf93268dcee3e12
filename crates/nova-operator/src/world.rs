//! Everything that nova-operator watches, and who is woken by what.

use std::sync::Arc;
use std::time::Duration;

use common::api::ansibleee::AnsibleEe;
use common::api::dataplane::{Node, Role};
use common::api::nova::{Cell, ExternalCompute};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Resource, ResourceExt};
use shell::api::Api;
use shell::cache::{Absorb, Cache, Key, MetadataCache};
use shell::leader::{Candidate, Leader};
use shell::queue::Queue;
use shell::sources::{self, Sources};

use crate::concern::{Bearing, Concern, bearing};
use crate::operator::NAME;
use crate::peers::{Peers, Stir};
use crate::vault::Vault;
use crate::watched::Watched;

pub use crate::watched::{BY_CELL, BY_NODE, BY_OWNER, BY_ROLE};

/// How long a cell waits for more computes to count: a rollout over many costs one write in a while.
const COUNT_PAUSE: Duration = Duration::from_secs(2);

/// The queue of each controller; clones share them.
#[derive(Clone, Default)]
pub struct Queues {
    /// Of nodes.
    pub nodes: Arc<Queue>,
    /// Of computes.
    pub computes: Arc<Queue>,
    /// Of cells.
    pub cells: Arc<Queue>,
}

/// The watched world.
pub struct World {
    /// All nodes, indexed [`BY_ROLE`].
    pub nodes: Arc<Cache<Node>>,
    /// All roles.
    pub roles: Arc<Cache<Role>>,
    /// All cells.
    pub cells: Arc<Cache<Cell>>,
    /// All computes, indexed [`BY_NODE`] and [`BY_CELL`].
    pub computes: Arc<Cache<ExternalCompute>>,
    /// All runs, indexed [`BY_OWNER`].
    pub runs: Arc<Cache<AnsibleEe>>,
    /// What computes depend on.
    pub compute_sources: Arc<Sources>,
    /// What cells depend on.
    pub cell_sources: Arc<Sources>,
    /// The content of what both depend on.
    pub vault: Vault,
    /// How the computes of each role stand.
    pub peers: Peers,
    /// For what is not watched.
    pub api: Arc<Api>,
    secrets: Arc<MetadataCache<Secret>>,
    config_maps: Arc<MetadataCache<ConfigMap>>,
}

impl World {
    /// An empty world, which [`World::watch`] fills.
    pub fn new(candidate: &Candidate) -> Arc<Self> {
        let watched = Watched::new();
        let peers = Peers::new(watched.clone());
        let Watched { nodes, roles, computes, runs } = watched;
        let cells = Cache::new(vec![]);
        // Rendered Secrets that are edited by hand are known by what is left of our own fields.
        let secrets = sources::metadata::<Secret>(NAME);
        let config_maps = MetadataCache::<ConfigMap>::new(vec![]);
        let absorbing: Vec<Arc<dyn Absorb>> = vec![
            Arc::<Cache<Node>>::clone(&nodes),
            Arc::<Cache<Cell>>::clone(&cells),
            Arc::<Cache<ExternalCompute>>::clone(&computes),
            Arc::<Cache<AnsibleEe>>::clone(&runs),
            Arc::<MetadataCache<Secret>>::clone(&secrets),
        ];
        let sources = || Sources::new(Arc::clone(&secrets), Arc::clone(&config_maps));
        let (compute_sources, cell_sources) = (sources(), sources());
        let (vault, api) = (Vault::default(), candidate.api(absorbing));
        Arc::new(Self {
            nodes,
            roles,
            cells,
            computes,
            runs,
            compute_sources,
            cell_sources,
            vault,
            peers,
            api,
            secrets,
            config_maps,
        })
    }

    /// What the rule of the cell is judged by.
    pub fn watched(&self) -> Watched {
        Watched {
            nodes: Arc::clone(&self.nodes),
            roles: Arc::clone(&self.roles),
            computes: Arc::clone(&self.computes),
            runs: Arc::clone(&self.runs),
        }
    }

    /// Opens all watches.
    pub fn watch(&self, leader: &mut Leader) {
        self.watched().watch(leader.watches());
        leader.watch(&self.cells, "");
        leader.watch(&self.secrets, "");
        leader.watch(&self.config_maps, "");
    }

    /// Wakes whoever a change concerns.
    pub fn wake(self: &Arc<Self>, queues: &Queues) {
        let wake = Wake { world: Arc::clone(self), queues: queues.clone() };
        let it = wake.clone();
        self.nodes.on_change(move |node| it.by_node(node));
        let it = wake.clone();
        self.roles.on_change(move |role| it.by_role(role));
        let (it, concern) = (wake.clone(), Concern::default());
        self.cells.on_change(move |cell| it.by_cell(cell, &concern));
        let it = wake.clone();
        self.computes.on_change(move |compute| it.by_compute(compute));
        let computes = Arc::clone(&queues.computes);
        self.runs.on_change(move |it| {
            if let Some(owner) = compute_of(it) {
                computes.push(owner);
            }
        });
        let (computes, cells) = (Arc::clone(&queues.computes), Arc::clone(&queues.cells));
        self.compute_sources.on_change(move |key| computes.push(key));
        self.cell_sources.on_change(move |key| cells.push(key));
    }
}

/// Who is woken by what.
#[derive(Clone)]
struct Wake {
    world: Arc<World>,
    queues: Queues,
}

impl Wake {
    fn by_node(&self, node: &Node) {
        self.queues.nodes.push(Key::of(node));
        for compute in self.world.computes.indexed(BY_NODE, &Key::of(node)) {
            self.queues.computes.push(Key::of(&*compute));
            self.stir(&Key::of(&*compute));
        }
    }

    fn by_role(&self, role: &Role) {
        for node in self.world.nodes.indexed(BY_ROLE, &Key::of(role)) {
            self.queues.nodes.push(Key::of(&*node));
            push_all(
                &self.queues.computes,
                &self.world.computes.indexed(BY_NODE, &Key::of(&*node)),
            );
        }
    }

    /// Its counters concern nobody, itself included: else each count would be followed by another.
    fn by_cell(&self, cell: &Cell, concern: &Concern<Bearing>) {
        let key = Key::of(cell);
        if concern.changes(&key, || self.world.cells.get(&key).map(|it| bearing(&it))) {
            self.queues.cells.push(key.clone());
            push_all(&self.queues.computes, &self.world.computes.indexed(BY_CELL, &key));
        }
    }

    fn by_compute(&self, compute: &ExternalCompute) {
        let key = Key::of(compute);
        self.queues.computes.push(key.clone());
        self.queues.nodes.push(key.clone());
        self.stir(&key);
    }

    /// Computes that may begin now, and cells that have something else to count.
    fn stir(&self, key: &Key) {
        let Stir { computes, cells } = self.world.peers.refresh(key);
        for compute in computes {
            self.queues.computes.push(compute);
        }
        for cell in cells {
            self.queues.cells.push_in(cell, COUNT_PAUSE);
        }
    }
}

fn push_all(queue: &Queue, objects: &[Arc<ExternalCompute>]) {
    for object in objects {
        queue.push(Key::of(&**object));
    }
}

/// The compute that owns a run.
fn compute_of(run: &AnsibleEe) -> Option<Key> {
    let kind = ExternalCompute::kind(&());
    let owner = run.owner_references().iter().find(|it| it.kind == kind)?;
    Some(Key::new(run.namespace().unwrap_or_default(), &owner.name))
}
