//! Looks up links by id: the link, its bond, and the valid ids for a fault.

use crate::input::{Link, LinkKind};

/// Returns the link with that id.
pub(super) fn link<'a>(links: &'a [Link], id: &str) -> Option<&'a Link> {
    links.iter().find(|it| it.id == id)
}

/// Returns the ids that a reference may name, as the alternative in a fault.
pub(super) fn one_of<'a>(links: impl Iterator<Item = &'a Link>) -> String {
    let ids: Vec<&str> = links.map(|it| it.id.as_str()).collect();
    if ids.is_empty() {
        "define links first".into()
    } else {
        format!("name one of {}", ids.join(", "))
    }
}

/// Returns whether it is a network card, on which bonds and VLANs may be based.
pub(super) fn is_card(link: &Link) -> bool {
    matches!(link.kind, LinkKind::Mac(_) | LinkKind::Name(_))
}

/// Returns the bond that a link belongs to.
pub(super) fn bond_of<'a>(links: &'a [Link], id: &str) -> Option<&'a Link> {
    let has = |it: &&Link| matches!(&it.kind, LinkKind::Bond { members, .. } if members.iter().any(|it| it == id));
    links.iter().find(has)
}
