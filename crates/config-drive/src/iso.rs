//! A writer of small ISO 9660 images with Rock Ridge names; the same files give the same bytes.
//!
//! It implements ECMA-119 (ISO 9660), SUSP 1.12 and RRIP 1.10 as far as a few small files need
//! them: one session, no boot record, no Joliet. All dates are [`encoding::DATE`]; files belong to
//! root, and only root may read them. Files with equal content share their sectors.

mod encoding;
mod layout;
mod record;
mod volume;

use std::collections::BTreeSet;

use encoding::{SECTOR, padded};
use layout::{Directory, Extent, FIRST, Files, Layout, above, directories, last};
use record::Record;

/// The image size is a multiple of this number of sectors, because readers read 64 KiB at once.
const UNIT: usize = 32;

/// Returns the image of a volume.
///
/// # Assumptions
/// The label has at most 32 characters. Names differ in more than case and punctuation and are as
/// long as those of a config drive. All files together are far smaller than 4 GiB, and none is
/// empty.
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

/// Places everything; sizes of directories do not depend on the places.
fn layout(directories: &[Directory], files: &Files<'_>, contents: &[&[u8]]) -> Layout {
    let nowhere = Layout {
        directories: vec![Extent::default(); directories.len()],
        contents: contents.iter().map(|it| Extent { sector: 0, n_bytes: it.len() }).collect(),
    };
    let tables = volume::path_tables(directories, &nowhere);
    // Two descriptors, then two tables.
    let mut next = FIRST + 2 + tables.iter().map(|it| it.len().div_ceil(SECTOR)).sum::<usize>();
    let mut place = |n_bytes: usize| {
        let sector = next;
        next += n_bytes.div_ceil(SECTOR);
        Extent { sector, n_bytes }
    };
    let sizes: Vec<usize> = (0..directories.len())
        .map(|idx| records(idx, directories, files, contents, &nowhere).len())
        .collect();
    Layout {
        directories: sizes.into_iter().map(&mut place).collect(),
        contents: contents.iter().map(|it| place(it.len())).collect(),
    }
}

/// Returns the number of sectors of the whole image.
fn end(layout: &Layout) -> usize {
    let all = layout.directories.iter().chain(&layout.contents);
    let last = all.map(|it| it.sector + it.n_bytes.div_ceil(SECTOR)).max();
    last.unwrap_or(FIRST).next_multiple_of(UNIT)
}

/// Returns the sectors of a directory: itself, its parent, then its entries by name.
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
        n_links: 2 + n_below(it),
        name: name.map(str::to_owned),
        is_start: false,
    };
    let mut itself = directory(vec![0], idx, None);
    itself.is_start = idx == 0;
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
            n_links: 1,
            name: Some(last(path).to_owned()),
            is_start: false,
        });
    }
    entries.sort_by(|a, b| a.identifier.cmp(&b.identifier));
    let parent = directory(vec![1], own.parent, None);
    packed([itself, parent].into_iter().chain(entries).map(|it| it.bytes()))
}

/// Packs records; none may cross a sector boundary.
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

#[cfg(test)]
mod tests;
