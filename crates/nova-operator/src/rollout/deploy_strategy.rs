//! Whether changes are deployed to a compute, by its own `deploy` and that of its node.

use api::dataplane::Node;
use api::nova::ExternalCompute;

/// Whether changes are deployed. The compute's own field follows the node's; a compute that a user
/// created may omit it, and then the node's applies.
pub fn deploys(compute: &ExternalCompute, node: Option<&Node>) -> bool {
    let of_node = || node.and_then(|it| it.status.as_ref()?.deploy);
    compute.spec.deploy.or_else(of_node).unwrap_or(false)
}

/// Whether the compute's or its node's own `deploy` is false, which excludes it from the rollout of
/// its role.
pub fn is_left_out(compute: &ExternalCompute, node: &Node) -> bool {
    let of_node = node.spec.deploy_strategy.as_ref().and_then(|it| it.deploy);
    // A compute's own field follows its node's, unless a user has taken ownership of it.
    let follows = node.status.as_ref().and_then(|it| it.deploy) == Some(false);
    of_node == Some(false) || (compute.spec.deploy == Some(false) && !follows)
}
