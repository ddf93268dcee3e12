//! The caches of dataplane-operator.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::baremetal::BaremetalSet;
use api::dataplane::{DataPlane, Deployment, Service};
use baremetal::metal3::{Metal3, list_hosts};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service as CoreService};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use operator_core::keyed::Keys;
use operator_core::object_key::Key;
use operator_core::run_engine::ssh_secret::KNOWN_HOSTS;
use operator_runtime::api::Api;
use operator_runtime::cache::{Cache, MetadataCache};
use operator_runtime::cache_registry::CacheRegistry;
use operator_runtime::manager::ManagerBuilder;
use operator_runtime::source_cache::SourceCache;

use crate::collection::RunnerImage;
use crate::default_services::DefaultServices;
use crate::external_apis::ExternalApis;
use crate::host::attachments::Attachments;
use crate::host::changed_hosts::ChangedHosts;
use crate::host::conflicts::ClaimCaches;
use crate::host::machines::observe::Machines;
use crate::indexes::{
    BY_HOST_KEY, BY_LABEL, BY_NODE_SET, BY_OWNER, BY_ROLE_LABEL, addresses_with_keys,
    node_set_of_secret, node_sets_of, owner_of, role_of_secret,
};
use crate::labels::{LAST_LOOK, PORTS};

/// What the operator's options set.
pub struct Settings {
    /// The networks whose addresses may become endpoints.
    pub service_networks: Vec<IpNet>,
    /// The content of the default services.
    pub defaults: DefaultServices,
    /// What is known of the runner image.
    pub runner: RunnerImage,
}

/// All caches of the operator.
pub struct Caches {
    /// All data planes.
    pub data_planes: Arc<Cache<DataPlane>>,
    /// All roles, nodes and node sets, which describe hosts.
    pub hosts: ClaimCaches,
    /// All deployments, indexed [`BY_NODE_SET`].
    pub deployments: Arc<Cache<Deployment>>,
    /// All services.
    pub services: Arc<Cache<Service>>,
    /// All runs, indexed [`BY_OWNER`] and [`BY_HOST_KEY`].
    pub runs: Arc<Cache<AnsibleEe>>,
    /// The operator's Kubernetes Services, indexed [`BY_OWNER`].
    pub exposed: Arc<Cache<CoreService>>,
    /// The operator's EndpointSlices, indexed [`BY_OWNER`].
    pub slices: Arc<Cache<EndpointSlice>>,
    /// The metadata of all Secrets, indexed [`BY_LABEL`] and [`BY_ROLE_LABEL`].
    pub secrets: Arc<MetadataCache<Secret>>,
    /// All ConfigMaps and Secrets.
    pub sources: Arc<SourceCache>,
    /// All network attachments, if the cluster serves the kind.
    pub attachments: Attachments,
    /// All baremetal sets, if the cluster serves the kind.
    pub machines: Machines,
    /// All baremetal sets again, for their controller; its informer starts once the cluster serves
    /// the kind.
    pub baremetal_sets: Arc<Cache<BaremetalSet>>,
    /// Metal3's objects, if the cluster serves their kinds.
    pub metal3: Arc<Metal3>,
    /// The objects of the operators of addresses, names and certificates, if the cluster serves
    /// their kinds.
    pub external_apis: ExternalApis,
    /// The networks whose addresses may become endpoints; empty allows all.
    pub service_networks: Vec<IpNet>,
    /// The hosts of roles about which something else than their nodes has changed.
    pub changed_hosts: ChangedHosts,
    /// The content of the default services.
    pub defaults: DefaultServices,
    /// What is known of the runner image.
    pub runner: RunnerImage,
    /// The API client.
    pub api: Arc<Api>,
}

impl Caches {
    /// Creates empty caches, whose informers `registry` starts.
    ///
    /// `manager` is the field manager whose fields of Secrets and ConfigMaps are kept: they show
    /// whether somebody edited or deleted an inventory by hand.
    pub fn new(
        builder: &ManagerBuilder,
        registry: &mut CacheRegistry,
        manager: &'static str,
        keys: &Keys,
        Settings { service_networks, defaults, runner }: Settings,
    ) -> Arc<Self> {
        let hosts = ClaimCaches::new(registry);
        let data_planes = registry.owned(vec![]);
        let deployments = registry.owned(vec![(BY_NODE_SET, Box::new(node_sets_of))]);
        let services = registry.owned(vec![]);
        let runs = registry.cache(vec![
            (BY_OWNER, Box::new(owner_of)),
            (BY_HOST_KEY, Box::new(addresses_with_keys)),
        ]);
        let exposed = registry.labelled(PORTS, vec![(BY_OWNER, Box::new(owner_of))]);
        let slices = registry.labelled(PORTS, vec![(BY_OWNER, Box::new(owner_of))]);
        let secrets = registry.metadata::<Secret>(
            manager,
            vec![
                (BY_LABEL, Box::new(node_set_of_secret)),
                (BY_ROLE_LABEL, Box::new(role_of_secret)),
                (list_hosts::BY_SET, Box::new(list_hosts::set_of)),
            ],
        );
        let config_maps = registry.metadata::<ConfigMap>(manager, vec![]);
        let attachments = Attachments::new(builder, registry);
        let machines = Machines::new(builder, registry);
        let external_apis = ExternalApis::new(builder, registry);
        let metal3 = Arc::new(Metal3::new(builder, registry, &secrets));
        let baremetal_sets = Cache::new(vec![]);
        registry.register_write_through(Arc::<Cache<BaremetalSet>>::clone(&baremetal_sets));
        Arc::new(Self {
            data_planes,
            hosts,
            deployments,
            services,
            runs,
            exposed,
            slices,
            sources: SourceCache::new(&[KNOWN_HOSTS], keys, &secrets, &config_maps),
            secrets,
            attachments,
            machines,
            baremetal_sets,
            metal3,
            external_apis,
            service_networks,
            changed_hosts: ChangedHosts::default(),
            defaults,
            runner,
            api: builder.api(registry),
        })
    }

    /// Returns what [`Found`](crate::default_services::Found) is looked up with: all services, and the content of the default ones.
    pub fn known_services(&self) -> (&Cache<Service>, &DefaultServices) {
        (&self.services, &self.defaults)
    }

    /// Returns the runs that look for guests on the hosts of the nodes with these UIDs.
    pub fn looks(
        &self,
        namespace: &str,
        uids: impl IntoIterator<Item = String>,
    ) -> Vec<Arc<AnsibleEe>> {
        let keys = uids.into_iter().map(|it| Key::new(namespace, it));
        let runs = keys.flat_map(|it| self.runs.indexed(BY_OWNER, &it));
        runs.filter(|it| it.labels().contains_key(LAST_LOOK)).collect()
    }

    /// Returns the runs to which a host at one of the addresses presented its ssh host key, each
    /// once.
    pub fn runs_with_keys(
        &self,
        namespace: &str,
        addresses: impl Iterator<Item = String>,
    ) -> Vec<Arc<AnsibleEe>> {
        let found =
            addresses.flat_map(|it| self.runs.indexed(BY_HOST_KEY, &Key::new(namespace, it)));
        found.map(|it| (it.name_any(), it)).collect::<BTreeMap<_, _>>().into_values().collect()
    }
}
