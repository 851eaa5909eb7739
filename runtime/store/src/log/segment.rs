//! The files of the log: their names, their headers with the preamble behind, and how one comes into being.

use super::frame::{Id, Seal, align};
use super::scan::{Damage, Error};
use crate::bytes::{Reader, put_bytes};
use crate::disk::{Disk, Fault, File};
use codec::crc32;
use std::sync::Arc;

pub(super) const HEADER: usize = 64;
const MAGIC: [u8; 7] = *b"wo.log\0";
const VERSION: u8 = 1;

/// Highest number of a segment and of a first record: no store gets there, and more can be added without care.
const MOST: u64 = 1 << 62;

const ZEROS: &[u8] = &[0; 64 << 10];

pub(super) fn name(number: u64) -> String {
    format!("{number:016x}.log")
}

fn tmp_name(number: u64) -> String {
    format!("{number:016x}.tmp")
}

fn number_with(name: &str, extension: &str) -> Option<u64> {
    let digits = name.strip_suffix(extension).filter(|digits| digits.len() == 16)?;
    let lower = digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    u64::from_str_radix(digits, 16).ok().filter(|number| lower && (1..=MOST).contains(number))
}

/// The number of the segment of this name, if it is a segment's.
pub(super) fn number(name: &str) -> Option<u64> {
    number_with(name, ".log")
}

/// Whether it is the name of a segment that was being made.
pub(super) fn is_tmp(name: &str) -> bool {
    number_with(name, ".tmp").is_some()
}

/// Whether it is the name of a file of a log.
pub(crate) fn is_file(name: &str) -> bool {
    number(name).is_some() || is_tmp(name)
}

/// What the store knows of its tables as of the first record of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preamble {
    pub schema: Vec<u8>,
    /// For each table the id that the next row gets.
    pub counters: Vec<u64>,
}

impl Preamble {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(4 + self.schema.len() + 8 * self.counters.len());
        put_bytes(&self.schema, &mut out);
        out.extend(self.counters.iter().flat_map(|counter| counter.to_le_bytes()));
        out
    }

    fn decode(bytes: &[u8]) -> Option<Preamble> {
        let mut fields = Reader(bytes);
        let schema = fields.bytes()?;
        let (counters, rest) = fields.0.as_chunks();
        let counters = counters.iter().map(|counter| u64::from_le_bytes(*counter)).collect();
        rest.is_empty().then(|| Preamble { schema: schema.to_vec(), counters })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub id: Id,
    pub number: u64,
    /// Sequence number of its first record.
    pub first: u64,
    /// The first segment that is needed, as of its first record.
    pub oldest: u64,
}

/// A header as it lies in the file: of the preamble it has the length and the checksum.
fn encode(header: &Header, preamble_len: u32, preamble_crc: u32) -> [u8; HEADER] {
    let mut out = [0; HEADER];
    out[0..7].copy_from_slice(&MAGIC);
    out[7] = VERSION;
    out[8..24].copy_from_slice(&header.id);
    out[24..32].copy_from_slice(&header.number.to_le_bytes());
    out[32..40].copy_from_slice(&header.first.to_le_bytes());
    out[40..48].copy_from_slice(&header.oldest.to_le_bytes());
    out[48..52].copy_from_slice(&preamble_len.to_le_bytes());
    out[52..56].copy_from_slice(&preamble_crc.to_le_bytes());
    let crc = crc32::update(0, &out[..60]);
    out[60..].copy_from_slice(&crc.to_le_bytes());
    out
}

/// The header, the length of the preamble and its checksum; else what is wrong.
fn decode(bytes: &[u8; HEADER], number: u64) -> Result<(Header, u32, u32), &'static str> {
    let (covered, crc) = bytes.split_at(HEADER - 4);
    if Reader(crc).u32() != Some(crc32::update(0, covered)) {
        return Err("the header's checksum does not match");
    }
    let (header, length, crc) = fields(covered).ok_or("not a format that this program knows")?;
    if header.number != number {
        return Err("the header is that of another segment");
    }
    if !(1..=MOST).contains(&header.first) || !(1..=number).contains(&header.oldest) {
        return Err("the header contradicts itself");
    }
    Ok((header, length, crc))
}

fn fields(bytes: &[u8]) -> Option<(Header, u32, u32)> {
    let mut fields = Reader(bytes);
    if fields.exactly(MAGIC.len())? != MAGIC || fields.u8()? != VERSION {
        return None;
    }
    let id = *fields.exactly(16)?.as_array()?;
    let header = Header { id, number: fields.u64()?, first: fields.u64()?, oldest: fields.u64()? };
    Some((header, fields.u32()?, fields.u32()?))
}

/// An open segment whose header and preamble are sound.
pub(super) struct Segment {
    pub header: Header,
    pub preamble: Preamble,
    pub file: Arc<dyn File>,
    pub size: u64,
    /// Where the records begin.
    pub records: u64,
}

impl Segment {
    /// None if the file is shorter than its header and preamble.
    pub fn open(disk: &dyn Disk, number: u64) -> Result<Option<Segment>, Error> {
        let file = disk.open(&name(number))?;
        let size = file.size()?;
        let damaged = |offset, reason: &str| Error::from(Damage::new(number, offset, reason));
        if size < HEADER as u64 {
            return Ok(None);
        }
        let mut bytes = [0; HEADER];
        // Bytes that a file loses meanwhile fail the checksums.
        let _ = file.read_at(0, &mut bytes)?;
        let (header, length, crc) = decode(&bytes, number).map_err(|reason| damaged(0, reason))?;
        let end = HEADER as u64 + u64::from(length);
        if size < end {
            return Ok(None);
        }
        let mut bytes = vec![0; length as usize];
        let _ = file.read_at(HEADER as u64, &mut bytes)?;
        let seal = Seal::new(&header.id, number);
        if seal.preamble(&bytes) != crc {
            return Err(damaged(HEADER as u64, "the preamble's checksum does not match"));
        }
        let preamble = Preamble::decode(&bytes).ok_or_else(|| damaged(HEADER as u64, "no preamble"))?;
        Ok(Some(Segment { header, preamble, file, size, records: align(end) }))
    }

    pub fn seal(&self) -> Seal {
        Seal::new(&self.header.id, self.header.number)
    }
}

/// Makes a segment that has room for `reserve` bytes of records; it is there whole or not at all.
pub(super) fn create(disk: &dyn Disk, header: Header, preamble: Preamble, reserve: u64) -> Result<Segment, Fault> {
    let body = preamble.encode();
    let crc = Seal::new(&header.id, header.number).preamble(&body);
    let mut bytes = encode(&header, u32::try_from(body.len()).unwrap_or(u32::MAX), crc).to_vec();
    bytes.extend_from_slice(&body);
    let records = align(bytes.len() as u64);
    let size = records + reserve;

    let (tmp, name) = (tmp_name(header.number), name(header.number));
    let file = disk.create(&tmp)?;
    file.write_at(0, &bytes)?;
    zero(&*file, bytes.len() as u64, size)?;
    file.sync()?;
    disk.rename(&tmp, &name)?;
    disk.sync_dir()?;
    // By its name for good, for the sake of messages.
    Ok(Segment { header, preamble, file: disk.open(&name)?, size, records })
}

/// Writes zeros, so that writing over them later leaves the file's length and its place on the disk alone.
pub(super) fn zero(file: &dyn File, from: u64, to: u64) -> Result<(), Fault> {
    let mut at = from;
    while at < to {
        let zeros = ZEROS.get(..usize::try_from(to - at).unwrap_or(usize::MAX)).unwrap_or(ZEROS);
        file.write_at(at, zeros)?;
        at += zeros.len() as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "tests")]
    use super::*;

    #[test]
    fn only_lower_case_names_of_16_digits_are_segments() {
        assert_eq!(number(&name(0x1f)), Some(0x1f));
        assert_eq!(name(0x1f), "000000000000001f.log");
        for foreign in ["000000000000001F.log", "1f.log", "0000000000000000.log", "+00000000000001f.log", "lock"] {
            assert_eq!(number(foreign), None, "{foreign}");
        }
        assert!(is_tmp("000000000000001f.tmp") && !is_tmp("notes.tmp"));
    }

    #[test]
    fn headers_and_preambles_read_back() {
        let header = Header { id: [7; 16], number: 3, first: 40, oldest: 2 };
        let bytes = encode(&header, 5, 6);
        assert_eq!(decode(&bytes, 3), Ok((header, 5, 6)));
        assert!(decode(&bytes, 4).is_err());
        let preamble = Preamble { schema: vec![1, 2, 3], counters: vec![7, 8] };
        assert_eq!(Preamble::decode(&preamble.encode()), Some(preamble.clone()));
        let encoded = preamble.encode();
        for cut in 1..encoded.len() {
            let short = Preamble::decode(&encoded[..cut]);
            assert!(short.is_none_or(|p| p.counters.len() < 2), "cut at {cut}");
        }
    }
}
