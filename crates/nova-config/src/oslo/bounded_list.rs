//! The first of many faults or findings, and how many more there are.

/// How many faults or findings of a compute's options are told one by one.
pub const LIST_LIMIT: usize = 20;

/// What is told of something that there may be much of: anybody may write a text whose every line is
/// worth a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundedList<T> {
    /// The first ones, in the order of their place.
    pub first: Vec<T>,
    /// How many more there are.
    pub n_more: usize,
}

impl<T> BoundedList<T> {
    /// At most so many of them; the others are made and dropped one by one.
    pub(super) fn of(all: impl IntoIterator<Item = T>, most: usize) -> Self {
        let mut told = Self { first: vec![], n_more: 0 };
        for it in all {
            if told.first.len() < most {
                told.first.push(it);
            } else {
                told.n_more += 1;
            }
        }
        told
    }
}
