//! What a `BareMetalHost` and its host's Secrets say: owner, state and consumer.

use api::baremetal::BaremetalSet;
use api::metal3::BareMetalHost;
use kube::{Resource, ResourceExt};

use crate::observe::HostSecret;

/// Label with the UID of the set that owns a `BareMetalHost` or a host's Secret.
pub const UID: &str = "openstackbaremetalset.openstack.org/uid";
/// Label with the namespace of that set.
pub const NAMESPACE: &str = "openstackbaremetalset.openstack.org/namespace";
/// Label with the name of that set.
pub const NAME: &str = "openstackbaremetalset.openstack.org/name";
/// Annotation with the hash of the config drive: on a `BareMetalHost`, of the one that it is
/// provisioned with; on a Secret, of the one that it is a part of.
pub const DRIVE: &str = "edpm.openstack.org/config-drive-hash";
/// Maximum length of a set's name: with its suffix it becomes a label name of 63 characters.
pub const LONGEST_NAME: usize = 63 - HOST_SUFFIX.len();

/// Annotations that tell Metal3 to leave a machine alone.
const PAUSED: &str = "baremetalhost.metal3.io/paused";
const DETACHED: &str = "baremetalhost.metal3.io/detached";

const HOST_SUFFIX: &str = "-osbms-hostname";

/// Returns the label with the name of the host.
pub fn host_label(set: &str) -> String {
    format!("{set}{HOST_SUFFIX}")
}

/// Reads the metadata of a Secret that was created for a host.
pub fn host_secret(secret: &impl Resource) -> HostSecret {
    HostSecret {
        namespace: secret.namespace().unwrap_or_default(),
        name: secret.name_any(),
        uid: secret.uid(),
        machine: secret.owner_references().first().map(|it| it.uid.clone()),
        drive: secret.annotations().get(DRIVE).cloned(),
    }
}

/// Returns `namespace/name`, as the status and messages name a machine.
pub fn title(machine: &BareMetalHost) -> String {
    format!("{}/{}", machine.namespace().unwrap_or_default(), machine.name_any())
}

/// Returns Metal3's provisioning state of a machine.
pub fn state(machine: &BareMetalHost) -> &str {
    machine.status.as_ref().map(|it| it.provisioning.state.as_str()).unwrap_or_default()
}

/// Returns the host of the set for which a machine is labelled.
pub fn host_of(machine: &BareMetalHost, set: &BaremetalSet) -> Option<String> {
    machine.labels().get(&host_label(&set.name_any())).filter(|_| is_of(machine, set)).cloned()
}

/// Returns whether a machine or a Secret is labelled for the set.
pub fn is_of(object: &impl Resource, set: &BaremetalSet) -> bool {
    let uid = object.labels().get(UID);
    uid.is_some() && uid == set.metadata.uid.as_ref()
}

/// Returns whether a machine is to have an image.
pub fn has_image(machine: &BareMetalHost) -> bool {
    machine.spec.image.as_ref().is_some_and(|it| !it.url.is_empty())
}

/// Returns whether a machine is paused.
pub fn is_paused(machine: &BareMetalHost) -> bool {
    machine.annotations().contains_key(PAUSED)
}

/// Returns whether a machine is detached from Metal3, or is about to be.
pub fn is_detached(machine: &BareMetalHost) -> bool {
    let is_done = machine.status.as_ref().is_some_and(|it| it.operational_status == "detached");
    is_done || machine.annotations().contains_key(DETACHED)
}

/// Returns the consumer of a machine other than the set, as `Kind namespace/name`.
pub fn other_consumer(machine: &BareMetalHost, set: &BaremetalSet) -> Option<String> {
    let consumer = machine.spec.consumer_ref.as_ref()?;
    let is_own = consumer.kind.as_deref() == Some(&*BaremetalSet::kind(&()))
        && consumer.name == set.metadata.name
        && consumer.namespace == set.metadata.namespace;
    (!is_own).then(|| consumer_title(machine)).flatten()
}

/// Returns the consumer of a machine, as `Kind namespace/name`.
pub fn consumer_title(machine: &BareMetalHost) -> Option<String> {
    let consumer = machine.spec.consumer_ref.as_ref()?;
    let part = |it: &Option<String>| it.clone().unwrap_or_default();
    Some(format!("{} {}/{}", part(&consumer.kind), part(&consumer.namespace), part(&consumer.name)))
}
