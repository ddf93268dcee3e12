//! Reads the objects on which the evaluation of a deployment depends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::dataplane::{Deployment, Node, NodeSet, Service};
use kube::ResourceExt;
use operator_core::certificates::certificate_source;
use operator_core::data_sources::SourceRef;
use operator_core::object_key::Key;
use operator_core::run_engine::mounts::node_sets::inventory_name;
use operator_runtime::cache::Cache;
use operator_runtime::controller::{Controller, Decide};
use operator_runtime::error::Result;

use crate::caches::Caches;
use crate::controller_names::DEPLOYMENT;
use crate::default_services::{Found, fault_of};
use crate::deployment::decide::decide;
use crate::deployment::finalizer::is_open;
use crate::deployment::observed::{Observed, listed, named};
use crate::deployment::tls::certificate_secrets;
use crate::host::services::{ca_bundle, sources_and_bundles};
use crate::host::tls::brings_certificates;
use crate::host::vars::sources_of_vars;
use crate::indexes::{BY_NODE_SET, BY_OWNER};

/// Node sets by name.
type NodeSets = BTreeMap<String, Arc<NodeSet>>;

/// Returns the services of a deployment, and the ConfigMaps and Secrets that its runs mount.
fn services_and_sources(
    caches: &Caches,
    namespace: &str,
    deployment: &Deployment,
    node_sets: &NodeSets,
) -> (Found, BTreeSet<SourceRef>) {
    let mut found =
        Found::of(caches.known_services(), namespace, service_names(deployment, node_sets));
    let mut desired = wanted_sources(namespace, node_sets, &found.services);
    // The gates of all services name the operators for whose entries hosts wait.
    let all = node_sets.values().flat_map(|it| it.spec.services.clone());
    let brings = found.services.values().any(|it| brings_certificates(it));
    found.lookup(caches.known_services(), namespace, all);
    if brings {
        // Such a service also mounts the certificates and CA bundles of all others.
        let bundles = found.services.values().filter_map(|it| Some(ca_bundle(it)?.0.to_owned()));
        let certificates = node_sets.values().flat_map(|it| certificate_secrets(it).cloned());
        let secrets = bundles.chain(certificates).map(|it| SourceRef::secret(namespace, &it));
        desired.extend(secrets);
    }
    let certificate_sources =
        found.services.values().filter_map(|it| certificate_source(it).map(str::to_owned));
    let certificate_sources: Vec<String> =
        certificate_sources.filter(|it| !found.services.contains_key(it)).collect();
    found.lookup(caches.known_services(), namespace, certificate_sources);
    (found, desired)
}

/// The controller of deployments.
pub struct Deployments {
    /// The caches that it reads.
    pub caches: Arc<Caches>,
}

impl Controller for Deployments {
    type Observed = Observed;

    const NAME: &'static str = DEPLOYMENT;

    const DECIDE: Decide<Observed> = decide;

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        let caches = &self.caches;
        let namespace = key.namespace.clone();
        let Some(deployment) = caches.deployments.get(key).filter(|it| is_open(it)) else {
            caches.sources.depends(DEPLOYMENT, key, BTreeSet::new());
            return Ok(None);
        };
        let (node_sets, unreadable_sets) =
            lookup(&caches.hosts.node_sets, &namespace, named(&deployment));
        let (Found { services, unreadable }, desired) =
            services_and_sources(caches, &namespace, &deployment, &node_sets);
        let secret = |it: &String| SourceRef::secret(&namespace, &inventory_name(it));
        // Registered before reading, so that a change in between enqueues the deployment again.
        let all = desired.iter().cloned().chain(node_sets.keys().map(secret)).collect();
        caches.sources.depends(DEPLOYMENT, key, all);
        let exists = |it: &&String| caches.sources.version(&secret(it)).is_some();
        let inventories = node_sets.keys().filter(exists).cloned().collect();
        let sources = caches.sources.digests_of(&caches.api, desired).await?;
        let names_networks = node_sets.values().any(|it| !it.spec.network_attachments.is_empty());
        let networks = caches.attachments.seen(&caches.api, &namespace, names_networks).await?;
        let owner = deployment.uid().unwrap_or_default();
        let runs = caches.runs.indexed(BY_OWNER, &Key::new(&namespace, owner));
        let nodes =
            node_sets.iter().map(|(name, set)| (name.clone(), nodes_of(caches, set))).collect();
        let others = others(caches, &deployment, &node_sets);
        Ok(Some(Observed {
            deployment,
            namespace,
            node_sets,
            unreadable_sets,
            services,
            defaults: caches.defaults.clone(),
            unreadable,
            sources,
            inventories,
            networks,
            runs,
            nodes,
            others,
        }))
    }
}

/// Returns those of the named node sets that exist, and why others cannot be parsed.
fn lookup(
    node_sets: &Cache<NodeSet>,
    namespace: &str,
    names: Vec<&str>,
) -> (NodeSets, BTreeMap<String, String>) {
    let (mut found, mut unreadable) = (BTreeMap::new(), BTreeMap::new());
    for name in names {
        match node_sets.try_get(&Key::new(namespace, name)) {
            Ok(it) => found.extend(it.map(|it| (name.to_owned(), it))),
            Err(error) => drop(unreadable.insert(name.to_owned(), fault_of(error))),
        }
    }
    (found, unreadable)
}

/// Returns the nodes that name a node set, by the names of their hosts.
fn nodes_of(caches: &Caches, set: &NodeSet) -> BTreeMap<String, Arc<Node>> {
    let nodes = caches.hosts.nodes.indexed(BY_NODE_SET, &Key::of(set));
    nodes.into_iter().map(|it| (it.name_any(), it)).collect()
}

/// Returns the other deployments of these node sets that have not ended, each once.
fn others(caches: &Caches, ours: &Deployment, node_sets: &NodeSets) -> Vec<Arc<Deployment>> {
    let of_set = |it: &Arc<NodeSet>| caches.deployments.indexed(BY_NODE_SET, &Key::of(&**it));
    let all = node_sets.values().flat_map(of_set);
    let open = all.filter(|it| it.uid() != ours.uid() && !it.has_ended());
    let by_name: BTreeMap<String, Arc<Deployment>> = open.map(|it| (it.name_any(), it)).collect();
    by_name.into_values().collect()
}

/// Returns the names of all listed services, and of those that were listed at the beginning.
fn service_names(deployment: &Deployment, node_sets: &NodeSets) -> BTreeSet<String> {
    let node_sets_of = deployment.status.iter().flat_map(|it| it.node_sets.values());
    let began = node_sets_of.flat_map(|it| it.services.clone());
    let listed = node_sets.values().flat_map(|it| listed(deployment, Some(it)).to_vec());
    began.chain(listed).collect()
}

fn wanted_sources(
    namespace: &str,
    node_sets: &NodeSets,
    services: &BTreeMap<String, Arc<Service>>,
) -> BTreeSet<SourceRef> {
    let ssh = node_sets.values().map(|it| &it.spec.node_template.ansible_ssh_private_key_secret);
    let ssh = ssh.map(|it| SourceRef::secret(namespace, it));
    let vars = node_sets.values().flat_map(|it| sources_of_vars(it));
    let vars = vars.map(|it| it.source(namespace));
    ssh.chain(sources_and_bundles(namespace, services.values(), true)).chain(vars).collect()
}
