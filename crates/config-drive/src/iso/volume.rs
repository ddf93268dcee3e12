//! The volume descriptors and the path tables, which readers look at first.

use super::encoding::{SECTOR, both16, both32, padded};
use super::layout::{Directory, Extent, FIRST, Layout, last};
use super::record::{self, bare};

/// Begins every descriptor, after its type.
const STANDARD: &[u8] = b"CD001\x01";
/// The date of the volume in digits, and its offset from UTC.
const DATE: &[u8; 17] = b"1980010100000000\0";
/// No date.
const NO_DATE: &[u8; 17] = b"0000000000000000\0";

/// Returns the primary descriptor and the terminator (ECMA-119, 8.4 and 8.3).
pub(super) fn descriptors(label: &str, n_sectors: usize, table: usize, root: &Extent) -> Vec<u8> {
    let n_table_sectors = table.div_ceil(SECTOR);
    let little = FIRST + 2;
    let mut bytes = [&[1], STANDARD, &[0]].concat();
    bytes.extend(text("", 32));
    bytes.extend(text(label, 32));
    bytes.extend([0; 8]);
    bytes.extend(both32(n_sectors));
    bytes.extend([0; 32]);
    // A set of one volume, of which this is the first.
    bytes.extend([both16(1), both16(1), both16(SECTOR)].concat());
    bytes.extend(both32(table));
    // Each table is given in its own byte order; there are no second copies.
    bytes.extend(&both32(little)[..4]);
    bytes.extend([0; 4]);
    bytes.extend(&both32(little + n_table_sectors)[4..]);
    bytes.extend([0; 4]);
    bytes.extend(bare(&[0], *root, true));
    // Set, publisher, preparer and program; then files of copyright, abstract and bibliography.
    bytes.extend([text("", 4 * 128), text("", 3 * 37)].concat());
    // Creation, modification, expiration, effective.
    bytes.extend([DATE, DATE, NO_DATE, NO_DATE].map(|it| *it).concat());
    bytes.push(1);
    let mut all = padded(bytes);
    all.extend(padded([&[255], STANDARD].concat()));
    all
}

/// Pads a text with blanks.
fn text(text: &str, length: usize) -> Vec<u8> {
    format!("{text:<length$}").into_bytes()
}

/// Returns the path tables of all directories: little-endian, then big-endian (ECMA-119, 6.9).
pub(super) fn path_tables(directories: &[Directory], layout: &Layout) -> [Vec<u8>; 2] {
    let mut tables = [Vec::new(), Vec::new()];
    for (it, place) in directories.iter().zip(&layout.directories) {
        let is_root = it.path.is_empty();
        let identifier = if is_root { vec![0] } else { record::identifier(last(&it.path), true) };
        let length = u8::try_from(identifier.len()).expect("a short name");
        let (sector, parent) = (both32(place.sector), both16(it.parent + 1));
        for (table, sector, parent) in
            [(0, &sector[..4], &parent[..2]), (1, &sector[4..], &parent[2..])]
        {
            let padding: &[u8] = if identifier.len().is_multiple_of(2) { &[] } else { &[0] };
            tables[table].extend([&[length, 0], sector, parent, &identifier, padding].concat());
        }
    }
    tables
}
