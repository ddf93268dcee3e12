//! How far a host of a node set is, as its node records it.

use api::dataplane::{HostState, Node, NodeStatus, ServiceRun};
use operator_core::hash;

/// The version of the fields in the hash of a service: another number would change every hash.
const VERSION: &str = "v1";

/// Returns how far the host of a node is.
pub fn host_state(node: &Node) -> HostState {
    if node.is_leaving() {
        return HostState::Terminating;
    }
    let status = node.status.as_ref();
    let last = status.and_then(|it| Some((it, it.deployment.as_ref()?)));
    let Some((status, last)) = last else { return HostState::Undeployed };
    let is_deployed = status.deployed == Some(true);
    match last.state {
        // One of some tasks completes no host. A host that was to leave may have been stopped
        // meanwhile.
        HostState::Deployed if !is_deployed => HostState::Undeployed,
        HostState::Deploying if last.partial && is_deployed => HostState::Deployed,
        HostState::Deploying if last.partial => HostState::Undeployed,
        HostState::Undeployed
        | HostState::Deploying
        | HostState::Deployed
        | HostState::Failed
        | HostState::Terminating => last.state,
    }
}

/// Returns the record of the service that fails or has failed in the deployment that was last at a
/// host; `None` if there is none. Services that it does not bring may have failed before.
pub fn failed_service(status: &NodeStatus) -> Option<&ServiceRun> {
    let uid = &status.deployment.as_ref()?.uid;
    let is_its = |it: &&ServiceRun| it.reason.is_some() && it.hash == hash_of(uid, &it.name);
    status.services.iter().find(is_its)
}

/// Returns the hash of a service in the deployment of that UID, during which it does not change.
pub fn hash_of(uid: &str, service: &str) -> String {
    hash::short(&(VERSION, uid, service))
}
