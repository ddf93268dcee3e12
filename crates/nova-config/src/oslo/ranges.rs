//! Sets of processors, as nova reads them.

/// A set of processors: the ranges that are in it, without those that are taken out.
pub(super) struct Cpus(Vec<(u64, u64)>);

impl Cpus {
    /// Reads a text such as `4-7,^5,8`; returns `None` when nova refuses it.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (mut within, mut without) = (Vec::new(), Vec::new());
        for item in text.split(',').map(str::trim).filter(|it| !it.is_empty()) {
            let (item, ranges) = match item.strip_prefix('^') {
                Some(item) => (item, &mut without),
                None => (item, &mut within),
            };
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            if first > last {
                return None;
            }
            ranges.push((first, last));
        }
        for range in without {
            within = within.into_iter().flat_map(|it| minus(it, range)).collect();
        }
        Some(Self(within))
    }

    /// Whether no processor is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a processor is in both.
    pub(super) fn meets(&self, other: &Self) -> bool {
        let meets = |a: &(u64, u64), b: &(u64, u64)| a.0 <= b.1 && b.0 <= a.1;
        self.0.iter().any(|a| other.0.iter().any(|b| meets(a, b)))
    }
}

/// Returns what is left of a range without another one.
fn minus((first, last): (u64, u64), (from, to): (u64, u64)) -> Vec<(u64, u64)> {
    let before = (first, last.min(from.saturating_sub(1)));
    let after = (first.max(to.saturating_add(1)), last);
    let has_before = from > first;
    let has_after = to < last;
    let parts = [(has_before, before), (has_after, after)];
    let parts = parts.into_iter().filter(|(is_left, it)| *is_left && it.0 <= it.1);
    parts.map(|(_, it)| it).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Vec<(u64, u64)>> {
        Cpus::read(text).map(|it| it.0)
    }

    #[test]
    fn sets_are_read_as_nova_reads_them() {
        assert_eq!(read("4-7,^5, 8"), Some(vec![(4, 4), (6, 7), (8, 8)]));
        assert_eq!(read("^4-5,0-4,,"), Some(vec![(0, 3)]));
        assert_eq!(read("3-9,^0-2,^12"), Some(vec![(3, 9)]));
        assert_eq!(read("1,^1"), Some(vec![]));
        for refused in ["a", "3-1", "1-", "-1", "1-2-3", "^", "1;2", "0x1"] {
            assert_eq!(read(refused), None, "{refused}");
        }
    }

    #[test]
    fn sets_meet_where_they_have_a_processor_in_common() {
        let meet = |a, b| Cpus::read(a).unwrap().meets(&Cpus::read(b).unwrap());
        assert!(meet("0-3", "3") && meet("2", "0-18446744073709551615"));
        assert!(!meet("0-3", "4-7") && !meet("0-3,^2", "2") && !meet("", "1"));
    }
}
