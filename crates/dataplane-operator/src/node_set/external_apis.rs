//! Access to external operators' objects (addresses, names, certificates), read only when needed
//! and when the cluster has their CRDs.

use std::sync::Arc;

use api::dataplane::NodeSet;
use api::infra::{DnsData, DnsMasq, IpSet, NetConfig};
use kube::ResourceExt;
use operator_core::object_key::Key;
use operator_core::rbac::Rule;
use operator_runtime::api::Api;
use operator_runtime::cache_registry::CacheRegistry;
use operator_runtime::cert_manager::CertManager;
use operator_runtime::error::Result;
use operator_runtime::manager::ManagerBuilder;
use operator_runtime::optional_informer::OptionalInformer;

use crate::node_set::ipam::{Infra, names_networks};

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "get", "list", "patch", "watch"];

/// The RBAC rules for addresses and names.
pub const RULES: [Rule; 2] = [
    Rule::of(&["network.openstack.org"], &["netconfigs", "dnsmasqs"], READ),
    Rule::of(&["network.openstack.org"], &["ipsets", "dnsdata"], WRITE),
];

/// Informers for these kinds, started only if the cluster has them.
pub struct ExternalApis {
    net_configs: OptionalInformer<NetConfig>,
    ip_sets: OptionalInformer<IpSet>,
    dns_masqs: OptionalInformer<DnsMasq>,
    dns_data: OptionalInformer<DnsData>,
    /// Certificates, which roles use too.
    pub cert_manager: CertManager,
}

impl ExternalApis {
    /// Creates the caches without starting any informer.
    pub fn new(builder: &ManagerBuilder, registry: &mut CacheRegistry) -> Self {
        Self {
            net_configs: OptionalInformer::new(builder, registry),
            ip_sets: OptionalInformer::new(builder, registry),
            dns_masqs: OptionalInformer::new(builder, registry),
            dns_data: OptionalInformer::new(builder, registry),
            cert_manager: CertManager::new(builder, registry),
        }
    }

    /// Calls `enqueue` with the key of each object that is added, changed or deleted.
    pub fn on_change(&self, enqueue: &(impl Fn(Key) + Clone + Send + Sync + 'static)) {
        self.net_configs.on_change(enqueue.clone());
        self.ip_sets.on_change(enqueue.clone());
        self.dns_masqs.on_change(enqueue.clone());
        self.dns_data.on_change(enqueue.clone());
        self.cert_manager.on_change(enqueue);
    }

    /// Returns the observed address and DNS objects of a node set. Reads nothing if the node set
    /// has never named a network.
    pub async fn infra(&self, api: &Api, set: &NodeSet) -> Result<Infra> {
        let namespace = set.namespace().unwrap_or_default();
        let is_named = names_networks(set);
        if !is_named && set.status.as_ref().is_none_or(|it| it.all_ips.is_empty()) {
            return Ok(Infra::default());
        }
        // The CRDs may arrive one by one: an incomplete set counts as none.
        let (Some(ip_sets), Some(net_configs), Some(dns_masqs), Some(dns_data)) = (
            self.ip_sets.seen(api, &namespace).await?,
            self.net_configs.seen(api, &namespace).await?,
            self.dns_masqs.seen(api, &namespace).await?,
            self.dns_data.seen(api, &namespace).await?,
        ) else {
            return Ok(Infra { is_missed: is_named, ..Infra::default() });
        };
        let is_own = |it: &Arc<DnsData>| it.metadata.name == set.metadata.name;
        let dns_data = dns_data.into_iter().find(is_own);
        Ok(Infra { is_used: is_named, is_missed: false, net_configs, ip_sets, dns_masqs, dns_data })
    }
}
