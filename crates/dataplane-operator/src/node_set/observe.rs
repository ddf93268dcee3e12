//! Reads everything that the decision on a node set needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::{Deployment, Node, NodeSet, Service};
use api::infra::DnsData;
use k8s_openapi::api::core::v1::Secret;
use kube::{Resource as _, ResourceExt};
use operator_core::certificates::{HOST, Issued, label_value};
use operator_core::data_sources::SourceRef;
use operator_core::finalizers::is_terminating;
use operator_core::node_set_host;
use operator_core::node_set_host::machine_template;
use operator_core::object_key::Key;
use operator_core::run_engine::mounts::node_sets::inventory_name;
use operator_runtime::controller::{Controller, Decide};
use operator_runtime::error::Result;
use operator_runtime::managed_fields::ManagedFields;
use operator_runtime::source_cache::{Content, Values};

use crate::caches::Caches;
use crate::controller_names::NODE_SET;
use crate::default_services::Found;
use crate::finalizers::is_used;
use crate::host::conflicts::Claim;
use crate::host::conflicts::caches::reported_keys;
use crate::host::conflicts::host_claim::key_of_name;
use crate::host::inventory_metadata::Inventory;
use crate::host::machines::Seen;
use crate::host::services::sources_and_bundles;
use crate::host::tls::brings_certificates;
use crate::host::vars::sources_of_vars;
use crate::indexes::{BY_HOST, BY_LABEL, BY_NODE_SET};
use crate::node_set::certificate_bundles::{Bundles, CertificateBundle, MADE_FROM};
use crate::node_set::decide::decide;
use crate::node_set::ipam::{Infra, names_networks};
use crate::node_set::machine_request::awaited;
use crate::node_set::observed::{Observed, UnreadableDeployment, deployment_at};
use crate::node_set::observed_nodes::{SetNodes, describes};
use crate::node_set::{external_resources, last_looks};

/// The controller of node sets.
pub struct NodeSets {
    /// The caches that it reads.
    pub caches: Arc<Caches>,
    /// Whether it may make nodes, and the cluster's definition knows those of node sets.
    pub makes_nodes: bool,
}

impl Controller for NodeSets {
    type Observed = Observed;

    const NAME: &'static str = NODE_SET;

    const DECIDE: Decide<Observed> = decide;

    async fn observe(&self, key: &Key) -> Result<Option<Observed>> {
        let caches = &self.caches;
        let namespace = key.namespace.clone();
        let Some(set) = caches.hosts.node_sets.get(key) else {
            caches.sources.depends(NODE_SET, key, BTreeSet::new());
            return Ok(None);
        };
        let deployments = caches.deployments.indexed(BY_NODE_SET, key);
        let reader = Reader { caches, key, set: &set, deployments: &deployments };
        let found = reader.services();
        let desired = reader.wanted_sources(&found.services);
        let of_vars: BTreeSet<SourceRef> =
            sources_of_vars(&set).iter().map(|it| it.source(&namespace)).collect();
        let own = SourceRef::secret(&namespace, &inventory_name(&key.name));
        // Registered before reading, so that a change in between enqueues the node set again.
        let all = desired.iter().chain(&of_vars).chain([&own]).cloned().collect();
        caches.sources.depends(NODE_SET, key, all);
        let machines = reader.machines().await?;
        let nodes = reader.nodes(self.makes_nodes);
        let unreadable_deployments = reader.unreadable_deployments(&nodes);
        let is_namespace_terminating = reader.is_going(&nodes, &machines).await?;
        let objects = caches.sources.contents_of(&caches.api, of_vars).await?;
        let sources = caches.sources.digests_of(&caches.api, desired).await?;
        let names_any = !set.spec.network_attachments.is_empty();
        let networks = caches.attachments.seen(&caches.api, &namespace, names_any).await?;
        let (runs, neighbours) = reader.around(&nodes);
        let known = [&found.services, &found.brought, &found.certificate_sources];
        let (issued, bundles) = reader.issued(have_certificates(known)).await?;
        let seen = Observed {
            looks: caches.looks(&namespace, nodes.all().filter_map(|(_, it)| it.uid())),
            nodes,
            infra: reader.infra().await?,
            is_namespace_terminating,
            set,
            namespace,
            defaults: caches.defaults.clone(),
            runner: caches.runner,
            sources,
            objects,
            networks,
            deployments,
            unreadable_deployments,
            runs,
            neighbours,
            inventory: Inventory::of(&caches.sources, &own),
            issued,
            bundles,
            machines,
            keys: caches.sources.keys().clone(),
            ..found
        };
        complete(caches, seen, &own).await.map(Some)
    }
}

/// Whether runs on hosts that leave may still need the inventory.
fn is_needed_by_leaving(seen: &Observed) -> bool {
    seen.nodes.leaving.values().any(|it| is_used(&**it))
        || !last_looks::leaving(&seen.set, seen.machines.set.as_deref()).is_empty()
}

/// What is read of one node set.
struct Reader<'a> {
    caches: &'a Caches,
    key: &'a Key,
    set: &'a NodeSet,
    deployments: &'a [Arc<Deployment>],
}

impl Reader<'_> {
    /// Returns the observed address and DNS objects of a node set. Reads nothing if the node set has never
    /// named a network.
    async fn infra(&self) -> Result<Infra> {
        let Self { caches, key: Key { namespace, name }, set, .. } = *self;
        let (apis, api) = (&caches.external_apis, &caches.api);
        let is_named = names_networks(set);
        if !is_named && set.status.as_ref().is_none_or(|it| it.all_ips.is_empty()) {
            return Ok(Infra::default());
        }
        // The CRDs may arrive one by one: an incomplete set counts as none.
        let (Some(ip_sets), Some(net_configs), Some(dns_masqs), Some(dns_data)) = (
            apis.ip_sets.seen(api, namespace).await?,
            apis.net_configs.seen(api, namespace).await?,
            apis.dns_masqs.seen(api, namespace).await?,
            apis.dns_data.seen(api, namespace).await?,
        ) else {
            return Ok(Infra { is_missed: is_named, ..Infra::default() });
        };
        let is_own = |it: &Arc<DnsData>| it.metadata.name.as_ref() == Some(name);
        let dns_data = dns_data.into_iter().find(is_own);
        Ok(Infra { is_used: is_named, is_missed: false, net_configs, ip_sets, dns_masqs, dns_data })
    }

    /// Returns the nodes of a node set.
    fn nodes(&self, are_made: bool) -> SetNodes {
        let Self { caches: Caches { hosts, .. }, key, set, .. } = *self;
        let by_name = |name: &str| hosts.nodes.get(&Key::new(&key.namespace, name));
        let elsewhere = |node: &Node| {
            let name = key_of_name(&key.namespace, &node.name_any());
            let others = hosts.node_sets.indexed(BY_HOST, &name).into_iter();
            let others = others.filter(|it| it.uid() != set.uid() && describes(it, node));
            others.min_by_key(|it| it.name_any())
        };
        let named = hosts.nodes.indexed(BY_NODE_SET, key);
        SetNodes { are_made, ..SetNodes::of(set, named, by_name, elsewhere) }
    }

    /// Whether the namespace is being deleted, which counts only when the node set is as well and a host
    /// has a node or a machine.
    async fn is_going(&self, nodes: &SetNodes, machines: &Seen) -> Result<bool> {
        let is_held = nodes.all().next().is_some() || machines.set.is_some();
        let (api, namespace) = (&self.caches.api, &self.key.namespace);
        Ok(is_held && is_terminating(self.set) && api.is_namespace_terminating(namespace).await?)
    }

    /// Returns the runs that reported the key of a host, and the claims of all objects that may
    /// describe one.
    fn around(&self, nodes: &SetNodes) -> (Vec<Arc<AnsibleEe>>, Vec<Claim>) {
        let (caches, namespace) = (self.caches, &self.key.namespace);
        let leaving = nodes.leaving.values().map(|it| &**it);
        let addresses = node_set_host::addresses(self.set, leaving);
        let runs = caches.runs_with_keys(namespace, addresses.into_iter());
        let reported = reported_keys(namespace, runs.iter(), |_| true);
        let neighbours = caches.hosts.overlapping(&[caches.hosts.of_node_set(self.set)], reported);
        (runs, neighbours)
    }

    /// Returns the services of a node set alone, by the reason why it needs them.
    fn services(&self) -> Observed {
        let (known, namespace) = (self.caches.known_services(), &self.key.namespace);
        let listed = &self.set.spec.services;
        let Found { services, mut unreadable } = Found::of(known, namespace, listed.clone());
        let brought = self.deployments.iter().flat_map(|it| &it.spec.services_override);
        let brought: BTreeSet<_> =
            brought.filter(|it| !services.contains_key(*it)).cloned().collect();
        let mut further = Found::of(known, namespace, brought);
        let brought = further.services;
        unreadable.append(&mut further.unreadable);
        let all = services.iter().chain(&brought);
        let mut lent = Found::lent(known, namespace, all, listed);
        unreadable.append(&mut lent.unreadable);
        let certificate_sources = lent.services;
        Observed { services, unreadable, brought, certificate_sources, ..Observed::default() }
    }

    /// Returns the unreadable deployments of the namespace that the node set has already merged, or
    /// that are at its hosts by their nodes. Because they cannot be read, it is unknown which node sets
    /// they name.
    fn unreadable_deployments(&self, nodes: &SetNodes) -> Vec<UnreadableDeployment> {
        let settled = self.set.status.as_ref().map(|it| it.settled_deployments.as_slice());
        let all = self.caches.deployments.unreadable().borrow().clone();
        let here = all.iter().filter(|it| it.metadata.namespace == self.set.metadata.namespace);
        let known = here.filter_map(|it| {
            let (name, uid) = (it.metadata.name.clone()?, it.metadata.uid.clone()?);
            let has_ended = settled.unwrap_or_default().contains(&uid);
            let is_open = || nodes.all().any(|(_, node)| is_at(node, &uid));
            let why = it.fault.to_string();
            (has_ended || is_open()).then_some(UnreadableDeployment { name, uid, why, has_ended })
        });
        known.collect()
    }

    /// Reads the baremetal sets, if the node set requests one or has machines.
    async fn machines(&self) -> Result<Seen> {
        let has = self.set.status.as_ref().is_some_and(|it| !it.machines.is_empty());
        if !has && machine_template(self.set).is_none() {
            return Ok(Seen::default());
        }
        self.caches.machines.seen(&self.caches.api, self.key).await
    }

    /// Reads the issuers and the issued certificates. Reads nothing if the node set wants no
    /// certificates and has none.
    async fn issued(&self, are_named: bool) -> Result<(Issued, Bundles)> {
        let Self { caches, key: Key { namespace, name }, set, .. } = *self;
        let secrets = caches.secrets.indexed(BY_LABEL, &Key::new(namespace, label_value(name)));
        let wants_some = are_named && set.spec.tls_enabled != Some(false);
        let cert_manager = &caches.external_apis.cert_manager;
        if !wants_some && secrets.is_empty() && !cert_manager.is_owner(set) {
            return Ok((Issued::default(), Bundles::default()));
        }
        let mut issued = cert_manager.issued(&caches.api, namespace).await?;
        let mut bundles = Bundles::default();
        for secret in secrets.iter().filter(|_| issued.is_served) {
            let (name, made_from) = (secret.name_any(), secret.annotations().get(MADE_FROM));
            if let Some(made_from) = made_from.cloned() {
                let managed_fields = ManagedFields::of(secret.meta());
                bundles.existing.insert(name, CertificateBundle { made_from, managed_fields });
            } else if secret.labels().contains_key(HOST) {
                issued.secrets.insert(name, secret.resource_version().unwrap_or_default());
            }
        }
        Ok((issued, bundles))
    }

    /// Returns the Secrets that the status has a hash of, or gets one of in this pass.
    fn deployed_secrets(&self) -> impl Iterator<Item = &String> {
        let recorded = self.set.status.as_ref();
        let is_settled = move |it: &Deployment| {
            let uid = it.uid().unwrap_or_default();
            recorded.is_some_and(|it| it.settled_deployments.contains(&uid))
        };
        let new = self.deployments.iter().filter(move |it| !is_settled(it));
        let names = new.flat_map(|it| &it.status).flat_map(|it| it.secret_hashes.keys());
        names.chain(recorded.into_iter().flat_map(|it| it.secret_hashes.keys()))
    }

    /// Returns the ssh Secret, the data sources and CA bundles of the services, the certificate Secrets,
    /// and what was deployed.
    fn wanted_sources(&self, services: &BTreeMap<String, Arc<Service>>) -> BTreeSet<SourceRef> {
        let (set, namespace) = (self.set, &self.key.namespace);
        let ssh = &set.spec.node_template.ansible_ssh_private_key_secret;
        let issued = set.status.iter().flat_map(|it| &it.certificates).flat_map(|it| &it.secrets);
        let are_mounted = services.values().any(|it| brings_certificates(it));
        let named = issued.filter(|_| are_mounted).chain([ssh]).chain(self.deployed_secrets());
        let secrets = named.map(|it| SourceRef::secret(namespace, it));
        secrets.chain(sources_and_bundles(namespace, services.values(), true)).collect()
    }
}

/// Whether some of these services have certificates.
fn have_certificates(services: [&BTreeMap<String, Arc<Service>>; 3]) -> bool {
    services.into_iter().flat_map(BTreeMap::values).any(|it| !it.spec.tls_certs.is_empty())
}

/// Adds what depends on the rest of the observation: the inventory as it is written, whether machines
/// answer over ssh, and the Secrets of certificates.
async fn complete(caches: &Caches, mut seen: Observed, inventory: &SourceRef) -> Result<Observed> {
    if seen.is_in_use() || is_needed_by_leaving(&seen) {
        seen.written = caches.sources.content(&caches.api, inventory).await?;
    }
    seen.machines.answering = caches.machines.answering(&awaited(&seen)).await;
    for labels in external_resources::needed_secrets(&seen) {
        let read: Vec<Secret> = caches.api.list(&seen.namespace, &labels).await?;
        let content =
            |it: Secret| (it.name_any(), Content::from(Values::of_secret(it, &seen.keys)));
        seen.bundles.files.extend(read.into_iter().map(content));
    }
    Ok(seen)
}

/// Returns whether a deployment is at the host of a node, or waits to disturb it.
fn is_at(node: &Node, uid: &str) -> bool {
    deployment_at(node).is_some_and(|it| it.uid == uid)
        || node.disruption_target().is_some_and(|it| it.deployment == uid)
}
