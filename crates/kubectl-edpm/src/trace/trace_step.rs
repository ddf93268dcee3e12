//! One step of a trace, and whether the option has reached it.

use crate::color::Tone;

/// One step of a trace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct TraceStep {
    /// Its name.
    pub(super) name: &'static str,
    /// Whether the option has reached it.
    pub(super) mark: Mark,
    /// The details, one line each.
    pub(super) lines: Vec<String>,
}

/// Whether an option has reached a step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mark {
    /// The option is present.
    Ok,
    /// The option is not present yet.
    NotYet,
    /// Another value is present, of an earlier deployment or another origin.
    Stale,
    /// The state is unknown.
    Unknown,
}

impl Mark {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NotYet => "NOT YET",
            Self::Stale => "STALE",
            Self::Unknown => "unknown",
        }
    }

    pub(super) fn tone(self) -> Tone {
        match self {
            Self::Ok => Tone::Good,
            Self::NotYet | Self::Stale => Tone::Bad,
            Self::Unknown => Tone::Warn,
        }
    }

    /// Whether the option has not reached the step.
    pub(super) fn is_open(self) -> bool {
        matches!(self, Self::NotYet | Self::Stale)
    }
}
