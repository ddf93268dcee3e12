//! The observed set of machines of an owner, as plain data.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::baremetal::BaremetalSet;

use crate::host::machines::provisioning_state::knows;

/// Requeue interval while the CRD is missing: no watch reports its arrival.
pub const CRD_POLL_INTERVAL: Duration = Duration::from_mins(1);

/// What was observed of machines; empty if none are requested.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Whether machines are requested and the cluster lacks the CRD.
    pub is_missed: bool,
    /// The set with the requesting object's name, which may belong to another owner.
    pub set: Option<Arc<BaremetalSet>>,
    /// The other sets of the namespace.
    pub others: Vec<Arc<BaremetalSet>>,
    /// Host → another set that has or requests a machine for it.
    pub elsewhere: BTreeMap<String, String>,
    /// The addresses, as `host:port`, whose ssh server has answered.
    pub answering: BTreeSet<String>,
}

impl Seen {
    /// Returns whether a set of the namespace may have a host. True if the sets are unknown.
    pub fn may_know(&self, host: &str) -> bool {
        let is_known = self.set.iter().any(|it| knows(it, host));
        is_known || self.elsewhere.contains_key(host) || self.is_missed
    }
}
