//! Triggers reconciles of sets: Ironic sends no notifications, and operators poll it at their own
//! interval of up to a minute.

use std::time::Duration;

use anyhow::Result;
use api::baremetal::BaremetalSet;
use e2e::Namespace;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use simulated_cluster::Ironic;

/// Interval at which a set is enqueued; a list of machines is shared for two seconds.
const POLL_INTERVAL: Duration = Duration::from_millis(700);

/// Enqueues a set until its operator has listed its Ironic's machines, and once more, so that the
/// current state is seen.
pub(crate) async fn look(ns: &Namespace, set: &str, ironic: &Ironic) -> Result<()> {
    meanwhile(ns, set, ironic.is_looked_at()).await?;
    wake(ns, set, "last").await
}

/// Waits for `work`, and enqueues the set meanwhile, if it exists.
pub(crate) fn meanwhile<T>(
    ns: &Namespace,
    set: &str,
    work: impl Future<Output = Result<T>>,
) -> impl Future<Output = Result<T>> {
    let mut work = Box::pin(work);
    async move {
        let mut tick = tokio::time::interval(POLL_INTERVAL);
        let mut number = 0;
        loop {
            tokio::select! {
                done = &mut work => return done,
                _ = tick.tick() => {
                    number += 1;
                    wake(ns, set, &number.to_string()).await?;
                }
            }
        }
    }
}

/// Makes a meaningless change to a set, which makes its operator reconcile it.
async fn wake(ns: &Namespace, set: &str, why: &str) -> Result<()> {
    let change = json!({ "metadata": { "annotations": { "example.org/look": why } } });
    let (sets, patch) = (ns.api::<BaremetalSet>(), Patch::Merge(&change));
    match sets.patch(set, &PatchParams::default(), &patch).await {
        Ok(_) => Ok(()),
        // It does not exist yet, or is gone.
        Err(kube::Error::Api(answer)) if answer.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
    }
}
