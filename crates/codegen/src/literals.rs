//! Text literals as immortal objects, laid out as `abi::layout` says.

use abi::layout;

/// Appends the Text with these bytes to `out`, whose length is a multiple of 8 and stays one.
pub(crate) fn push(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    let mut put = |offset: i32, part: &[u8]| {
        // What lies between the parts is zero.
        out.resize(start + offset as usize, 0);
        out.extend_from_slice(part);
    };
    let len = bytes.len() as u64;
    put(layout::COUNT, &layout::IMMORTAL.to_le_bytes());
    put(layout::KIND, &layout::KIND_TEXT.to_le_bytes());
    put(layout::TEXT_LEN, &len.to_le_bytes());
    // The runtime's capacity; the word's upper half is its cache for the hash.
    put(layout::TEXT_LEN + 8, &len.to_le_bytes());
    put(layout::TEXT_DATA, bytes);
    // A zero byte follows the text, so that an empty one has memory too.
    let end = out.len() + 1;
    out.resize(end.next_multiple_of(8), 0);
}

const _: () = assert!(cfg!(target_endian = "little"), "objects are laid out for little-endian machines");

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    #[test]
    fn lays_out_texts() {
        let mut out = Vec::new();
        for bytes in [&b""[..], b"a", b"1234567", b"12345678", b"123456789"] {
            let start = out.len();
            push(&mut out, bytes);
            let object = &out[start..];
            assert_eq!(i32::from_le_bytes(object[0..4].try_into().unwrap()), layout::IMMORTAL);
            assert_eq!(u32::from_le_bytes(object[4..8].try_into().unwrap()), layout::KIND_TEXT);
            assert_eq!(u64::from_le_bytes(object[8..16].try_into().unwrap()), bytes.len() as u64);
            assert_eq!(u64::from_le_bytes(object[16..24].try_into().unwrap()), bytes.len() as u64);
            assert_eq!(&object[24..24 + bytes.len()], bytes);
            assert!(object.len() % 8 == 0 && object[24 + bytes.len()..].iter().all(|b| *b == 0));
            assert!(object.len() > 24 + bytes.len());
        }
    }
}
