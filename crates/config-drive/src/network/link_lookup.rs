//! Looks up links by their ids: what an id names, the bond that has it, and which ids a fault offers.

use crate::input::{Link, LinkKind};

/// The link of that id.
pub(super) fn link<'a>(links: &'a [Link], id: &str) -> Option<&'a Link> {
    links.iter().find(|it| it.id == id)
}

/// The ids that a reference may name, as the legal way of a fault.
pub(super) fn one_of<'a>(links: impl Iterator<Item = &'a Link>) -> String {
    let ids: Vec<&str> = links.map(|it| it.id.as_str()).collect();
    if ids.is_empty() {
        "write links first".into()
    } else {
        format!("name one of {}", ids.join(", "))
    }
}

/// Whether it is a network card, which bonds and VLANs may lie on.
pub(super) fn is_card(link: &Link) -> bool {
    matches!(link.kind, LinkKind::Mac(_) | LinkKind::Name(_))
}

/// The bond that a link belongs to.
pub(super) fn bond_of<'a>(links: &'a [Link], id: &str) -> Option<&'a Link> {
    let has = |it: &&Link| matches!(&it.kind, LinkKind::Bond { members, .. } if members.iter().any(|it| it == id));
    links.iter().find(has)
}
