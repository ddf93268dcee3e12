//! What happens to the hosts of a measurement, one step after the other.

use std::time::Duration;

use clap::ValueEnum as _;

use super::Road;

/// One step, which is measured alone.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, clap::ValueEnum)]
pub(crate) enum Step {
    /// The first deployment, from the creation of the hosts on; all other steps need it.
    First,
    /// Every host is deployed again: the role's annotation, or another deployment of each node set.
    Redeploy,
    /// An edit that changes every host: of the template, or of the computes' default configuration.
    Edit,
    /// One host changes.
    Change,
    /// The last host is deleted.
    Delete,
    /// A host is added.
    Add,
    /// One nova-compute stops reporting.
    Down,
    /// It reports again.
    Up,
    /// Fifty hosts are drained.
    Drain,
    /// They are given back.
    Undrain,
    /// The operators end, and new processes start.
    Restart,
    /// Nothing.
    Idle,
}

impl Step {
    /// Those that only computes have.
    const OF_COMPUTES: [Self; 4] = [Self::Down, Self::Up, Self::Drain, Self::Undrain];

    /// Returns its name as on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|it| it.get_name().to_owned()).unwrap_or_default()
    }

    /// Returns the steps that were asked for, in their order, and the first deployment; all that the
    /// road has when none was asked for.
    pub(super) fn chosen(asked: &[Self], road: Road) -> Vec<Self> {
        let is_chosen = |it: &Self| match asked {
            [] => it.is_of(road),
            asked => *it == Self::First || asked.contains(it),
        };
        Self::value_variants().iter().copied().filter(is_chosen).collect()
    }

    /// Whether the road has it.
    pub(super) fn is_of(self, road: Road) -> bool {
        road == Road::Compute || !Self::OF_COMPUTES.contains(&self)
    }

    /// Whether all hosts are deployed again that were deployed before.
    pub(super) fn is_for_all(self) -> bool {
        matches!(self, Self::Redeploy | Self::Edit)
    }

    /// Returns how long nothing must happen after it before it counts as over; `None` when its own
    /// time is all that is measured.
    pub(super) fn quiet(self) -> Option<Duration> {
        (self != Self::Idle).then_some(Duration::from_secs(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_come_in_their_order_after_the_first_deployment() {
        let chosen = |asked: &[Step]| Step::chosen(asked, Road::Role);
        assert_eq!(chosen(&[Step::Idle, Step::Edit]), [Step::First, Step::Edit, Step::Idle]);
        assert_eq!(chosen(&[Step::First]), [Step::First]);
        assert_eq!((chosen(&[]).len(), Step::chosen(&[], Road::Compute).len()), (8, 12));
        assert!(chosen(&[Step::Down]).iter().any(|it| !it.is_of(Road::Role)));
    }
}
