//! The two maps of a data plane: roles and nodes.

use api::dataplane::{Node, Role};
use operator_core::plan::Kind;

/// One of the two maps of a data plane.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Map {
    /// `spec.roles`.
    Roles,
    /// `spec.nodes`.
    Nodes,
}

impl Map {
    /// Returns the kind of the map's objects.
    pub fn kind(self) -> Kind {
        match self {
            Self::Roles => Kind::of::<Role>(),
            Self::Nodes => Kind::of::<Node>(),
        }
    }

    /// Returns the map's name in the spec.
    pub fn field(self) -> &'static str {
        match self {
            Self::Roles => "roles",
            Self::Nodes => "nodes",
        }
    }
}
