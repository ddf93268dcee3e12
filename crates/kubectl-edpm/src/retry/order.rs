//! The write that requests another attempt: an annotation, or another deployment.

use api::dataplane::Deployment;

/// A write that requests another attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// An annotation on an object.
    Annotation {
        /// The kind of the object.
        target: Target,
        /// The name of the object.
        name: String,
        /// Whether nothing runs until deployment is enabled.
        is_off: bool,
    },
    /// Another deployment, because one that has ended is never reused.
    Deployment(Box<Deployment>),
}

/// The kind of object that takes the annotation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Target {
    /// A node: every service of phase 0, and the stages after it.
    Node,
    /// A compute: libvirt and nova-compute.
    Compute,
}
