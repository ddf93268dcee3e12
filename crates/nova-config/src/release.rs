//! The release of nova that a compute's options are checked against: that of its cell, else the
//! operator's default.

use api::nova::Cell;
use kube::ResourceExt;

use crate::annotations::RELEASE;
use crate::oslo::Release;

/// What a compute's options are checked against.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Chosen {
    /// The options of that release.
    Release(Release),
    /// Nothing: the cell names a release without known options.
    Unknown(String),
}

impl Chosen {
    /// Returns the release, or `None` when it is unknown.
    pub fn release(&self) -> Option<Release> {
        match self {
            Self::Release(release) => Some(*release),
            Self::Unknown(_) => None,
        }
    }
}

/// Returns the release of a cell, or `default` when it names none.
pub fn release_of_cell(cell: Option<&Cell>, default: Release) -> Chosen {
    let named = cell.and_then(|it| it.annotations().get(RELEASE)).filter(|it| !it.is_empty());
    let Some(named) = named else { return Chosen::Release(default) };
    Release::named(named).map_or_else(|| Chosen::Unknown(named.clone()), Chosen::Release)
}

/// Returns why options are not checked, and what the user can do.
pub fn not_judged(cell: &str, named: &str) -> String {
    format!(
        "Names and values of options are not checked, for annotation {RELEASE} of NovaCell {cell} \
         names {named}: known are {}",
        names().join(", ")
    )
}

/// Returns the release of that name, or an error that lists the known names.
pub fn parse(name: &str) -> Result<Release, String> {
    Release::named(name).ok_or_else(|| format!("known are {}", names().join(", ")))
}

fn names() -> Vec<&'static str> {
    Release::all().map(Release::name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(release: &str) -> Cell {
        let mut cell = Cell::new("nova-cell1", api::nova::CellSpec::default());
        cell.annotations_mut().insert(RELEASE.to_owned(), release.to_owned());
        cell
    }

    #[test]
    fn the_cells_own_release_counts_before_the_default() {
        let (old, new) = (Release::named("2025.2").unwrap(), Release::newest());
        assert_eq!(release_of_cell(Some(&cell("2025.2")), new), Chosen::Release(old));
        assert_eq!(release_of_cell(Some(&cell("")), new), Chosen::Release(new));
        assert_eq!(release_of_cell(None, old), Chosen::Release(old));
    }

    #[test]
    fn a_release_that_is_not_known_is_named_with_those_that_are() {
        let chosen = release_of_cell(Some(&cell("zed")), Release::newest());
        assert_eq!((chosen.release(), &chosen), (None, &Chosen::Unknown("zed".into())));
        let text = not_judged("nova-cell1", "zed");
        assert!(text.contains("NovaCell nova-cell1 names zed: known are 2023.1, "), "{text}");
        assert!(parse("zed").is_err() && parse("2026.2").is_ok());
    }
}
