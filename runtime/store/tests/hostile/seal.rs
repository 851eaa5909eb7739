//! Makes the checksums of a segment right, whatever is in it (docs/store-format.md), so that what reads behind them is
//! met.

use codec::crc32;

const HEADER: usize = 64;
const HEAD: usize = 29;

fn u32_at(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize)
}

fn put(bytes: &mut [u8], at: usize, crc: u32) {
    bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
}

/// Where the records begin.
pub fn records(bytes: &[u8]) -> usize {
    (HEADER + u32_at(bytes, 48)).next_multiple_of(8)
}

/// Where each record begins, up to a length that is none.
pub fn places(bytes: &[u8]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut at = records(bytes);
    while at + HEAD <= bytes.len() && u32_at(bytes, at + 4) >= HEAD {
        places.push(at);
        at = (at + u32_at(bytes, at + 4)).next_multiple_of(8);
    }
    places
}

pub fn header(bytes: &mut [u8]) {
    if bytes.len() < HEADER {
        return;
    }
    let crc = crc32::update(0, &bytes[..60]);
    put(bytes, 60, crc);
}

/// The checksums of header, preamble and records of the segment `number`.
pub fn all(bytes: &mut [u8], number: u64) {
    if bytes.len() < HEADER {
        return;
    }
    let seed = crc32::update(crc32::update(0, &bytes[8..24]), &number.to_le_bytes());
    if let Some(preamble) = bytes.get(HEADER..HEADER + u32_at(bytes, 48)) {
        let crc = crc32::update(seed, preamble);
        put(bytes, 52, crc);
    }
    header(bytes);
    for at in places(bytes) {
        if let Some(body) = bytes.get(at + HEAD..at + u32_at(bytes, at + 4)) {
            let crc = crc32::update(0, body);
            put(bytes, at + 24, crc);
        }
        let head = crc32::update(crc32::update(seed, &(at as u64).to_le_bytes()), &bytes[at + 4..at + HEAD]);
        put(bytes, at, head);
    }
}
