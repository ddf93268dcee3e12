//! Which networks of pods a namespace has.

use std::collections::BTreeSet;

/// The network attachments of a namespace, as far as they are known.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Networks {
    /// No object names one, so none were read.
    #[default]
    NotNamed,
    /// The cluster does not serve the kind.
    NotServed,
    /// The names of those that exist.
    Known(BTreeSet<String>),
}
