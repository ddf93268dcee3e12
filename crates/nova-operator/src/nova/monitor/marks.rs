//! Which hosts were read twice since a deployment of a node set has ended there.

use std::collections::BTreeMap;

use api::dataplane::SeenDeployment;
use operator_core::object_key::Key;
use tokio::time::Instant;

/// How many readings a host needs: the first one may still show what nova had before the deployment
/// ended.
const NEEDED: u32 = 2;

/// The last deployment of each host that was asked about, and how often the host was read since then. An
/// operator that starts anew counts anew.
#[derive(Default)]
pub(crate) struct Marks(BTreeMap<Key, Mark>);

struct Mark {
    deployment: SeenDeployment,
    since: Instant,
    n_readings: u32,
}

impl Marks {
    /// Whether the host of a compute was read twice since a deployment was first asked about.
    pub(crate) fn has_read_twice(&mut self, compute: &Key, deployment: &SeenDeployment) -> bool {
        let mark = self.0.get(compute).filter(|it| it.deployment == *deployment);
        if let Some(mark) = mark {
            return mark.n_readings >= NEEDED;
        }
        let deployment = deployment.clone();
        let mark = Mark { deployment, since: Instant::now(), n_readings: 0 };
        self.0.insert(compute.clone(), mark);
        false
    }

    /// Counts a reading of the host of a compute that began then; returns whether it is the last one that
    /// was needed.
    pub(crate) fn count(&mut self, compute: &Key, begun: Instant) -> bool {
        let Some(mark) = self.0.get_mut(compute).filter(|it| it.since <= begun) else {
            return false;
        };
        mark.n_readings = mark.n_readings.saturating_add(1);
        mark.n_readings == NEEDED
    }

    /// Forgets the hosts of computes that do not exist any more.
    pub(crate) fn keep(&mut self, exists: impl Fn(&Key) -> bool) {
        self.0.retain(|key, _| exists(key));
    }
}
