//! How a machine is reserved, and what is recorded on it to recover from a crash.

use api::baremetal::Image;
use operator_core::hash;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::desired_machine::DesiredMachine;
use crate::node::Node;
use crate::ramdisk;

/// The key of `instance_info` with the [`DeployRecord`]; Ironic empties `instance_info` on
/// undeployment.
const LEDGER: &str = "edpm";

/// Returns the UUID by which a machine is reserved for a host of a set.
///
/// It is the same for the same host, and differs for a set that was created again. It has version 8
/// of RFC 9562, a custom hash.
pub fn instance_uuid(set_uid: &str, host: &str) -> String {
    // The third text is a part of all UUIDs by which machines are reserved.
    let digest = hash::digest(&[set_uid, host, ""]);
    let variant = ["8", "9", "a", "b"][usize::from(digest.as_bytes()[16] % 4)];
    let part = |from: usize, to: usize| &digest[from..to];
    format!(
        "{}-{}-8{}-{variant}{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(17, 20),
        part(20, 32)
    )
}

/// Returns the name of the host of this set that a machine is reserved for; `None` otherwise.
pub fn host_of<'a>(node: &'a Node, set_uid: &str) -> Option<&'a str> {
    let host = node.instance_info.get(HOST)?.as_str()?;
    node.is_of(&instance_uuid(set_uid, host)).then_some(host)
}

/// Returns which deployment of which reservation a machine has; `None` for a free machine.
///
/// It is the UUID of the reservation and the time at which the deployment was recorded, or only the
/// UUID when nothing is recorded. It changes when a machine is undeployed and deployed again, even
/// with the same host, machine and reservation.
pub fn deployment(node: &Node) -> Option<String> {
    let uuid = node.instance_uuid.as_ref()?;
    let since = DeployRecord::of(node).and_then(|it| it.since);
    Some(since.map_or_else(|| uuid.clone(), |since| format!("{uuid}@{since}")))
}

/// What is recorded on a machine before it is deployed.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct DeployRecord {
    /// Digest of the config drive, with the key that the installation had then; empty for an
    /// adopted machine, which gets none.
    pub drive: String,
    /// Number of the next, active or last attempt; 1 for the first.
    pub attempt: u32,
    /// `provision_updated_at` of the failure after which the attempt was recorded.
    ///
    /// A failure at another time belongs to the attempt itself. Absent for the first attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// `provision_updated_at` of the machine when this was recorded; absent if Ironic reported no
    /// time.
    ///
    /// Ironic empties the record when it undeploys the machine, whose state has changed by the time
    /// of the next record, so no two deployments have the same value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What was written beside the record.
    ///
    /// Ironic replaces the checksum of an image that it converts, and values that are no longer
    /// desired are removed.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub wrote: Map<String, Value>,
}

impl DeployRecord {
    /// Returns the record on a machine; `None` when there is none of this form.
    pub fn of(node: &Node) -> Option<Self> {
        serde_json::from_value(node.instance_info.get(LEDGER)?.clone()).ok()
    }

    /// Returns the record before the first attempt to deploy what is desired.
    pub(crate) fn first(node: &Node, desired: &DesiredMachine) -> Self {
        Self {
            drive: desired.drive.text(),
            attempt: 1,
            after: None,
            since: node.provision_updated_at.clone(),
            wrote: own(desired),
        }
    }

    /// Returns whether the machine was adopted instead of deployed.
    pub fn is_of_adopted(&self) -> bool {
        self.drive.is_empty()
    }
}

/// The key of `instance_info` with the host's name.
const HOST: &str = "display_name";
/// The keys of an image's checksum, which Ironic replaces if it converts the image.
const CHECKSUM: [&str; 3] = ["image_checksum", "image_os_hash_algo", "image_os_hash_value"];
/// The keys of `instance_info` that this crate writes.
const OWN: [&str; 7] =
    [HOST, "image_source", CHECKSUM[0], CHECKSUM[1], CHECKSUM[2], "root_device", LEDGER];
/// The config drive, which Ironic shows masked; the mask must not be written back.
const DRIVE: &str = "configdrive";

/// Returns what `instance_info` must contain for a host, except for the record.
fn own(desired: &DesiredMachine) -> Map<String, Value> {
    let mut own = Map::new();
    own.insert(HOST.into(), json!(desired.host));
    if let Some(Image { source, checksum }) = &desired.image {
        own.insert("image_source".into(), json!(source));
        match checksum {
            Some(url) if url.contains("://") => {
                own.insert("image_checksum".into(), json!(url));
            }
            Some(hash) => {
                own.insert("image_os_hash_algo".into(), json!("sha256"));
                own.insert("image_os_hash_value".into(), json!(hash));
            }
            None => {}
        }
    }
    if !desired.root_device.is_empty() {
        own.insert("root_device".into(), json!(desired.root_device));
    }
    own
}

/// Returns the `instance_info` before a deployment, with that attempt's record; other keys are
/// kept.
pub(crate) fn info(
    node: &Node,
    desired: &DesiredMachine,
    ledger: &DeployRecord,
) -> Map<String, Value> {
    let mut info = node.instance_info.clone();
    info.remove(DRIVE);
    info.remove(LEDGER);
    for key in DeployRecord::of(node).unwrap_or_default().wrote.keys() {
        info.remove(key);
    }
    if desired.image.is_some() {
        info.retain(|key, _| !key.starts_with("image_"));
    }
    info.extend(own(desired));
    info.insert(LEDGER.into(), json!(ledger));
    info
}

/// Returns the `instance_info` of a released machine.
///
/// It has the keys of others and, while the machine runs, what it was deployed from.
pub(crate) fn left(node: &Node, is_deployed: bool) -> Map<String, Value> {
    let mut info = node.instance_info.clone();
    info.remove(DRIVE);
    info.retain(|key, _| key != LEDGER && (is_deployed || !OWN.contains(&key.as_str())));
    info
}

/// Returns whether a machine has what it must, except for the number of the attempt.
pub(crate) fn agrees(node: &Node, desired: &DesiredMachine) -> bool {
    let own = own(desired);
    let same = |(key, value): (&String, &Value)| {
        CHECKSUM.contains(&key.as_str()) || node.instance_info.get(key) == Some(value)
    };
    own.iter().all(same)
        && DeployRecord::of(node).is_some_and(|it| desired.drive.is(&it.drive) && it.wrote == own)
        && ramdisk::agrees(node, &desired.instance, desired.ramdisk.as_ref())
}
