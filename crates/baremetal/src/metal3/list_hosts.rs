//! Reads Metal3's objects for a set, and maps their changes to sets.

use std::sync::Arc;

use api::baremetal::BaremetalSet;
use api::metal3::{BareMetalHost, ProvisionServer};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::core::PartialObjectMeta;
use operator_core::object_key::Key;
use operator_core::rbac::{READ, Rule};
use operator_runtime::api::Api;
use operator_runtime::cache::MetadataCache;
use operator_runtime::cache_registry::CacheRegistry;
use operator_runtime::error::Result;
use operator_runtime::manager::ManagerBuilder;
use operator_runtime::optional_informer::OptionalInformer;

use super::bare_metal_host::{UID, host_secret, is_of};
use super::writes::of_hosts;
use crate::observe::{HostSecret, Metal3Seen};

/// Index of Secrets by the set for whose hosts they were created.
pub const BY_SET: &str = "baremetal-set";

/// The RBAC rules for these kinds.
pub const RULES: [Rule; 2] = [
    Rule::of(&["metal3.io"], &["baremetalhosts"], &["get", "list", "patch", "watch"]),
    Rule::of(&["baremetal.openstack.org"], &["openstackprovisionservers"], READ),
];

/// The informers for Metal3's kinds, started only if the cluster has them, and the Secrets of
/// hosts.
pub struct Metal3 {
    machines: OptionalInformer<BareMetalHost>,
    servers: OptionalInformer<ProvisionServer>,
    secrets: Arc<MetadataCache<Secret>>,
    /// The watched namespaces; empty means all.
    namespaces: Vec<String>,
}

impl Metal3 {
    /// Creates the caches without starting any watch; `secrets` must have the index [`BY_SET`].
    pub fn new(
        builder: &ManagerBuilder,
        registry: &mut CacheRegistry,
        secrets: &Arc<MetadataCache<Secret>>,
    ) -> Self {
        Self {
            machines: OptionalInformer::new(builder, registry),
            servers: OptionalInformer::new(builder, registry),
            secrets: Arc::clone(secrets),
            namespaces: builder.namespaces().to_vec(),
        }
    }

    /// Calls `on_machine` with the key of each changed machine, and `on_server` with that of each
    /// changed provision server.
    pub fn on_change(
        &self,
        on_machine: impl Fn(Key) + Send + Sync + 'static,
        on_server: impl Fn(Key) + Send + Sync + 'static,
    ) {
        self.machines.on_change(on_machine);
        self.servers.on_change(on_server);
    }

    /// Reads everything of Metal3 that concerns a set.
    pub async fn list_hosts(&self, api: &Api, set: &BaremetalSet) -> Result<Metal3Seen> {
        let (spec, namespace) = (&set.spec.template, set.namespace().unwrap_or_default());
        let machines = self.machines.all(api).await?;
        // A machine that cannot be parsed is not lost and must not be replaced.
        let reported = set.status.iter().flat_map(|it| it.baremetal_hosts.values());
        let where_told = reported.into_iter().filter_map(|it| it.bmh_ref.split_once('/'));
        for namespace in where_told.map(|it| it.0).chain([spec.bmh_namespace.as_str()]) {
            self.machines.check_readable(namespace)?;
        }
        let mut server = None;
        if let Some(name) = spec.provision_server_name.as_ref().filter(|it| !it.is_empty()) {
            let servers = self.servers.seen(api, &namespace).await?.unwrap_or_default();
            server = servers.into_iter().find(|it| it.metadata.name.as_ref() == Some(name));
        }
        let secrets = self.secrets.indexed(BY_SET, &by_set(&set.uid().unwrap_or_default()));
        let mut secrets: Vec<HostSecret> = secrets.iter().map(|it| host_secret(&**it)).collect();
        secrets.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        let is_others = |it: &Key| self.secrets.get(it).is_some_and(|it| !is_of(&*it, set));
        let taken = of_hosts(set).into_iter().filter(is_others).map(|it| it.name).collect();
        Ok(Metal3Seen { machines, secrets, server, taken, namespaces: self.namespaces.clone() })
    }
}

fn by_set(uid: &str) -> Key {
    Key::new("", uid)
}

/// Returns the keys of the index [`BY_SET`].
pub fn set_of(secret: &PartialObjectMeta<Secret>) -> Vec<Key> {
    secret.labels().get(UID).map(|it| by_set(it)).into_iter().collect()
}
