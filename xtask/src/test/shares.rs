//! How long each part may take: its share of the time of a warm run on two cores.
//!
//! A part that takes more than one and a half times as long is named at the end of a run, so that whoever
//! made it slower notices.

/// Part → seconds; and how long the parts that need nothing wait for the lab, and the whole run.
const SHARES: [(&str, u64); 15] = [
    ("format", 5),
    ("lint", 60),
    ("deny", 5),
    ("compile", 230),
    ("sim", 290),
    ("chart", 15),
    ("oslo", 10),
    ("cloudinit", 15),
    ("ironic", 170),
    ("ansible", 430),
    ("unit", 180),
    ("e2e", 900),
    ("spec", 5),
    ("lab awaited", 100),
    ("all", 1680),
];

/// The share of a part in seconds; `None` where it has none.
pub(super) fn of(part: &str) -> Option<u64> {
    SHARES.iter().find(|it| it.0 == part).map(|it| it.1)
}
