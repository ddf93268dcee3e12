//! Over which network a machine's ramdisk works: its field `network_data`, where there is no DHCP.
//!
//! Ironic never empties the field, and needs it until the machine is clean, when it is nobody's any
//! more. So a mark in `extra` tells for which host it was written: whoever reserves the machine next
//! replaces it in the same request, and whoever gave the machine back takes it off once it is clean.

use config_drive::Secret;
use operator_core::hash;
use serde_json::{Value, json};

use crate::node::Node;

/// The key of `extra` under which the mark stands.
const MARK: &str = "edpm_ramdisk";

/// What requests for a machine say besides what was judged.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The value of `configdrive`, for its deployment.
    pub drive: Secret<Value>,
    /// The network data of its ramdisk, [`crate::Wish::ramdisk`].
    pub ramdisk: Option<Secret<Value>>,
}

/// Whose network data it is, and which.
fn mark(instance: &str, data: &Secret<Value>) -> Value {
    json!({"of": instance, "hash": hash::digest(data.expose())})
}

/// Whether a machine's network data was written for the host, and was not taken off since.
pub fn is_left(node: &Node, instance: &str) -> bool {
    node.extra.get(MARK).is_some_and(|it| it["of"] == instance)
}

/// Whether a machine has this network data from us, or none. What others wrote is not looked at.
pub(crate) fn agrees(node: &Node, instance: &str, wanted: Option<&Secret<Value>>) -> bool {
    node.extra.get(MARK) == wanted.map(|it| mark(instance, it)).as_ref()
}

/// What a patch of the machine says so that it has this network data, or none of ours.
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
