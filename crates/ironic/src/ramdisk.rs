//! The network of a machine's ramdisk: its field `network_data`, for networks without DHCP.
//!
//! Ironic never empties the field, and needs it until the machine is clean, when it is no longer
//! reserved.
//! A mark in `extra` therefore records for which host it was written. The caller that reserves the machine
//! next replaces it in the same request, and the caller that released the machine removes it once it is
//! clean.

use api::secret::Secret;
use operator_core::hash;
use serde_json::{Value, json};

use crate::node::Node;

/// The key of `extra` with the mark.
const MARK: &str = "edpm_ramdisk";

/// Values of requests that do not take part in the evaluation.
#[derive(Clone, Debug, Default)]
pub struct RequestValues {
    /// The value of `configdrive` for its deployment.
    pub drive: Secret<Value>,
    /// The network data of its ramdisk, [`crate::DesiredMachine::ramdisk`].
    pub ramdisk: Option<Secret<Value>>,
}

/// Returns the mark: the host's instance and the digest of the network data.
fn mark(instance: &str, data: &Secret<Value>) -> Value {
    json!({"of": instance, "hash": hash::digest(data.expose())})
}

/// Returns whether a machine's network data was written for the host and not removed since.
pub fn is_left(node: &Node, instance: &str) -> bool {
    node.extra.get(MARK).is_some_and(|it| it["of"] == instance)
}

/// Returns whether a machine has this network data from us, or none; data of others is ignored.
pub(crate) fn agrees(node: &Node, instance: &str, wanted: Option<&Secret<Value>>) -> bool {
    node.extra.get(MARK) == wanted.map(|it| mark(instance, it)).as_ref()
}

/// Returns the patch that sets this network data, or removes ours.
pub(crate) fn changes(node: &Node, instance: &str, wanted: Option<&Secret<Value>>) -> Vec<Value> {
    let mark_path = format!("/extra/{MARK}");
    if agrees(node, instance, wanted) {
        return Vec::new();
    }
    match wanted {
        Some(data) => vec![
            json!({"op": "add", "path": "/network_data", "value": data.expose()}),
            json!({"op": "add", "path": mark_path, "value": mark(instance, data)}),
        ],
        None => vec![
            json!({"op": "remove", "path": "/network_data"}),
            json!({"op": "remove", "path": mark_path}),
        ],
    }
}
