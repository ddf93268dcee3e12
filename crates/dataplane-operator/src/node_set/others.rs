//! What operators of others serve for node sets, read only where it is needed and the cluster has it:
//! addresses and names, and certificates.

use std::sync::Arc;

use common::api::cert_manager::{Certificate, Issuer};
use common::api::dataplane::NodeSet;
use common::api::infra::{DnsData, DnsMasq, IpSet, NetConfig};
use common::rbac::Rule;
use kube::ResourceExt;
use shell::api::Api;
use shell::cache::{Key, Watchable};
use shell::error::Result;
use shell::leader::Watches;

use crate::node_set::ipam::{Infra, names_networks};
use crate::node_set::tls::Issued;
use crate::optional::Optional;

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "get", "list", "patch", "watch"];

/// What dataplane-operator may do with these kinds.
pub const RULES: [Rule; 4] = [
    Rule::of(&["network.openstack.org"], &["netconfigs", "dnsmasqs"], READ),
    Rule::of(&["network.openstack.org"], &["ipsets", "dnsdata"], WRITE),
    Rule::of(&["cert-manager.io"], &["issuers"], READ),
    Rule::of(&["cert-manager.io"], &["certificates"], WRITE),
];

/// All objects of these kinds, if the cluster has them.
pub struct Others {
    net_configs: Optional<NetConfig>,
    ip_sets: Optional<IpSet>,
    dns_masqs: Optional<DnsMasq>,
    dns_data: Optional<DnsData>,
    issuers: Optional<Issuer>,
    certificates: Optional<Certificate>,
}

impl Others {
    /// Not watched yet; `watches` makes what they will be in.
    pub fn new(watches: impl Fn() -> Watches) -> Self {
        Self {
            net_configs: Optional::new(watches()),
            ip_sets: Optional::new(watches()),
            dns_masqs: Optional::new(watches()),
            dns_data: Optional::new(watches()),
            issuers: Optional::new(watches()),
            certificates: Optional::new(watches()),
        }
    }

    /// Calls `wake` with the namespace of each object that comes, changes or goes: a node set has
    /// objects of its own, and depends on those that its namespace has for all.
    pub fn on_change(&self, wake: impl Fn(&str) + Clone + Send + Sync + 'static) {
        fn listen<K: Watchable>(to: &Optional<K>, wake: impl Fn(&str) + Send + Sync + 'static) {
            to.on_change(move |key: Key| wake(&key.namespace));
        }
        listen(&self.net_configs, wake.clone());
        listen(&self.ip_sets, wake.clone());
        listen(&self.dns_masqs, wake.clone());
        listen(&self.dns_data, wake.clone());
        listen(&self.issuers, wake.clone());
        listen(&self.certificates, wake);
    }

    /// What manages the addresses and names of a node set's hosts; nothing is asked where it names no
    /// networks.
    pub async fn infra(&self, api: &Api, set: &NodeSet) -> Result<Infra> {
        let namespace = set.namespace().unwrap_or_default();
        if !names_networks(set) {
            return Ok(Infra::default());
        }
        let Some(ip_sets) = self.ip_sets.seen(api, &namespace).await? else {
            return Ok(Infra::default());
        };
        let net_configs = self.net_configs.seen(api, &namespace).await?.unwrap_or_default();
        let dns_masqs = self.dns_masqs.seen(api, &namespace).await?.unwrap_or_default();
        let dns_data = self.dns_data.seen(api, &namespace).await?.unwrap_or_default();
        let is_own = |it: &Arc<DnsData>| it.metadata.name == set.metadata.name;
        let dns_data = dns_data.into_iter().find(is_own);
        Ok(Infra { is_used: true, net_configs, ip_sets, dns_masqs, dns_data })
    }

    /// What issues certificates; nothing is asked where the node set wants none, or no service names
    /// any.
    pub async fn issued(&self, api: &Api, set: &NodeSet, are_named: bool) -> Result<Issued> {
        if !are_named || set.spec.tls_enabled == Some(false) {
            return Ok(Issued::default());
        }
        let namespace = set.namespace().unwrap_or_default();
        let Some(certificates) = self.certificates.seen(api, &namespace).await? else {
            return Ok(Issued::default());
        };
        let issuers = self.issuers.seen(api, &namespace).await?.unwrap_or_default();
        Ok(Issued { is_served: true, issuers, certificates })
    }
}
