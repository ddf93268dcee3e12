//! What was observed of a compute, as plain data.

use std::sync::Arc;

use api::ansibleee::AnsibleEe;
use api::dataplane::Node;
use api::nova::{Cell, ExternalCompute};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use nova_config::release::Chosen;
use operator_core::certificates::Issued;
use operator_core::keyed::Keys;
use operator_runtime::managed_fields::ManagedFields;
use operator_runtime::source_cache::Content;
use operator_runtime::source_cache::Digests;

use crate::compute::audit::condition::Audited;
use crate::compute::credentials::observed::Held;
use crate::group::Group;
use crate::images::Images;
use crate::nova::drain::progress::HostProgress;
use crate::nova::health::HostHealth;
use crate::nova::identity::IdentitySources;
use crate::requested::mounted_cell::NovaServices;
use crate::rollout::slot::RolloutSlot;

/// The ConfigMap that a role's annotation names.
#[derive(Clone, Debug)]
pub struct DefaultConfig {
    /// The name of the ConfigMap.
    pub name: String,
    /// The content, or `None` when the ConfigMap does not exist.
    pub content: Option<Content>,
}

/// The state of the ConfigMap that a compute names as its inventory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Inventory {
    /// It exists.
    Found,
    /// The node publishes its name, and it is not written yet.
    NotWritten,
    /// It does not exist.
    Absent,
    /// It has no key for the inventory.
    WithoutKey,
}

/// The metadata of the Secret with the rendered files.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Rendered {
    /// Digest of what it was rendered from.
    pub hash: String,
    /// Digest of the inputs of nova-compute that it was rendered for.
    pub inputs: String,
    /// The list of its files, as JSON.
    pub files: String,
    /// UID of its controller owner.
    pub controller: Option<String>,
    /// The fields that this operator still owns, so unchanged since its last write.
    pub managed_fields: ManagedFields,
}

/// What was observed of libvirt's certificate.
#[derive(Clone, Debug, Default)]
pub struct SeenCertificate {
    /// What was observed of cert-manager; empty for a host that neither gets nor has a certificate.
    pub issued: Issued,
    /// The digests of the certificate's Secret, or `None` when it does not exist.
    pub secret: Option<Digests>,
    /// The metadata of that Secret; empty without one.
    pub metadata: ObjectMeta,
}

/// A snapshot of everything that the decisions on a compute use that is not being deleted.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The compute.
    pub compute: Arc<ExternalCompute>,
    /// The node, or `None` when it does not exist.
    pub node: Option<Arc<Node>>,
    /// What the node belongs to, or `None` when it names nothing or that does not exist.
    pub group: Option<Group>,
    /// The cell, or `None` when it does not exist.
    pub cell: Option<Arc<Cell>>,
    /// The names of the cells of the namespace, where the cell does not exist.
    pub other_cells: Vec<String>,
    /// Content of the cell's Secret with nova's password, or `None` when it does not exist.
    pub cell_secret: Option<Content>,
    /// Content of the cell's Secret with the message bus, or `None` when it does not exist.
    pub message_bus: Option<Content>,
    /// The services of type nova of the node.
    pub nova: NovaServices,
    /// Whether nova was read twice since a deployment by others has ended well on the host; `None` where
    /// none has, or nova's API is not read.
    pub read_since_deployment: Option<bool>,
    /// The ConfigMap that the role names, or `None` when it names none.
    pub default_config: Option<DefaultConfig>,
    /// The release that options are checked against.
    pub release: Chosen,
    /// The digests of the ssh Secret, or `None` when it does not exist.
    pub ssh: Option<Digests>,
    /// The digests of the Secret with the key for migrations, or `None` when it does not exist.
    pub migration_key: Option<Digests>,
    /// Whether the node lists a service of type ssh-known-hosts.
    pub has_known_hosts: bool,
    /// libvirt's certificate.
    pub certificate: SeenCertificate,
    /// The state of the ConfigMap with the inventory.
    pub inventory: Inventory,
    /// The rendered Secret, or `None` when it does not exist.
    pub rendered: Option<Rendered>,
    /// The default images, which the controller of nodes fills in.
    pub default_images: Images,
    /// The runs that the compute owns, and those that clean up after it.
    pub runs: Vec<Arc<AnsibleEe>>,
    /// Whether this operator reconciles the cell.
    pub cells_are_ours: bool,
    /// What nova's API says of the host, or `None` where that API is not read.
    pub health: Option<HostHealth>,
    /// How far the order about the host is, as the decision has it; or `None` where nova's API is not
    /// used.
    pub drain: Option<HostProgress>,
    /// What is known of the audits of the host.
    pub audited: Audited,
    /// Whether the compute may start; held until the decision is written.
    pub slot: RolloutSlot,
    /// The keys of the digests of Secret contents.
    pub keys: Keys,
    /// What the host logs in with.
    pub held: Held,
}

impl Observed {
    /// Returns what the identity of the host follows from.
    pub fn identity_sources(&self) -> IdentitySources<'_> {
        IdentitySources {
            compute: &self.compute,
            node: self.node.as_deref(),
            cell: self.cell.as_deref(),
            runs: &self.runs,
            health: self.health.as_ref(),
            read_since_deployment: self.read_since_deployment,
        }
    }
}
