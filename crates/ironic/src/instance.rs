//! By what a machine is reserved, and what is noted on it for the time after a crash.

use api::baremetal::Image;
use operator_core::hash;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::node::Node;
use crate::ramdisk;
use crate::wish::Wish;

/// The key of `instance_info` under which [`Ledger`] stands; Ironic empties all of it on undeployment.
const LEDGER: &str = "edpm";

/// The UUID by which a machine is reserved for a host of a set: always the same for the same host, and
/// another one for a set that was made again, or after the human asked for another deployment by
/// another value of `redeploy`.
///
/// Its form is version 8 of RFC 9562: a hash of our own.
pub fn instance_uuid(set_uid: &str, host: &str, redeploy: &str) -> String {
    let digest = hash::digest(&[set_uid, host, redeploy]);
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

/// The name of the host that a machine is reserved for, if it is one of that set.
pub fn host_of<'a>(node: &'a Node, set_uid: &str, redeploy: &str) -> Option<&'a str> {
    let host = node.instance_info.get(HOST)?.as_str()?;
    node.is_of(&instance_uuid(set_uid, host, redeploy)).then_some(host)
}

/// Which deployment of which reservation a machine has: the UUID by which it is reserved, and since when
/// the deployment is noted. The UUID alone where nothing is noted; `None` for a machine that is free.
///
/// A machine that is undeployed and deployed again is another one of these, though host, machine and
/// reservation are the same.
pub fn deployment(node: &Node) -> Option<String> {
    let uuid = node.instance_uuid.as_ref()?;
    let since = DeployRecord::of(node).and_then(|it| it.since);
    Some(since.map_or_else(|| uuid.clone(), |since| format!("{uuid}@{since}")))
}

/// What is noted on a machine before it is deployed.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct DeployRecord {
    /// Digest of the config drive, by the key that the installation had then; empty where the machine is
    /// adopted, for then it gets none.
    pub drive: String,
    /// Which attempt is the next one, or runs, or was the last one; 1 for the first.
    pub attempt: u32,
    /// `provision_updated_at` of the failure after which the attempt was noted: a failure at another
    /// time is the attempt's own. Absent for the first attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// `provision_updated_at` of the machine when this was noted. Ironic empties the note when it
    /// undeploys the machine, whose state has changed by the time of the next note: no two deployments
    /// have the same. Absent where Ironic told no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What was written beside the note: Ironic replaces the checksum of an image that it converts, and
    /// what is not wished any more is taken off.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub wrote: Map<String, Value>,
}

impl DeployRecord {
    /// The note on a machine, if there is one of this form.
    pub fn of(node: &Node) -> Option<Self> {
        serde_json::from_value(node.instance_info.get(LEDGER)?.clone()).ok()
    }

    /// The note before the first attempt to give a machine what is wished.
    pub(crate) fn first(node: &Node, wish: &Wish) -> Self {
        Self {
            drive: wish.drive.text(),
            attempt: 1,
            after: None,
            since: node.provision_updated_at.clone(),
            wrote: own(wish),
        }
    }

    /// Whether the machine is adopted, and was not deployed.
    pub fn is_of_adopted(&self) -> bool {
        self.drive.is_empty()
    }
}

/// The key of `instance_info` under which the host's name stands.
const HOST: &str = "display_name";
/// The keys of an image's checksum, which Ironic replaces where it converts the image.
const CHECKSUM: [&str; 3] = ["image_checksum", "image_os_hash_algo", "image_os_hash_value"];
/// The keys of `instance_info` that are written here.
const OWN: [&str; 7] =
    [HOST, "image_source", CHECKSUM[0], CHECKSUM[1], CHECKSUM[2], "root_device", LEDGER];
/// Ironic shows the config drive as asterisks, which must not come back as a drive.
const DRIVE: &str = "configdrive";

/// What a host's machine must say in `instance_info` of its own, but for the note.
fn own(wish: &Wish) -> Map<String, Value> {
    let mut own = Map::new();
    own.insert(HOST.into(), json!(wish.host));
    if let Some(Image { source, checksum }) = &wish.image {
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
    if !wish.root_device.is_empty() {
        own.insert("root_device".into(), json!(wish.root_device));
    }
    own
}

/// All of `instance_info` before a deployment, with the note of that attempt; what others wrote stays.
pub(crate) fn info(node: &Node, wish: &Wish, ledger: &DeployRecord) -> Map<String, Value> {
    let mut info = node.instance_info.clone();
    info.remove(DRIVE);
    info.remove(LEDGER);
    for key in DeployRecord::of(node).unwrap_or_default().wrote.keys() {
        info.remove(key);
    }
    if wish.image.is_some() {
        info.retain(|key, _| !key.starts_with("image_"));
    }
    info.extend(own(wish));
    info.insert(LEDGER.into(), json!(ledger));
    info
}

/// All of `instance_info` of a machine that is given up: what others wrote, and, while it runs, what it
/// was deployed from.
pub(crate) fn left(node: &Node, is_deployed: bool) -> Map<String, Value> {
    let mut info = node.instance_info.clone();
    info.remove(DRIVE);
    info.retain(|key, _| key != LEDGER && (is_deployed || !OWN.contains(&key.as_str())));
    info
}

/// Whether a machine says what it must, but for the number of the attempt.
pub(crate) fn agrees(node: &Node, wish: &Wish) -> bool {
    let own = own(wish);
    let same = |(key, value): (&String, &Value)| {
        CHECKSUM.contains(&key.as_str()) || node.instance_info.get(key) == Some(value)
    };
    own.iter().all(same)
        && DeployRecord::of(node).is_some_and(|it| wish.drive.is(&it.drive) && it.wrote == own)
        && ramdisk::agrees(node, &wish.instance, wish.ramdisk.as_ref())
}
