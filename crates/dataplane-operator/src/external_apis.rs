//! Access to external operators' objects (addresses, names, certificates), read only when needed
//! and when the cluster has their CRDs.

use api::infra::{DnsData, DnsMasq, IpSet, NetConfig};
use operator_core::object_key::Key;
use operator_core::rbac::{READ, Rule, WRITE};
use operator_runtime::cache_registry::CacheRegistry;
use operator_runtime::cert_manager::CertManager;
use operator_runtime::manager::ManagerBuilder;
use operator_runtime::optional_informer::OptionalInformer;

/// The RBAC rules for addresses and names.
pub const RULES: [Rule; 2] = [
    Rule::of(&["network.openstack.org"], &["netconfigs", "dnsmasqs"], READ),
    Rule::of(&["network.openstack.org"], &["ipsets", "dnsdata"], WRITE),
];

/// Informers for these kinds, started only if the cluster has them.
pub struct ExternalApis {
    /// Networks with their ranges of addresses.
    pub net_configs: OptionalInformer<NetConfig>,
    /// Reserved addresses.
    pub ip_sets: OptionalInformer<IpSet>,
    /// DNS servers.
    pub dns_masqs: OptionalInformer<DnsMasq>,
    /// DNS names.
    pub dns_data: OptionalInformer<DnsData>,
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
}
