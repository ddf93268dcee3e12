//! The releases of cells, as far as the cells are cached.

use std::sync::{Arc, OnceLock};

use api::nova::Cell;
use nova_config::oslo::Release;
use nova_config::release::{self, Chosen};
use operator_core::object_key::Key;
use operator_runtime::cache::Cache;

/// The releases of cells, for code without [`crate::caches::Caches`]; clones share them.
#[derive(Clone)]
pub struct Releases {
    default: Release,
    cells: Arc<OnceLock<Arc<Cache<Cell>>>>,
}

impl Releases {
    /// Returns releases that know no cell yet.
    pub fn new(default: Release) -> Self {
        Self { default, cells: Arc::default() }
    }

    /// Returns the release of cells that name none.
    pub fn default_release(&self) -> Release {
        self.default
    }

    /// Sets the cache of cells, which must be complete; later calls have no effect.
    pub fn learn(&self, cells: &Arc<Cache<Cell>>) {
        let _ = self.cells.set(Arc::clone(cells));
    }

    /// Returns the release of a cell, or `None` until the cells are cached, to avoid wrong
    /// warnings.
    pub fn of(&self, cell: &Key) -> Option<Chosen> {
        let cell = self.cells.get()?.get(cell);
        Some(release::release_of_cell(cell.as_deref(), self.default))
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
