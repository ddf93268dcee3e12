//! Reads why deployments failed, where Ironic's machines have it no more.

use std::time::Duration;

use api::baremetal::BaremetalSet;
use ironic::history::{Entry, History, is_silent, of_failure};
use ironic::{Error, Node, Request, history};
use ironic_client::Session;
use tokio::time::timeout;

use crate::observe::Machines;

/// How many machines are read in one pass; the next one goes on.
const MAX_MACHINES: usize = 4;
/// Timeout of all of them. Without an answer the failure is reported without its cause.
const DEADLINE: Duration = Duration::from_secs(10);

/// Adds the causes of failed deployments of a set's machines that its status does not have yet.
pub(super) async fn read(session: &Session, set: &BaremetalSet, machines: &mut Machines) {
    if machines.version < history::SINCE {
        return;
    }
    let unknown = machines.nodes.iter().filter(|it| is_unknown(set, it));
    let unknown: Vec<Node> = unknown.take(MAX_MACHINES).cloned().collect();
    let causes = &mut machines.causes;
    let read = async {
        for node in &unknown {
            match cause(session, node).await {
                Ok(found) => causes.extend(found.map(|it| (node.uuid.clone(), it))),
                Err(error) => tracing::debug!(node = node.uuid, %error, "no history"),
            }
        }
    };
    // What was read until then counts.
    let _ = timeout(DEADLINE, read).await;
}

/// Whether a set's machine has failed, and neither Ironic nor the status has the cause.
fn is_unknown(set: &BaremetalSet, node: &Node) -> bool {
    let reported = set.status.iter().flat_map(|it| it.baremetal_hosts.values());
    let Some(host) = reported.into_iter().find(|it| it.bmh_ref == node.uuid) else { return false };
    let reported = host.failure.as_ref().map(|it| &it.since);
    is_silent(node) && reported != node.provision_updated_at.as_ref()
}

async fn cause(session: &Session, node: &Node) -> Result<Option<String>, Error> {
    let listed = session.ask(&Request::history(&node.uuid)).await?;
    let listed: History = serde_json::from_value(listed).map_err(|_| Error::NotIronic)?;
    let Some(found) = of_failure(&listed, node) else { return Ok(None) };
    let entry = session.ask(&Request::history_entry(&node.uuid, &found.uuid)).await?;
    let entry: Entry = serde_json::from_value(entry).map_err(|_| Error::NotIronic)?;
    Ok(history::cause(Some(&entry.event)).map(str::to_owned))
}
