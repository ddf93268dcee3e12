//! The caches that are watched from the start, and the part of them that each controller reads.

use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::baremetal::BaremetalSet;
use api::dataplane::{DataPlane, Deployment, Node, NodeSet, Role, Service};
use baremetal::backoff::RequestBackoff;
use baremetal::metal3::{self, Metal3};
use baremetal::{self, BaremetalSets};
use ipnet::IpNet;
use ironic_client::Pool;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service as CoreService};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use operator_core::keyed::Keys;
use operator_core::object_key::Key;
use operator_core::run_engine::ssh_secret::KNOWN_HOSTS;
use operator_runtime::api::Api;
use operator_runtime::cache::{Cache, MetadataCache, WriteThrough};
use operator_runtime::error::Result;
use operator_runtime::manager::{Manager, ManagerBuilder};
use operator_runtime::source_cache::{self, SourceCache};
use operator_runtime::source_contents::SourceContents;
use operator_runtime::workqueue::WorkQueue;

use crate::attachments::Attachments;
use crate::baremetal_request::observe::Machines;
use crate::controller_ref::controller;
use crate::data_plane::event_mapping::plane_of;
use crate::endpoints::build::LABEL;
use crate::endpoints::observe::Caches as Ports;
use crate::host_conflicts::{Claim, ClaimCaches, keys_of_node};
use crate::indexes::{
    BY_HOST, BY_HOST_KEY, BY_LABEL, BY_NAMESPACE, BY_NODE_SET, BY_OWNER, BY_PLANE, BY_ROLE,
    namespace_of, node_sets_of,
};
use crate::node_set::Caches as Sets;
use crate::node_set::external_apis::ExternalApis;
use crate::node_set::tls::node_set_of;
use crate::role::observe::Caches;
use crate::{data_plane, deployment, service};

/// All caches that are watched from the start.
pub(crate) struct SharedCaches {
    planes: Arc<Cache<DataPlane>>,
    pub(crate) roles: Arc<Cache<Role>>,
    pub(crate) nodes: Arc<Cache<Node>>,
    pub(crate) node_sets: Arc<Cache<NodeSet>>,
    deployments: Arc<Cache<Deployment>>,
    pub(crate) services: Arc<Cache<Service>>,
    pub(crate) runs: Arc<Cache<AnsibleEe>>,
    exposed: Arc<Cache<CoreService>>,
    slices: Arc<Cache<EndpointSlice>>,
    baremetal_sets: Arc<Cache<BaremetalSet>>,
    secrets: Arc<MetadataCache<Secret>>,
    config_maps: Arc<MetadataCache<ConfigMap>>,
    others: Arc<ExternalApis>,
    pub(crate) machines: Arc<Machines>,
    metal3: Arc<Metal3>,
    keys: Keys,
}

impl SharedCaches {
    /// Creates empty caches; `manager` is the field manager whose fields of Secrets and ConfigMaps
    /// are kept.
    pub(crate) fn new(
        builder: &ManagerBuilder,
        manager: &'static str,
        keys: Keys,
        others: ExternalApis,
        machines: Machines,
    ) -> Self {
        // The managed fields show whether somebody edited or deleted an inventory by hand.
        let secrets = source_cache::metadata(
            manager,
            vec![
                (BY_LABEL, Box::new(node_set_of)),
                (metal3::list_hosts::BY_SET, Box::new(metal3::list_hosts::set_of)),
            ],
        );
        let metal3 = Arc::new(Metal3::new(builder, Arc::clone(&secrets)));
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
            config_maps: source_cache::metadata(manager, vec![]),
            others: Arc::new(others),
            machines: Arc::new(machines),
            metal3,
            keys,
        }
    }

    pub(crate) fn absorbing(&self) -> Vec<Arc<dyn WriteThrough>> {
        let mut all: Vec<Arc<dyn WriteThrough>> = vec![
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

    pub(crate) fn groups(&self, builder: &ManagerBuilder, api: &Arc<Api>) -> Caches {
        Caches {
            planes: Arc::clone(&self.planes),
            roles: Arc::clone(&self.roles),
            nodes: Arc::clone(&self.nodes),
            claim_caches: self.claim_caches(),
            services: Arc::clone(&self.services),
            runs: Arc::clone(&self.runs),
            sources: self.sources(),
            source_contents: SourceContents::default(),
            attachments: Arc::new(Attachments::new(builder.informers())),
            machines: Arc::clone(&self.machines),
            api: Arc::clone(api),
        }
    }

    pub(crate) fn sets(&self, api: &Arc<Api>, attachments: &Arc<Attachments>) -> Sets {
        Sets {
            node_sets: Arc::clone(&self.node_sets),
            deployments: Arc::clone(&self.deployments),
            claim_caches: self.claim_caches(),
            services: Arc::clone(&self.services),
            runs: Arc::clone(&self.runs),
            sources: self.sources(),
            secrets: Arc::clone(&self.secrets),
            source_contents: SourceContents::default(),
            others: Arc::clone(&self.others),
            attachments: Arc::clone(attachments),
            machines: Arc::clone(&self.machines),
            api: Arc::clone(api),
        }
    }

    pub(crate) fn machines(&self, builder: &ManagerBuilder, api: &Arc<Api>) -> baremetal::Caches {
        baremetal::Caches {
            metal3: Arc::clone(&self.metal3),
            sets: Arc::clone(&self.baremetal_sets),
            sources: self.sources(),
            source_contents: SourceContents::default(),
            pool: Pool::counted(builder.metrics()),
            pauses: RequestBackoff::default(),
            api: Arc::clone(api),
        }
    }

    pub(crate) fn claim_caches(&self) -> ClaimCaches {
        let (roles, nodes) = (Arc::clone(&self.roles), Arc::clone(&self.nodes));
        ClaimCaches { roles, nodes, node_sets: Arc::clone(&self.node_sets) }
    }

    /// Creates a source cache.
    ///
    /// Groups, node sets and machines have one each, because their readers use different
    /// workqueues.
    fn sources(&self) -> Arc<SourceCache> {
        let (secrets, config_maps) = (Arc::clone(&self.secrets), Arc::clone(&self.config_maps));
        SourceCache::keeping(&[KNOWN_HOSTS], &self.keys, secrets, config_maps)
    }

    pub(crate) fn planes(&self) -> data_plane::observe::Caches {
        data_plane::observe::Caches {
            planes: Arc::clone(&self.planes),
            roles: Arc::clone(&self.roles),
            nodes: Arc::clone(&self.nodes),
        }
    }

    pub(crate) fn services(
        &self,
        api: &Arc<Api>,
        sources: &Arc<SourceCache>,
        networks: Vec<IpNet>,
    ) -> service::Caches {
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
        service::Caches { ports, sources: Arc::clone(sources), node_sets }
    }

    /// Returns the caches of deployments.
    ///
    /// They share the digests of sources and the informer of network attachments with the groups.
    pub(crate) fn deployments(&self, groups: &Caches) -> deployment::observe::Caches {
        deployment::observe::Caches {
            deployments: Arc::clone(&self.deployments),
            node_sets: Arc::clone(&self.node_sets),
            services: Arc::clone(&self.services),
            runs: Arc::clone(&self.runs),
            sources: Arc::clone(&groups.sources),
            attachments: Arc::clone(&groups.attachments),
            api: Arc::clone(&groups.api),
        }
    }

    /// Runs the controller of `OpenStackBaremetalSet`s, unless another operator reconciles them.
    ///
    /// The cluster has to serve the kind.
    pub(crate) async fn watch_machines(
        &self,
        builder: &ManagerBuilder,
        manager: &mut Manager,
        api: &Arc<Api>,
        caches: baremetal::Caches,
        queue: Arc<WorkQueue>,
    ) -> Result<()> {
        if builder.drives::<BaremetalSet>().await? {
            manager.watch_owned(&self.baremetal_sets);
            manager.run(BaremetalSets { caches }, Arc::clone(api), queue).await;
        }
        Ok(())
    }

    pub(crate) fn watch(&self, manager: &mut Manager) {
        manager.watch_owned(&self.planes);
        manager.watch_owned(&self.roles);
        manager.watch_owned(&self.nodes);
        manager.watch_owned(&self.node_sets);
        manager.watch_owned(&self.deployments);
        manager.watch_owned(&self.services);
        manager.watch(&self.runs, "");
        manager.watch(&self.secrets, "");
        manager.watch(&self.config_maps, "");
        manager.watch(&self.exposed, LABEL);
        manager.watch(&self.slices, LABEL);
    }
}

pub(crate) fn namespace<K: kube::Resource>(object: &K) -> String {
    object.namespace().unwrap_or_default()
}

fn role_of(node: &Node) -> Vec<Key> {
    let role = node.spec.role.iter().filter(|it| !it.is_empty());
    role.map(|it| Key::new(namespace(node), it)).collect()
}

fn addresses_with_keys(run: &AnsibleEe) -> Vec<Key> {
    let reports = run.status.as_ref().map(|it| it.host_keys.as_slice()).unwrap_or_default();
    let reported = |name: &str| reports.iter().any(|it| it.name == name && it.key.is_some());
    let hosts = run.spec.hosts.iter().filter(|it| reported(&it.name));
    hosts.map(|it| Key::new(namespace(run), &it.address)).collect()
}

fn owner_of<K: kube::Resource>(object: &K) -> Vec<Key> {
    object.owner_references().iter().map(|it| Key::new(namespace(object), &it.uid)).collect()
}

fn controller_of<K: kube::Resource>(object: &K) -> Vec<Key> {
    let owner = controller(object.meta());
    owner.map(|it| Key::new(namespace(object), &it.uid)).into_iter().collect()
}
