//! Text literals: immortal objects in leaked memory, laid out as `abi::layout` says, each text once.

use abi::layout;
use rustc_hash::FxHashMap;

/// Words before the first byte: header, length, and the word that the runtime uses for the capacity.
const HEADER_WORDS: usize = layout::TEXT_DATA as usize / 8;
/// Where the literals of a dump seem to lie: dumps name no real address, so that equal programs give equal dumps.
const DUMP_BASE: i64 = 0x7e00_0000_0000;

/// Addresses of literals by their bytes.
pub(crate) struct Literals {
    by_bytes: FxHashMap<Vec<u8>, i64>,
    dump: bool,
}

impl Literals {
    /// With `dump`, addresses are made up and no object is made.
    pub(crate) fn new(dump: bool) -> Self {
        Literals { by_bytes: FxHashMap::default(), dump }
    }

    /// Address of the Text with these bytes.
    pub(crate) fn text(&mut self, bytes: &[u8]) -> i64 {
        if let Some(at) = self.by_bytes.get(bytes) {
            return *at;
        }
        let at = if self.dump { DUMP_BASE + 32 * self.by_bytes.len() as i64 } else { allocate(bytes) };
        let _ = self.by_bytes.insert(bytes.to_vec(), at);
        at
    }
}

fn allocate(bytes: &[u8]) -> i64 {
    // A zero byte follows the text, so that an empty one has memory too.
    let words = HEADER_WORDS + bytes.len() / 8 + 1;
    let object: &'static mut [u64] = Box::leak(vec![0u64; words].into_boxed_slice());
    let mut put = |offset: i32, part: &[u8]| {
        for (i, byte) in part.iter().enumerate() {
            let at = offset as usize + i;
            if let Some(word) = object.get_mut(at / 8) {
                *word |= u64::from(*byte) << (8 * (at % 8));
            }
        }
    };
    put(layout::COUNT, &layout::IMMORTAL.to_le_bytes());
    put(layout::KIND, &layout::KIND_TEXT.to_le_bytes());
    put(layout::TEXT_LEN, &(bytes.len() as u64).to_le_bytes());
    put(layout::TEXT_LEN + 8, &(bytes.len() as u64).to_le_bytes());
    put(layout::TEXT_DATA, bytes);
    object.as_mut_ptr().expose_provenance() as i64
}

const _: () = assert!(cfg!(target_endian = "little"), "objects are laid out for little-endian machines");

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    #[test]
    fn lays_out_a_text() {
        let mut literals = Literals::new(false);
        for bytes in [&b""[..], b"a", b"12345678", b"123456789"] {
            let at = literals.text(bytes);
            assert_eq!(at, literals.text(bytes));
            let base = std::ptr::with_exposed_provenance::<u8>(at as usize);
            // SAFETY: the object has a header of TEXT_DATA bytes and `bytes.len()` bytes after it.
            let object = unsafe { std::slice::from_raw_parts(base, layout::TEXT_DATA as usize + bytes.len()) };
            assert_eq!(i32::from_le_bytes(object[0..4].try_into().unwrap()), layout::IMMORTAL);
            assert_eq!(u32::from_le_bytes(object[4..8].try_into().unwrap()), layout::KIND_TEXT);
            assert_eq!(u64::from_le_bytes(object[8..16].try_into().unwrap()), bytes.len() as u64);
            assert_eq!(&object[24..], bytes);
        }
    }
}
