//! How namespaces share places: those of runs, and those of audits.

use std::borrow::Borrow;
use std::collections::BTreeMap;

/// Returns how many of all places one namespace never takes from the others: a quarter, and at least
/// one if there are two or more.
///
/// By that number the total may also be exceeded while one namespace holds all places.
pub fn reserve(total: usize) -> usize {
    (total / 4).max(1).min(total.saturating_sub(1))
}

/// Returns whether a namespace gets no further place, where each has taken so many.
///
/// Places of another namespace beyond its share are not counted, so that this one gets places however
/// many the other took while it was alone.
pub fn is_full_for<N: Borrow<str> + Ord>(
    namespace: &str,
    taken: &BTreeMap<N, usize>,
    total: usize,
) -> bool {
    let part = total - reserve(total);
    let others = taken.iter().filter(|(name, _)| (*name).borrow() != namespace);
    let others: usize = others.map(|(_, n)| (*n).min(part)).sum();
    taken.get(namespace).copied().unwrap_or_default() + others >= total
}

#[cfg(test)]
mod tests {
    use super::is_full_for;

    #[test]
    fn a_namespace_with_all_places_leaves_a_quarter_and_one_place_is_kept_literally() {
        let taken = [("a", 9)].into();
        assert!(is_full_for("a", &taken, 4) && !is_full_for("b", &taken, 4));
        let taken = [("a", 9), ("b", 1)].into();
        assert!(is_full_for("b", &taken, 4));
        assert!(is_full_for("b", &[("a", 1)].into(), 1));
        assert!(!is_full_for("a", &[("a", 0)].into(), 1));
    }
}
