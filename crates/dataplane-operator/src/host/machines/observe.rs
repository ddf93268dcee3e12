//! Reads baremetal sets, and probes the ssh servers of their hosts.

use std::collections::BTreeSet;

use api::baremetal::BaremetalSet;
use kube::ResourceExt;
use operator_core::object_key::Key;
use operator_runtime::api::Api;
use operator_runtime::cache_registry::CacheRegistry;
use operator_runtime::error::Result;
use operator_runtime::manager::ManagerBuilder;
use operator_runtime::optional_informer::OptionalInformer;
use operator_runtime::ssh_probe::SshProbe;

use crate::host::machines::set::Seen;

/// All baremetal sets, if the cluster has the CRD, and the ssh probes of their hosts.
pub struct Machines {
    sets: OptionalInformer<BaremetalSet>,
    ssh_probe: SshProbe,
}

impl Machines {
    /// Creates the cache without starting the informer.
    pub fn new(builder: &ManagerBuilder, registry: &mut CacheRegistry) -> Self {
        Self { sets: OptionalInformer::new(builder, registry), ssh_probe: SshProbe::default() }
    }

    /// Calls `enqueue` with the key of each set that is added, changed or deleted.
    pub fn on_change(&self, enqueue: impl Fn(Key) + Send + Sync + 'static) {
        self.sets.on_change(enqueue);
    }

    /// Reads the set of a name and the other sets of the namespace. No ssh server is probed yet.
    pub async fn seen(&self, api: &Api, key: &Key) -> Result<Seen> {
        let Some(here) = self.sets.seen(api, &key.namespace).await? else {
            return Ok(Seen { is_missed: true, ..Seen::default() });
        };
        self.sets.check_readable(&key.namespace)?;
        let mut seen = Seen::default();
        for set in here {
            let name = set.name_any();
            if name == key.name {
                seen.set = Some(set);
                continue;
            }
            let given = set.status.iter().flat_map(|it| it.baremetal_hosts.keys());
            let hosts = set.spec.baremetal_hosts.keys().chain(given);
            seen.elsewhere.extend(hosts.map(|it| (it.clone(), name.clone())));
            seen.others.push(set);
        }
        Ok(seen)
    }

    /// Returns the addresses whose ssh server answers.
    pub async fn answering(&self, addresses: &BTreeSet<String>) -> BTreeSet<String> {
        self.ssh_probe.answering(addresses).await
    }
}
