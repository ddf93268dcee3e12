//! Tests of images: required content, and bytes that must not change.

use std::collections::BTreeMap;

use operator_core::hash;
use proptest::prelude::*;

use super::*;

fn u32_le(bytes: &[u8]) -> usize {
    u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize
}

/// Returns the records of a directory as bytes, sector by sector.
fn records_in(image: &[u8], place: (usize, usize)) -> Vec<&[u8]> {
    let mut found = Vec::new();
    for sector in image[place.0 * SECTOR..][..place.1].chunks(SECTOR) {
        let mut at = 0;
        while at < SECTOR && sector[at] != 0 {
            found.push(&sector[at..at + usize::from(sector[at])]);
            at += usize::from(sector[at]);
        }
    }
    found
}

fn place(record: &[u8]) -> (usize, usize) {
    (u32_le(&record[2..]), u32_le(&record[10..]))
}

/// Returns the Rock Ridge name of a record.
fn name(record: &[u8]) -> Option<String> {
    let id_length = usize::from(record[32]);
    let mut at = 33 + id_length + (id_length + 1) % 2;
    while at + 4 < record.len() {
        let length = usize::from(record[at + 2]);
        if &record[at..at + 2] == b"NM" {
            return Some(String::from_utf8(record[at + 5..at + length].to_vec()).unwrap());
        }
        at += length;
    }
    None
}

/// Reads all files below a directory, by their Rock Ridge names.
fn read(image: &[u8], at: (usize, usize), above: &str, found: &mut BTreeMap<String, Vec<u8>>) {
    for record in records_in(image, at).into_iter().skip(2) {
        let path = format!("{above}{}", name(record).unwrap());
        if record[25] & 2 == 2 {
            read(image, place(record), &format!("{path}/"), found);
        } else {
            let (sector, length) = place(record);
            found.insert(path, image[sector * SECTOR..][..length].to_vec());
        }
    }
}

fn files_of(image: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let root = &image[FIRST * SECTOR + 156..][..34];
    read(image, place(root), "", &mut found);
    found
}

fn borrowed(files: &BTreeMap<String, Vec<u8>>) -> Files<'_> {
    files.iter().map(|(path, content)| (path.clone(), content.as_slice())).collect()
}

fn example() -> BTreeMap<String, Vec<u8>> {
    let paths = ["openstack/2012-08-10/meta_data.json", "openstack/latest/meta_data.json"];
    let mut files: BTreeMap<String, Vec<u8>> =
        paths.into_iter().map(|it| (it.to_owned(), b"{}\n".to_vec())).collect();
    files.insert("openstack/latest/user_data".into(), vec![0xa7; 3000]);
    files
}

#[test]
fn the_bytes_of_an_image_stay_as_they_are() {
    let image = image("config-2", &borrowed(&example()));
    assert_eq!(image.len(), UNIT * SECTOR);
    let expected = "24dbca3d2d0a7f023add8817ec4026173afd3a2be8caf5d241ccfdbe78e6314c";
    assert_eq!(hash::of_bytes(&image), expected);
}

#[test]
fn the_volume_is_described_where_readers_look() {
    let image = image("config-2", &borrowed(&example()));
    let volume = &image[FIRST * SECTOR..][..SECTOR];
    assert_eq!(&volume[..7], b"\x01CD001\x01");
    assert_eq!(&volume[40..72], format!("{:<32}", "config-2").as_bytes());
    assert_eq!(u32_le(&volume[80..]) * SECTOR, image.len());
    for at in [80, 132, 158, 166] {
        let mut big: Vec<u8> = volume[at + 4..at + 8].to_vec();
        big.reverse();
        assert_eq!(volume[at..at + 4], big, "both byte orders at {at}");
    }
    assert_eq!(volume[881], 1, "the version of the file structure");
    assert_eq!(&image[(FIRST + 1) * SECTOR..][..7], b"\xffCD001\x01");
}

#[test]
fn both_path_tables_name_every_directory_after_its_parent() {
    let image = image("config-2", &borrowed(&example()));
    let little = &image[(FIRST + 2) * SECTOR..][..SECTOR];
    let big = &image[(FIRST + 3) * SECTOR..][..SECTOR];
    let mut at = 0;
    let mut found = Vec::new();
    while little[at] != 0 {
        let length = usize::from(little[at]);
        let sector = u32_le(&little[at + 2..]);
        assert_eq!(sector, u32::from_be_bytes(big[at + 2..at + 6].try_into().unwrap()) as usize);
        assert_eq!(little[at + 6], big[at + 7], "the parent");
        // The first record is the directory itself.
        assert_eq!(place(&image[sector * SECTOR..]).0, sector);
        let name = String::from_utf8_lossy(&little[at + 8..at + 8 + length]).into_owned();
        found.push((name, little[at + 6]));
        at += 8 + length + length % 2;
    }
    let expected = [("\0", 1), ("OPENSTACK", 1), ("2012_08_10", 2), ("LATEST", 2)];
    assert_eq!(found, expected.map(|(name, parent)| (name.to_owned(), parent)));
}

#[test]
fn equal_files_share_their_sectors() {
    let mut files = example();
    let n_bytes = |files: &BTreeMap<String, Vec<u8>>| {
        let image = image("config-2", &borrowed(files));
        image.into_iter().filter(|it| *it == 0xa7).count()
    };
    let before = n_bytes(&files);
    files.insert("openstack/2012-08-10/user_data".into(), vec![0xa7; 3000]);
    assert_eq!(n_bytes(&files), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// More directories and entries than a drive has, so that directories span several sectors.
    #[test]
    fn every_file_is_found_again(
        files in prop::collection::btree_map(
            "[a-c]{1,2}(/[a-c]{1,2}){0,2}/f[a-z0-9]{1,20}(\\.json)?",
            prop::collection::vec(any::<u8>(), 1..3000),
            1..40,
        ),
    ) {
        let image = image("config-2", &borrowed(&files));
        prop_assert_eq!(image.len() % SECTOR, 0);
        prop_assert_eq!(files_of(&image), files);
    }
}
