//! One step of the way, and how far the option has come there.

use crate::color::Tone;

/// One step of the way.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Stop {
    /// Its name.
    pub(super) name: &'static str,
    /// How far the option has come there.
    pub(super) mark: Mark,
    /// What is there.
    pub(super) lines: Vec<String>,
}

/// How far an option has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mark {
    /// It is there.
    Ok,
    /// It is not there yet.
    NotYet,
    /// Something else is there, of earlier or of another origin.
    Stale,
    /// Nobody knows.
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

    /// Whether what was written has not come that far.
    pub(super) fn is_open(self) -> bool {
        matches!(self, Self::NotYet | Self::Stale)
    }
}
