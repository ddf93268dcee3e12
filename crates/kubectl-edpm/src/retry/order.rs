//! What is written so that something is tried again: an annotation, or another deployment.

use api::dataplane::Deployment;
use api::dataplane::node::REDEPLOY as NODE_REDEPLOY;
use nova_config::annotations::REDEPLOY;

/// What is to be written so that something is tried again.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// An annotation on an object.
    Annotation {
        /// What it is.
        target: Target,
        /// Its name.
        name: String,
        /// Whether nothing will run until deployment is switched on.
        is_off: bool,
    },
    /// Another deployment, for one that has ended is never used again.
    Deployment(Box<Deployment>),
}

/// What can be asked for another attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Target {
    /// Every service of phase 0, and whatever stands on them.
    Node,
    /// libvirt and nova-compute.
    Compute,
}

impl Target {
    /// The annotation.
    pub fn annotation(self) -> &'static str {
        match self {
            Self::Node => NODE_REDEPLOY,
            Self::Compute => REDEPLOY,
        }
    }

    /// The kind as kubectl prints it.
    pub fn printed(self) -> &'static str {
        match self {
            Self::Node => "openstackdataplanenode.dataplane.openstack.org",
            Self::Compute => "novaexternalcompute.nova.openstack.org",
        }
    }
}
