//! A writer of ISO 9660 images with Rock Ridge names: small, and the same bytes for the same files.
//!
//! Follows ECMA-119 (ISO 9660), SUSP 1.12 and RRIP 1.10 as far as a few small files need them: one
//! session, no boot record, no Joliet. All dates are [`DATE`]; files belong to root, who alone may read
//! them. Files of equal content share their sectors.

mod record;
mod volume;

use std::collections::{BTreeMap, BTreeSet};

use record::{Place, Record, RockRidge};

/// Bytes of a sector.
const SECTOR: usize = 2048;
/// The first sector after the system area, which stays empty.
const FIRST: usize = 16;
/// The image ends on a multiple of so many sectors: readers take 64 KiB at once.
const UNIT: usize = 32;
/// The moment that all dates name: 1980-01-01, midnight, UTC.
const DATE: [u8; 7] = [80, 1, 1, 0, 0, 0, 0];

/// Contents by path, as in `openstack/latest/user_data`.
pub(crate) type Files<'a> = BTreeMap<String, &'a [u8]>;

/// A directory: its path, empty for the root, and its place among all of them, the root being 0.
struct Directory {
    path: String,
    parent: usize,
}

/// What is where, in sectors; all zero while sizes are not known yet.
struct Layout {
    directories: Vec<Place>,
    contents: Vec<Place>,
}

/// The image of a volume.
///
/// # Assumptions
/// The label has at most 32 characters, names differ in more than case and punctuation and are as long
/// as those of a config drive; all files together are far smaller than 4 GiB, none is empty.
pub(crate) fn image(label: &str, files: &Files<'_>) -> Vec<u8> {
    let directories = directories(files);
    let distinct: BTreeSet<&[u8]> = files.values().copied().collect();
    let contents: Vec<&[u8]> = distinct.into_iter().collect();
    let layout = layout(&directories, files, &contents);
    let tables = volume::path_tables(&directories, &layout);
    let mut image = vec![0; FIRST * SECTOR];
    let n_sectors = end(&layout);
    image.extend(volume::descriptors(label, n_sectors, tables[0].len(), &layout.directories[0]));
    for table in tables {
        image.extend(padded(table));
    }
    for idx in 0..directories.len() {
        image.extend(records(idx, &directories, files, &contents, &layout));
    }
    for content in contents {
        image.extend(padded(content.to_vec()));
    }
    image.resize(n_sectors * SECTOR, 0);
    image
}

/// All directories in the order of path tables: the root, then by depth, parent and name.
fn directories(files: &Files<'_>) -> Vec<Directory> {
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

/// Gives everything its place: sizes of directories do not depend on where things are.
fn layout(directories: &[Directory], files: &Files<'_>, contents: &[&[u8]]) -> Layout {
    let nowhere = Layout {
        directories: vec![Place::default(); directories.len()],
        contents: contents.iter().map(|it| Place { sector: 0, n_bytes: it.len() }).collect(),
    };
    let tables = volume::path_tables(directories, &nowhere);
    // Two descriptors, then two tables.
    let mut next = FIRST + 2 + tables.iter().map(|it| it.len().div_ceil(SECTOR)).sum::<usize>();
    let mut place = |n_bytes: usize| {
        let sector = next;
        next += n_bytes.div_ceil(SECTOR);
        Place { sector, n_bytes }
    };
    let sizes: Vec<usize> = (0..directories.len())
        .map(|idx| records(idx, directories, files, contents, &nowhere).len())
        .collect();
    Layout {
        directories: sizes.into_iter().map(&mut place).collect(),
        contents: contents.iter().map(|it| place(it.len())).collect(),
    }
}

/// The number of sectors of the whole image.
fn end(layout: &Layout) -> usize {
    let all = layout.directories.iter().chain(&layout.contents);
    let last = all.map(|it| it.sector + it.n_bytes.div_ceil(SECTOR)).max();
    last.unwrap_or(FIRST).next_multiple_of(UNIT)
}

/// The sectors of a directory: itself, its parent, then its entries by their names.
fn records(
    idx: usize,
    directories: &[Directory],
    files: &Files<'_>,
    contents: &[&[u8]],
    layout: &Layout,
) -> Vec<u8> {
    let own = &directories[idx];
    let n_below =
        |idx: usize| (1..directories.len()).filter(|it| directories[*it].parent == idx).count();
    let directory = |identifier: Vec<u8>, it: usize, name: Option<&str>| Record {
        identifier,
        place: layout.directories[it],
        is_directory: true,
        rock_ridge: RockRidge {
            n_links: 2 + n_below(it),
            name: name.map(str::to_owned),
            is_start: false,
        },
    };
    let mut itself = directory(vec![0], idx, None);
    itself.rock_ridge.is_start = idx == 0;
    let mut entries = Vec::new();
    for (it, below) in directories.iter().enumerate().skip(1).filter(|it| it.1.parent == idx) {
        let name = last(&below.path);
        entries.push(directory(record::identifier(name, true), it, Some(name)));
    }
    for (path, content) in files.iter().filter(|it| above(it.0) == own.path) {
        let place = contents.iter().zip(&layout.contents).find(|it| it.0 == content);
        entries.push(Record {
            identifier: record::identifier(last(path), false),
            place: place.map(|it| *it.1).unwrap_or_default(),
            is_directory: false,
            rock_ridge: RockRidge {
                n_links: 1,
                name: Some(last(path).to_owned()),
                is_start: false,
            },
        });
    }
    entries.sort_by(|a, b| a.identifier.cmp(&b.identifier));
    let parent = directory(vec![1], own.parent, None);
    packed([itself, parent].into_iter().chain(entries).map(|it| it.bytes()))
}

/// Records one after the other; none may lie across two sectors.
fn packed(records: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut sectors = Vec::new();
    for record in records {
        if sectors.len() % SECTOR + record.len() > SECTOR {
            sectors = padded(sectors);
        }
        sectors.extend(record);
    }
    padded(sectors)
}

/// Filled up to whole sectors.
fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(SECTOR), 0);
    bytes
}

/// The name at the end of a path.
fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The directory that a path lies in.
fn above(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |it| it.0)
}

/// A number of 16 bits in both byte orders (ECMA-119, 7.2.3).
fn both16(number: usize) -> [u8; 4] {
    let number = u16::try_from(number).expect("a few directories");
    let mut bytes = [0; 4];
    bytes[..2].copy_from_slice(&number.to_le_bytes());
    bytes[2..].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// A number of 32 bits in both byte orders (ECMA-119, 7.3.3).
fn both32(number: usize) -> [u8; 8] {
    let number = u32::try_from(number).expect("an image far below 4 GiB");
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests;
