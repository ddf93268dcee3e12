//! The time budget of each part, in a warm run on two cores.
//!
//! A part that takes more than one and a half times as long is named at the end of a run.

/// Part → seconds; also the time that the parts without dependencies wait for the lab, and that of
/// the whole run.
const SHARES: [(&str, u64); 16] = [
    ("format", 5),
    ("lint", 110),
    ("deny", 5),
    ("compile", 230),
    ("sim", 450),
    ("bench", 110),
    ("chart", 15),
    ("oslo", 25),
    ("cloudinit", 70),
    ("ironic", 170),
    ("ansible", 900),
    ("unit", 450),
    ("e2e", 900),
    ("spec", 5),
    ("lab awaited", 100),
    ("all", 1900),
];

/// Returns the share of a part in seconds; `None` when it has none.
pub(super) fn share(part: &str) -> Option<u64> {
    SHARES.iter().find(|it| it.0 == part).map(|it| it.1)
}
