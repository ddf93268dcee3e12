//! The layout of an image: contents, directories and their sectors.

use std::collections::{BTreeMap, BTreeSet};

/// The first sector after the system area, which stays empty.
pub(super) const FIRST: usize = 16;

/// Contents by path, as in `openstack/latest/user_data`.
pub(super) type Files<'a> = BTreeMap<String, &'a [u8]>;

/// The place of a file or directory in the image.
#[derive(Clone, Copy, Default)]
pub(super) struct Extent {
    /// Its first sector.
    pub(super) sector: usize,
    /// Its size in bytes.
    pub(super) n_bytes: usize,
}

/// A directory: its path (empty for the root) and the index of its parent (0 is the root).
pub(super) struct Directory {
    pub(super) path: String,
    pub(super) parent: usize,
}

/// The places of directories and contents; all zero while sizes are unknown.
pub(super) struct Layout {
    pub(super) directories: Vec<Extent>,
    pub(super) contents: Vec<Extent>,
}

/// Returns all directories in the order of path tables: the root, then by depth, parent and name.
pub(super) fn directories(files: &Files<'_>) -> Vec<Directory> {
    let mut by_depth: BTreeSet<(usize, &str)> = BTreeSet::new();
    for path in files.keys() {
        by_depth.extend(
            path.match_indices('/')
                .map(|(at, _)| &path[..at])
                .map(|it| (it.matches('/').count(), it)),
        );
    }
    let mut found = vec![Directory { path: String::new(), parent: 0 }];
    for (_, path) in by_depth {
        let parent = found.iter().position(|it| it.path == above(path)).unwrap_or_default();
        found.push(Directory { path: path.to_owned(), parent });
    }
    found
}

/// Returns the last component of a path.
pub(super) fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the parent directory of a path.
pub(super) fn above(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |it| it.0)
}
