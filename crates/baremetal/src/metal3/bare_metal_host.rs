//! What the judgement sees of Metal3: plain copies, and whose a `BareMetalHost` is.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::baremetal::BaremetalSet;
use api::metal3::{BareMetalHost, ProvisionServer};
use kube::{Resource, ResourceExt};

/// The label with the UID of the set that has a `BareMetalHost`, or for which a Secret was made.
pub const UID: &str = "openstackbaremetalset.openstack.org/uid";
/// The label with the namespace of that set.
pub const NAMESPACE: &str = "openstackbaremetalset.openstack.org/namespace";
/// The label with the name of that set.
pub const NAME: &str = "openstackbaremetalset.openstack.org/name";
/// The hash of the config drive: on a `BareMetalHost` of that which it is provisioned with, on a Secret
/// of that which it is a part of.
pub const DRIVE: &str = "edpm.openstack.org/config-drive-hash";
/// The longest name of a set: with what follows it, it is a label's name of 63 characters.
pub const LONGEST_NAME: usize = 63 - HOST_SUFFIX.len();

/// Annotations of whoever wants Metal3 to leave a machine alone.
const PAUSED: &str = "baremetalhost.metal3.io/paused";
const DETACHED: &str = "baremetalhost.metal3.io/detached";

const HOST_SUFFIX: &str = "-osbms-hostname";

/// The label with the name of the host.
pub fn host_label(set: &str) -> String {
    format!("{set}{HOST_SUFFIX}")
}

/// What was seen of Metal3.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The machines of all namespaces that are watched; `None` where the cluster lacks the kind.
    pub machines: Option<Vec<Arc<BareMetalHost>>>,
    /// The Secrets that were made for the set's hosts.
    pub secrets: Vec<Made>,
    /// The server that the set names, if there is one.
    pub server: Option<Arc<ProvisionServer>>,
    /// The Secrets of others in the namespace to choose from that have the names of those of the set's
    /// hosts.
    pub taken: BTreeSet<String>,
    /// The namespaces that are watched; empty means all.
    pub namespaces: Vec<String>,
}

impl Seen {
    /// Whether the machines of a namespace are seen.
    pub fn is_watched(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|it| it == namespace)
    }
}

/// A Secret that was made for a host; its content is nobody's business.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Made {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: Option<String>,
    /// The UID of the machine with which it goes.
    pub machine: Option<String>,
    /// The hash of the drive that it is a part of.
    pub drive: Option<String>,
}

impl Made {
    /// A Secret, as its metadata tell of it.
    pub fn of(secret: &impl Resource) -> Self {
        let owners = secret.owner_references();
        Self {
            namespace: secret.namespace().unwrap_or_default(),
            name: secret.name_any(),
            uid: secret.uid(),
            machine: owners.first().map(|it| it.uid.clone()),
            drive: secret.annotations().get(DRIVE).cloned(),
        }
    }
}

/// `namespace/name`, as the status and messages tell of a machine.
pub fn title(machine: &BareMetalHost) -> String {
    format!("{}/{}", machine.namespace().unwrap_or_default(), machine.name_any())
}

/// The state of a machine in Metal3's words.
pub fn state(machine: &BareMetalHost) -> &str {
    machine.status.as_ref().map(|it| it.provisioning.state.as_str()).unwrap_or_default()
}

/// The host of the set for which a machine is labelled.
pub fn host_of(machine: &BareMetalHost, set: &BaremetalSet) -> Option<String> {
    machine.labels().get(&host_label(&set.name_any())).filter(|_| is_of(machine, set)).cloned()
}

/// Whether a machine or a Secret is labelled for the set.
pub fn is_of(object: &impl Resource, set: &BaremetalSet) -> bool {
    let uid = object.labels().get(UID);
    uid.is_some() && uid == set.metadata.uid.as_ref()
}

/// Whether a machine is to have an image.
pub fn has_image(machine: &BareMetalHost) -> bool {
    machine.spec.image.as_ref().is_some_and(|it| !it.url.is_empty())
}

/// Whether somebody has told Metal3 to pause with a machine.
pub fn is_paused(machine: &BareMetalHost) -> bool {
    machine.annotations().contains_key(PAUSED)
}

/// Whether a machine is detached from Metal3, or is about to be.
pub fn is_detached(machine: &BareMetalHost) -> bool {
    let is_done = machine.status.as_ref().is_some_and(|it| it.operational_status == "detached");
    is_done || machine.annotations().contains_key(DETACHED)
}

/// Who else uses a machine, as `Kind namespace/name`.
pub fn other_consumer(machine: &BareMetalHost, set: &BaremetalSet) -> Option<String> {
    let consumer = machine.spec.consumer_ref.as_ref()?;
    let is_own = consumer.kind.as_deref() == Some(&*BaremetalSet::kind(&()))
        && consumer.name == set.metadata.name
        && consumer.namespace == set.metadata.namespace;
    (!is_own).then(|| consumer_title(machine)).flatten()
}

/// Who uses a machine, as `Kind namespace/name`.
pub fn consumer_title(machine: &BareMetalHost) -> Option<String> {
    let consumer = machine.spec.consumer_ref.as_ref()?;
    let part = |it: &Option<String>| it.clone().unwrap_or_default();
    Some(format!("{} {}/{}", part(&consumer.kind), part(&consumer.namespace), part(&consumer.name)))
}
