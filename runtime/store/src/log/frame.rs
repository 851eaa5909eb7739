//! Records as they lie in a segment: a head, which has a checksum of its own so that its length can be trusted and a
//! search for heads costs the same at every place, then the body. docs/store-format.md has the layout.

use crate::MAX_ROW;
use crate::bytes::Reader;
use codec::crc32;

/// Bytes before the body.
pub(super) const HEAD: usize = 29;
/// Most bytes that a body may take: a row, and what its columns need beside their values.
const MAX_BODY: usize = MAX_ROW + (64 << 10);

/// Records begin at multiples of this.
const ALIGN: usize = 8;

/// The random value that a store's checksums cover.
pub(super) type Id = [u8; 16];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Insert = 1,
    Change = 2,
    Delete = 3,
    Keep = 4,
    Oldest = 5,
    End = 6,
}

impl Kind {
    pub(super) fn from_byte(byte: u8) -> Option<Kind> {
        use Kind::{Change, Delete, End, Insert, Keep, Oldest};
        [Insert, Change, Delete, Keep, Oldest, End].into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// What a head says, its checksum apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Of head and body.
    pub length: usize,
    pub seq: u64,
    pub barrier: u64,
    pub body_crc: u32,
    pub kind: u8,
}

impl Head {
    fn encode(&self, crc: u32) -> [u8; HEAD] {
        let mut out = [0; HEAD];
        out[0..4].copy_from_slice(&crc.to_le_bytes());
        out[4..8].copy_from_slice(&u32::try_from(self.length).unwrap_or(u32::MAX).to_le_bytes());
        out[8..16].copy_from_slice(&self.seq.to_le_bytes());
        out[16..24].copy_from_slice(&self.barrier.to_le_bytes());
        out[24..28].copy_from_slice(&self.body_crc.to_le_bytes());
        out[28] = self.kind;
        out
    }

    /// The checksum that stands there, and the rest.
    fn decode(bytes: &[u8]) -> Option<(u32, Head)> {
        let mut fields = Reader(bytes);
        let crc = fields.u32()?;
        let length = fields.u32()? as usize;
        let (seq, barrier) = (fields.u64()?, fields.u64()?);
        let head = Head { length, seq, barrier, body_crc: fields.u32()?, kind: fields.u8()? };
        Some((crc, head))
    }
}

/// The next place at which a record may begin.
pub(super) fn align(offset: u64) -> u64 {
    offset.next_multiple_of(ALIGN as u64)
}

/// Bytes that a record takes whose body has so many.
pub(crate) fn record_size(body: usize) -> u64 {
    align((HEAD + body) as u64)
}

/// Appends a record that lacks its barrier and its checksums: the place where it will lie is not known yet.
pub(super) fn put(out: &mut Vec<u8>, seq: u64, kind: Kind, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD]);
    body(out);
    let length = out.len() - start;
    debug_assert!((HEAD..=HEAD + MAX_BODY).contains(&length), "a body of {length} bytes");
    let head = Head { length, seq, barrier: 0, body_crc: 0, kind: kind as u8 };
    if let Some(place) = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut) {
        *place = head.encode(0);
    }
    out.resize(out.len().next_multiple_of(ALIGN), 0);
}

/// The first of records that were `put` into a buffer, with the zeros behind it, and the others.
pub(super) fn split_first(records: &mut [u8]) -> Option<(&mut [u8], &mut [u8])> {
    let (_, head) = Head::decode(records)?;
    records.split_at_mut_checked(head.length.next_multiple_of(ALIGN))
}

/// The checksums of a segment: they cover the store and the place, so that no copy of a record passes for one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seal {
    /// Of the store's id and the number of the segment.
    seed: u32,
}

impl Seal {
    pub fn new(id: &Id, segment: u64) -> Seal {
        Seal { seed: crc32::update(crc32::update(0, id), &segment.to_le_bytes()) }
    }

    fn crc(&self, offset: u64, head: &[u8; HEAD]) -> u32 {
        crc32::update(crc32::update(self.seed, &offset.to_le_bytes()), head.split_at(4).1)
    }

    pub fn preamble(&self, preamble: &[u8]) -> u32 {
        crc32::update(self.seed, preamble)
    }

    /// Completes a record that was `put`; its kind and its body.
    pub fn close<'r>(&self, offset: u64, barrier: u64, record: &'r mut [u8]) -> Option<(u8, &'r [u8])> {
        let (_, head) = Head::decode(record)?;
        let (place, rest) = record.split_first_chunk_mut::<HEAD>()?;
        let body = rest.get(..head.length.checked_sub(HEAD)?)?;
        let head = Head { barrier, body_crc: crc32::update(0, body), ..head };
        *place = head.encode(self.crc(offset, &head.encode(0)));
        Some((head.kind, body))
    }

    /// The head at the front of `bytes`, which were read at `offset`, if it is one.
    pub fn head(&self, offset: u64, bytes: &[u8]) -> Option<Head> {
        let (crc, head) = Head::decode(bytes)?;
        // Most places that hold no head end here, without a checksum being computed.
        if !(HEAD..=HEAD + MAX_BODY).contains(&head.length) || head.barrier >= head.seq || head.seq == u64::MAX {
            return None;
        }
        (crc == self.crc(offset, bytes.first_chunk()?)).then_some(head)
    }
}

/// The body in the bytes of a record, if it is the one that its head speaks of.
pub(super) fn body<'r>(head: &Head, record: &'r [u8]) -> Option<&'r [u8]> {
    let body = record.get(HEAD..head.length)?;
    (crc32::update(0, body) == head.body_crc).then_some(body)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    fn sealed(seal: Seal, offset: u64, body: &[u8]) -> Vec<u8> {
        let mut record = Vec::new();
        put(&mut record, 9, Kind::Change, |out| out.extend_from_slice(body));
        let _ = seal.close(offset, 7, &mut record);
        record
    }

    #[test]
    fn what_is_sealed_opens_at_its_place_only() {
        let seal = Seal::new(&[5; 16], 3);
        let record = sealed(seal, 64, b"some body");
        assert_eq!(record.len() % ALIGN, 0);
        let head = seal.head(64, &record).unwrap();
        assert_eq!((head.length, head.seq, head.barrier, head.kind), (HEAD + 9, 9, 7, 2));
        assert_eq!(body(&head, &record), Some(&b"some body"[..]));
        assert_eq!(seal.head(72, &record), None);
        assert_eq!(Seal::new(&[5; 16], 4).head(64, &record), None);
        assert_eq!(Seal::new(&[6; 16], 3).head(64, &record), None);
    }

    #[test]
    fn every_flipped_bit_shows() {
        let seal = Seal::new(&[5; 16], 3);
        let record = sealed(seal, 64, b"some body");
        for bit in 0..(HEAD + 9) * 8 {
            let mut bad = record.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let found = seal.head(64, &bad).and_then(|head| body(&head, &bad).map(<[u8]>::to_vec));
            assert_eq!(found, None, "bit {bit}");
        }
    }

    /// A head whose checksum is right may still speak of more bytes than there are.
    #[test]
    fn fmt_5_no_length_is_trusted() {
        let seal = Seal::new(&[5; 16], 3);
        let record = sealed(seal, 64, &[1; 100]);
        for len in 0..record.len() {
            let bytes = &record[..len];
            let opened = seal.head(64, bytes).and_then(|head| body(&head, bytes));
            assert_eq!(opened.is_some(), len >= HEAD + 100);
        }
        let too_long = Head { length: HEAD + MAX_BODY + 1, seq: 9, barrier: 7, body_crc: 0, kind: 1 };
        let bytes = too_long.encode(seal.crc(64, &too_long.encode(0)));
        assert_eq!(seal.head(64, &bytes), None);
    }
    #[test]
    fn a_head_that_contradicts_itself_is_none() {
        let seal = Seal::new(&[5; 16], 3);
        for (seq, barrier) in [(0, 0), (9, 9), (9, 10), (u64::MAX, 3)] {
            let head = Head { length: HEAD, seq, barrier, body_crc: 0, kind: 1 };
            let bytes = head.encode(seal.crc(64, &head.encode(0)));
            assert_eq!(seal.head(64, &bytes), None, "{seq} {barrier}");
        }
    }
}
