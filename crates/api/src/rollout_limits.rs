//! The user's limits of a rollout: how many hosts may be out of service at once.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The default of `maxUnavailable`.
pub const DEFAULT_MAX_UNAVAILABLE: &str = "20%";

/// The user's limits of a rollout.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// How many hosts that were in service may be out of it at once: a number or a percentage.
    ///
    /// `None` means [`DEFAULT_MAX_UNAVAILABLE`].
    pub max_unavailable: Option<IntOrString>,
    /// Whether no further host begins while one of the group fails.
    pub pause_on_failure: bool,
}

impl Limits {
    /// Returns how many of `total` hosts that were in service may be out of it at once.
    ///
    /// Percentages are rounded down, and the result is at least one.
    pub fn allowed(&self, total: usize) -> usize {
        let of_text = |text: &str| {
            let percent = text.strip_suffix('%').and_then(|it| it.parse::<usize>().ok());
            percent.map_or(1, |it| total.saturating_mul(it) / 100)
        };
        let allowed = match &self.max_unavailable {
            None => of_text(DEFAULT_MAX_UNAVAILABLE),
            Some(IntOrString::Int(number)) => usize::try_from(*number).unwrap_or(1),
            Some(IntOrString::String(text)) => of_text(text),
        };
        allowed.max(1)
    }

    /// Returns whether fewer than all of `total` hosts that were in service may be out of it at
    /// once.
    pub fn bounds(&self, total: usize) -> bool {
        self.allowed(total) < total
    }

    /// Returns `maxUnavailable` as the user wrote it, or the default.
    pub fn max_unavailable_text(&self) -> String {
        match &self.max_unavailable {
            None => DEFAULT_MAX_UNAVAILABLE.to_owned(),
            Some(IntOrString::Int(number)) => number.to_string(),
            Some(IntOrString::String(text)) => text.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_down_and_never_nothing() {
        let cases = [
            (IntOrString::String("10%".into()), 100, 10),
            (IntOrString::String("10%".into()), 19, 1),
            (IntOrString::String("10%".into()), 3, 1),
            (IntOrString::String("100%".into()), 3, 3),
            (IntOrString::Int(2), 100, 2),
            (IntOrString::Int(0), 100, 1),
            (IntOrString::String("many".into()), 100, 1),
        ];
        for (max, total, expected) in cases {
            assert_eq!(
                Limits { max_unavailable: Some(max.clone()), pause_on_failure: false }
                    .allowed(total),
                expected,
                "{max:?} of {total}"
            );
        }
    }

    #[test]
    fn a_fifth_of_the_hosts_and_at_least_one_where_nobody_says_how_many() {
        for (total, expected) in [(50, 10), (14, 2), (9, 1), (2, 1), (1, 1)] {
            assert_eq!(Limits::default().allowed(total), expected, "of {total}");
        }
    }
}
