//! The two maps of a data plane: roles and nodes.

use api::dataplane::{Node, Role};
use operator_core::plan::Kind;

/// Which of the two maps an entry is in.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Map {
    /// `spec.roles`.
    Roles,
    /// `spec.nodes`.
    Nodes,
}

impl Map {
    /// The kind of the objects.
    pub fn kind(self) -> Kind {
        match self {
            Self::Roles => Kind::of::<Role>(),
            Self::Nodes => Kind::of::<Node>(),
        }
    }

    /// The map's name in the spec.
    pub fn field(self) -> &'static str {
        match self {
            Self::Roles => "roles",
            Self::Nodes => "nodes",
        }
    }
}
