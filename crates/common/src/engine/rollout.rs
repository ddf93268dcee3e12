//! How many hosts of a group are disturbed at once, and when a rollout stops.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::api::dataplane::service_run::{RunState, ServiceRun};

/// What a human allows of a rollout.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// How many hosts that are ready may be disturbed at once: a number, or a share in percent.
    /// All of them when absent.
    pub max_unavailable: Option<IntOrString>,
    /// Whether no further host is begun while one of the group fails.
    pub pause_on_failure: bool,
}

impl Limits {
    /// How many of `total` hosts may be disturbed at once: rounded down, and at least one.
    pub fn allowed(&self, total: usize) -> usize {
        let share = |percent: usize| total.saturating_mul(percent) / 100;
        let allowed = match &self.max_unavailable {
            None => total,
            Some(IntOrString::Int(number)) => usize::try_from(*number).unwrap_or(1),
            Some(IntOrString::String(text)) => {
                text.strip_suffix('%').and_then(|it| it.parse().ok()).map_or(1, share)
            }
        };
        allowed.max(1)
    }

    /// Whether anything is limited.
    pub fn is_set(&self) -> bool {
        self.max_unavailable.is_some() || self.pause_on_failure
    }

    /// `maxUnavailable` as the human wrote it.
    pub fn max_unavailable_text(&self) -> String {
        match &self.max_unavailable {
            None => "100%".to_owned(),
            Some(IntOrString::Int(number)) => number.to_string(),
            Some(IntOrString::String(text)) => text.clone(),
        }
    }
}

/// What beginning with a host would mean, or what going on with it means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// It was never deployed, and is not ready anyway.
    New,
    /// Its first deployment is under way.
    Started,
    /// It is deployed, and to begin with it disturbs it.
    Ready,
    /// It was ready, and is being deployed again.
    Disturbed,
    /// It fails, whether or not it is being tried again.
    Failed,
}

impl Standing {
    /// The standing of a host by its recorded services; `was_deployed` tells whether they have ever
    /// all succeeded.
    pub fn of(recorded: &[ServiceRun], was_deployed: bool) -> Self {
        let is_under_way =
            |it: &ServiceRun| matches!(it.state, RunState::Pending | RunState::Running);
        // The cause stays recorded while a failure is tried again.
        if recorded.iter().any(|it| it.state == RunState::Failed || it.reason.is_some()) {
            return Self::Failed;
        }
        match (recorded.iter().any(is_under_way), was_deployed) {
            (true, true) => Self::Disturbed,
            (true, false) => Self::Started,
            (false, true) => Self::Ready,
            (false, false) => Self::New,
        }
    }

    /// Whether a run now would be the beginning, and not a part of what has begun.
    pub fn begins(self) -> bool {
        matches!(self, Self::New | Self::Ready)
    }
}

/// Why a host is not begun with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Hold {
    /// As many hosts as allowed are disturbed already.
    Turn,
    /// A host of the group fails.
    Paused,
}

impl Hold {
    /// The one word used in conditions.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Turn => "WaitingForTurn",
            Self::Paused => "Paused",
        }
    }
}

/// Lets hosts begin, one after the other, as the limits allow.
#[derive(Clone, Debug)]
pub struct Gate {
    left: usize,
    is_paused: bool,
}

impl Gate {
    /// The gate of a group whose hosts stand so.
    pub fn of(limits: &Limits, standings: &[Standing]) -> Self {
        let count = |wanted| standings.iter().filter(|it| **it == wanted).count();
        let (disturbed, failed) = (count(Standing::Disturbed), count(Standing::Failed));
        Self::counted(limits, standings.len(), disturbed, failed)
    }

    /// The gate of a group of `total` hosts, for whoever has counted them.
    pub fn counted(limits: &Limits, total: usize, disturbed: usize, failed: usize) -> Self {
        let left = limits.allowed(total).saturating_sub(disturbed);
        Self { left, is_paused: limits.pause_on_failure && failed > 0 }
    }

    /// How many more hosts that are ready may begin.
    pub fn left(&self) -> usize {
        if self.is_paused { 0 } else { self.left }
    }

    /// Whether nothing begins because a host fails.
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Whether a host of that standing may go on or begin; the place of one that begins is taken.
    ///
    /// # Errors
    /// Why it has to wait.
    pub fn admit(&mut self, standing: Standing) -> Result<(), Hold> {
        match standing {
            Standing::New | Standing::Ready if self.is_paused => Err(Hold::Paused),
            Standing::Ready if self.left == 0 => Err(Hold::Turn),
            Standing::Ready => {
                self.left -= 1;
                Ok(())
            }
            // What has begun is brought to its end, a failure is how a rollout can go on, and a new
            // host takes nobody's place.
            Standing::New | Standing::Started | Standing::Disturbed | Standing::Failed => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(max: IntOrString, pause: bool) -> Limits {
        Limits { max_unavailable: Some(max), pause_on_failure: pause }
    }

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
            assert_eq!(limits(max.clone(), false).allowed(total), expected, "{max:?} of {total}");
        }
        assert_eq!(Limits::default().allowed(7), 7);
    }

    #[test]
    fn only_hosts_that_are_ready_take_a_place() {
        let standings = [
            Standing::Ready,
            Standing::Ready,
            Standing::Disturbed,
            Standing::New,
            Standing::Failed,
        ];
        let mut gate = Gate::of(&limits(IntOrString::Int(2), false), &standings);
        assert_eq!(gate.admit(Standing::New), Ok(()));
        assert_eq!(gate.admit(Standing::Failed), Ok(()));
        assert_eq!(gate.admit(Standing::Ready), Ok(()));
        assert_eq!(gate.admit(Standing::Ready), Err(Hold::Turn));
        assert_eq!(gate.admit(Standing::Disturbed), Ok(()));
    }

    #[test]
    fn a_failure_stops_what_has_not_begun() {
        let standings = [Standing::Ready, Standing::Failed, Standing::Started];
        let mut gate = Gate::of(&limits(IntOrString::Int(3), true), &standings);
        assert_eq!(gate.admit(Standing::Ready), Err(Hold::Paused));
        assert_eq!(gate.admit(Standing::New), Err(Hold::Paused));
        assert_eq!(gate.admit(Standing::Started), Ok(()));
        assert_eq!(gate.admit(Standing::Failed), Ok(()));
    }
}
