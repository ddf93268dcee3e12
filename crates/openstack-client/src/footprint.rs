//! What the entries of lists take of the operator's memory.

use crate::text::footprint;

/// How much memory all entries of a list about one host may take, in bytes: some 3,000 servers.
const OF_HOST: usize = 1024 * 1024;
/// How much memory all entries of a list about all hosts may take, in bytes: some 25,000 services.
pub(crate) const OF_ALL_HOSTS: usize = 16 * 1024 * 1024;

/// An entry of a list.
pub(crate) trait Footprint {
    /// What the list has, for messages.
    const PLURAL: &'static str;
    /// How much memory all entries of a list may take, in bytes.
    const MOST: usize = OF_HOST;

    /// Returns an upper estimate of its memory in bytes.
    fn footprint(&self) -> usize;
}

/// An id or a name.
impl Footprint for String {
    const PLURAL: &'static str = "ids";

    fn footprint(&self) -> usize {
        size_of::<Self>() + footprint(self)
    }
}
