//! Operators that are to look at an Ironic at once: it tells nobody, and is asked at their own pace, of up
//! to a minute.

use std::time::Duration;

use anyhow::Result;
use api::baremetal::BaremetalSet;
use e2e::Namespace;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use simulated_cluster::Ironic;

/// How often a set is woken; a list of machines is shared for two seconds.
const AGAIN: Duration = Duration::from_millis(700);

/// Wakes a set until its operator has looked at its Ironic, and once more: what stands there now is seen.
pub(crate) async fn look(ns: &Namespace, set: &str, ironic: &Ironic) -> Result<()> {
    meanwhile(ns, set, ironic.is_looked_at()).await?;
    wake(ns, set, "last").await
}

/// Waits for something, and wakes a set meanwhile, if there is one.
pub(crate) fn meanwhile<T>(
    ns: &Namespace,
    set: &str,
    work: impl Future<Output = Result<T>>,
) -> impl Future<Output = Result<T>> {
    let mut work = Box::pin(work);
    async move {
        let mut tick = tokio::time::interval(AGAIN);
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

/// A change of a set that says nothing: whoever looks after it looks at it.
async fn wake(ns: &Namespace, set: &str, why: &str) -> Result<()> {
    let change = json!({ "metadata": { "annotations": { "example.org/look": why } } });
    let (sets, patch) = (ns.api::<BaremetalSet>(), Patch::Merge(&change));
    match sets.patch(set, &PatchParams::default(), &patch).await {
        Ok(_) => Ok(()),
        // It is not made yet, or gone.
        Err(kube::Error::Api(answer)) if answer.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
    }
}
