//! The releases of cells, as far as cells are known.

use std::sync::{Arc, OnceLock};

use api::nova::Cell;
use nova_config::oslo::Release;
use nova_config::release::{self, Chosen};
use operator_core::object_key::Key;
use operator_runtime::cache::Cache;

/// The releases of cells, for whoever has no world of its own; clones share them.
#[derive(Clone)]
pub struct Releases {
    default: Release,
    cells: Arc<OnceLock<Arc<Cache<Cell>>>>,
}

impl Releases {
    /// Of no cell yet.
    pub fn new(default: Release) -> Self {
        Self { default, cells: Arc::default() }
    }

    /// What is used for cells that name none.
    pub fn default_release(&self) -> Release {
        self.default
    }

    /// From now on the cells are asked, which are all there.
    pub fn learn(&self, cells: &Arc<Cache<Cell>>) {
        let _ = self.cells.set(Arc::clone(cells));
    }

    /// The release of a cell; `None` until the cells are known, so that nobody is warned wrongly.
    pub fn of(&self, cell: &Key) -> Option<Chosen> {
        let cell = self.cells.get()?.get(cell);
        Some(release::of(cell.as_deref(), self.default))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_of_a_cell_before_all_cells_are_known() {
        let releases = Releases::new(Release::newest());
        let key = Key::new("openstack", "nova-cell1");
        assert_eq!(releases.of(&key), None);
        releases.clone().learn(&Cache::new(vec![]));
        assert_eq!(releases.of(&key), Some(Chosen::Release(Release::newest())));
    }
}
