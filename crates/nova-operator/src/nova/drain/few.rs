//! What is kept of a list that a cloud answers.

use api::conditions::append_more;

/// How many entries are kept: at least as many as any message names.
const KEPT: usize = 16;

/// The first entries of a sorted list, and how many it has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Few<T> {
    first: Vec<T>,
    n: usize,
}

impl<T> Few<T> {
    /// Returns how many entries the list has.
    pub const fn len(&self) -> usize {
        self.n
    }

    /// Whether the list has none.
    pub const fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Returns the first entries.
    pub fn first(&self) -> &[T] {
        &self.first
    }

    /// Returns the same list with something of each entry.
    pub fn of<U>(&self, part: impl Fn(&T) -> U) -> Few<U> {
        Few { first: self.first.iter().map(part).collect(), n: self.n }
    }

    /// Returns the first `limit` entries, each as `name` has it, and how many more there are.
    pub fn named(&self, limit: usize, name: impl Fn(&T) -> String) -> String {
        let shown: Vec<String> = self.first.iter().take(limit).map(name).collect();
        append_more(shown.join(", "), self.n.saturating_sub(shown.len()))
    }
}

impl Few<String> {
    /// Returns the first `limit` names, and how many more there are.
    pub fn names(&self, limit: usize) -> String {
        self.named(limit, Clone::clone)
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { first: Vec::new(), n: 0 }
    }
}

impl<T: Ord> From<Vec<T>> for Few<T> {
    fn from(mut all: Vec<T>) -> Self {
        let n = all.len();
        all.sort();
        all.truncate(KEPT);
        all.shrink_to_fit();
        Self { first: all, n }
    }
}

impl<T: Ord> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        all.into_iter().collect::<Vec<T>>().into()
    }
}

/// Two lists as one.
impl<T: Ord> std::ops::Add for Few<T> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let n = self.n.saturating_add(other.n);
        let first = self.first.into_iter().chain(other.first).collect::<Self>().first;
        Self { first, n }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nova::drain::progress::Occupied;

    #[test]
    fn of_70_000_servers_the_first_16_names_are_kept_and_their_number() {
        let ids: Vec<String> = (0..70_000).rev().map(|it| format!("{it:05}")).collect();
        let found = Occupied::unmoved(&ids, &[]).servers;
        assert_eq!((found.first.len(), found.first.capacity(), found.len()), (16, 16, 70_000));
        assert_eq!(found.names(2), "00000, 00001 and 69998 more");
    }

    #[test]
    fn the_first_of_two_lists_are_those_of_their_sum() {
        let list = |from: usize| (from..40).step_by(2).collect::<Few<usize>>();
        let sum = list(0) + list(1);
        assert_eq!((sum.first(), sum.len()), (&*(0..16).collect::<Vec<_>>(), 40));
        assert_eq!(Few::<String>::default().names(5), "");
    }
}
