//! Directory entries with the POSIX names and modes of Rock Ridge.

use super::encoding::{DATE, both16, both32};
use super::layout::Extent;

/// Type and permissions of a directory: only for root.
const DIRECTORY_MODE: usize = 0o040_500;
/// Type and permissions of a file: only for root.
const FILE_MODE: usize = 0o100_400;
/// Rock Ridge's identifier, in the version of these entries.
const EXTENSION: &[u8] = b"RRIP_1991A";

/// A directory entry (ECMA-119, 9.1) with its POSIX attributes.
pub(super) struct Record {
    /// The ISO 9660 name; a byte of 0 or 1 for the directory itself and its parent.
    pub(super) identifier: Vec<u8>,
    pub(super) place: Extent,
    pub(super) is_directory: bool,
    pub(super) n_links: usize,
    /// The real name; `None` for the directory itself and its parent.
    pub(super) name: Option<String>,
    /// Whether it is the very first record, which announces Rock Ridge.
    pub(super) is_start: bool,
}

impl Record {
    /// Returns the record, with an even number of bytes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = bare(&self.identifier, self.place, self.is_directory);
        if self.is_start {
            bytes.extend(entry(*b"SP", &[0xbe, 0xef, 0]));
        }
        // PX is present, and NM if there is a name.
        let has = 0x01 | u8::from(self.name.is_some()) << 3;
        bytes.extend(entry(*b"RR", &[has]));
        let mode = if self.is_directory { DIRECTORY_MODE } else { FILE_MODE };
        let (user, group) = (0, 0);
        bytes.extend(entry(*b"PX", &[mode, self.n_links, user, group].map(both32).concat()));
        if let Some(name) = &self.name {
            bytes.extend(entry(*b"NM", &[&[0], name.as_bytes()].concat()));
        }
        if self.is_start {
            // The extension's identifier; description and source may be empty.
            let length = u8::try_from(EXTENSION.len()).expect("ten");
            bytes.extend(entry(*b"ER", &[&[length, 0, 0, 1], EXTENSION].concat()));
        }
        if !bytes.len().is_multiple_of(2) {
            bytes.push(0);
        }
        bytes[0] = u8::try_from(bytes.len()).expect("names as short as those of a config drive");
        bytes
    }
}

/// Returns a record without Rock Ridge, as the volume descriptor has for the root.
pub(super) fn bare(identifier: &[u8], place: Extent, is_directory: bool) -> Vec<u8> {
    const NO_ATTRIBUTES: u8 = 0;
    let mut bytes = vec![0, NO_ATTRIBUTES];
    bytes.extend(both32(place.sector));
    bytes.extend(both32(place.n_bytes));
    bytes.extend(DATE);
    // Flags, then two numbers of interleaved files.
    bytes.extend([u8::from(is_directory) << 1, 0, 0]);
    bytes.extend(both16(1));
    bytes.push(u8::try_from(identifier.len()).expect("a short name"));
    bytes.extend(identifier);
    if identifier.len().is_multiple_of(2) {
        bytes.push(0);
    }
    bytes[0] = u8::try_from(bytes.len()).expect("a short name");
    bytes
}

/// Encodes an entry of the System Use Sharing Protocol: signature, length, version 1, content.
fn entry(signature: [u8; 2], content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(4 + content.len()).expect("a short name");
    [&signature[..], &[length, 1], content].concat()
}

/// Returns the ISO 9660 name: capitals, digits and underscores; files also have one dot and a
/// version.
///
/// Linux shows it in lower case when it is mounted without Rock Ridge.
pub(super) fn identifier(name: &str, is_directory: bool) -> Vec<u8> {
    let legal = |text: &str| -> String {
        let legal =
            |it: char| if it.is_ascii_alphanumeric() { it.to_ascii_uppercase() } else { '_' };
        text.chars().map(legal).collect()
    };
    if is_directory {
        return legal(name).into_bytes();
    }
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    format!("{}.{};1", legal(stem), legal(ending)).into_bytes()
}
