//! Reads sets of machines, and asks the hosts on them whether ssh answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::baremetal::BaremetalSet;
use kube::ResourceExt;
use operator_core::object_key::Key;
use operator_runtime::api::Api;
use operator_runtime::cache::WriteThrough;
use operator_runtime::error::Result;
use operator_runtime::manager::Informers;
use operator_runtime::optional_informer::OptionalInformer;
use operator_runtime::ssh_probe::SshProbe;

use crate::baremetal_request::provisioning_state::knows;

/// When it is looked again for the kind where the cluster lacks it: no watch tells when it comes.
pub const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// What was seen of machines; nothing where nobody asks for any.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Whether machines are asked for and the cluster lacks the kind.
    pub is_missed: bool,
    /// The set of the asker's name, whoever it belongs to.
    pub set: Option<Arc<BaremetalSet>>,
    /// The other sets of the namespace.
    pub others: Vec<Arc<BaremetalSet>>,
    /// Host → another set that has a machine for it, or is to have one.
    pub elsewhere: BTreeMap<String, String>,
    /// The addresses, `host:port`, whose ssh server has answered.
    pub answering: BTreeSet<String>,
}

impl Seen {
    /// Whether a set of the namespace has a host, as far as that can be told.
    pub fn may_know(&self, host: &str) -> bool {
        let is_known = self.set.iter().any(|it| knows(it, host));
        is_known || self.elsewhere.contains_key(host) || self.is_missed
    }
}

/// All sets, if the cluster has them, and what is known of the hosts' ssh servers.
pub struct Machines {
    sets: OptionalInformer<BaremetalSet>,
    doors: SshProbe,
}

impl Machines {
    /// Not watched yet; `watches` is where they will be.
    pub fn new(informers: Informers) -> Self {
        Self { sets: OptionalInformer::new(informers), doors: SshProbe::default() }
    }

    /// The cache of what is written.
    pub fn absorbing(&self) -> Arc<dyn WriteThrough> {
        self.sets.absorbing()
    }

    /// Calls `wake` with each set that comes, changes or goes.
    pub fn on_change(&self, wake: impl Fn(Key) + Send + Sync + 'static) {
        self.sets.on_change(wake);
    }

    /// The set of a name, and what others of the namespace have. Nobody's ssh server was asked yet.
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

    /// Those of the addresses whose ssh server answers.
    pub async fn answering(&self, addresses: &BTreeSet<String>) -> BTreeSet<String> {
        self.doors.answering(addresses).await
    }
}
