//! Numbers, dates and sectors in the encoding of ISO 9660.

/// Bytes per sector.
pub(super) const SECTOR: usize = 2048;
/// The date of everything in the image: 1980-01-01, midnight, UTC.
pub(super) const DATE: [u8; 7] = [80, 1, 1, 0, 0, 0, 0];

/// Pads to whole sectors.
pub(super) fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(SECTOR), 0);
    bytes
}

/// Encodes 16 bits in both byte orders (ECMA-119, 7.2.3).
pub(super) fn both16(number: usize) -> [u8; 4] {
    let number = u16::try_from(number).expect("a few directories");
    let mut bytes = [0; 4];
    bytes[..2].copy_from_slice(&number.to_le_bytes());
    bytes[2..].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Encodes 32 bits in both byte orders (ECMA-119, 7.3.3).
pub(super) fn both32(number: usize) -> [u8; 8] {
    let number = u32::try_from(number).expect("an image far below 4 GiB");
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    bytes
}
