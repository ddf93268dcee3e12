//! What an image holds and where it lies: contents, directories, and their sectors.

use std::collections::{BTreeMap, BTreeSet};

/// The first sector after the system area, which stays empty.
pub(super) const FIRST: usize = 16;

/// Contents by path, as in `openstack/latest/user_data`.
pub(super) type Files<'a> = BTreeMap<String, &'a [u8]>;

/// Where something lies.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    /// Its first sector.
    pub(super) sector: usize,
    /// Its size in bytes.
    pub(super) n_bytes: usize,
}

/// A directory: its path, empty for the root, and its place among all of them, the root being 0.
pub(super) struct Directory {
    pub(super) path: String,
    pub(super) parent: usize,
}

/// What is where, in sectors; all zero while sizes are not known yet.
pub(super) struct Layout {
    pub(super) directories: Vec<Place>,
    pub(super) contents: Vec<Place>,
}

/// All directories in the order of path tables: the root, then by depth, parent and name.
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
        let above = path.rsplit_once('/').map_or("", |it| it.0);
        let parent = found.iter().position(|it| it.path == above).unwrap_or_default();
        found.push(Directory { path: path.to_owned(), parent });
    }
    found
}

/// The name at the end of a path.
pub(super) fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The directory that a path lies in.
pub(super) fn above(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |it| it.0)
}
