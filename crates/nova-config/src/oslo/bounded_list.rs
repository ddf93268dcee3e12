//! The first of many faults or warnings, and the number of the others.

/// The number of faults or warnings of a compute's options that are listed.
pub const LIST_LIMIT: usize = 20;

/// A bounded list of messages: users may write a text with a fault in every line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundedList<T> {
    /// The first items, in the order of their position.
    pub first: Vec<T>,
    /// The number of the other items.
    pub n_more: usize,
}

impl<T> BoundedList<T> {
    /// Keeps the first `most` items; the others are produced and dropped one by one.
    pub(super) fn of(all: impl IntoIterator<Item = T>, most: usize) -> Self {
        let mut list = Self { first: vec![], n_more: 0 };
        for it in all {
            if list.first.len() < most {
                list.first.push(it);
            } else {
                list.n_more += 1;
            }
        }
        list
    }
}
