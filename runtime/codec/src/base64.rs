//! Base64 with the standard alphabet and padding (RFC 4648).

use crate::Sink;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_encode_padding(true)
    .with_decode_padding_mode(DecodePaddingMode::RequireCanonical)
    .with_decode_allow_trailing_bits(true);

static ENGINE: GeneralPurpose = GeneralPurpose::new(&STANDARD, CONFIG);

/// Length of the encoding of `n` bytes; `None` when it does not fit a `usize`.
#[must_use]
pub fn encoded_len(n: usize) -> Option<usize> {
    n.div_ceil(3).checked_mul(4)
}

/// Bytes that are encoded at a time, and what becomes of them. A multiple of three, so that padding comes at the end only.
const PLAIN: usize = 3 * 256;
const CODED: usize = 4 * 256;

/// Appends the encoding of `data`.
pub fn encode(data: &[u8], out: &mut impl Sink) {
    for piece in data.chunks(PLAIN) {
        if out.is_closed() {
            return;
        }
        let mut room = [0; CODED];
        let n = ENGINE.encode_slice(piece, &mut room).unwrap_or(0);
        out.put(&room[..n]);
    }
}

/// Length of the bytes that `text` stands for, or `None` when its length or padding is wrong. The alphabet is not
/// checked here.
#[must_use]
pub fn decoded_len(text: &[u8]) -> Option<usize> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take(2).take_while(|&&b| b == b'=').count();
    Some(text.len() / 4 * 3 - padding)
}

/// Appends the bytes that `text` stands for. False, after a part of them: `text` is not strict base64 (alphabet, length
/// a multiple of 4, `=` only as the last one or two bytes).
#[must_use]
pub fn decode(text: &[u8], out: &mut impl Sink) -> bool {
    let mut pieces = text.chunks(CODED).peekable();
    while let Some(piece) = pieces.next() {
        if out.is_closed() {
            break;
        }
        let mut room = [0; PLAIN];
        match ENGINE.decode_slice(piece, &mut room) {
            Ok(n) if n == PLAIN || pieces.peek().is_none() => out.put(&room[..n]),
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn enc(data: &[u8]) -> String {
        let mut out = Vec::new();
        encode(data, &mut out);
        assert_eq!(out.len(), encoded_len(data.len()).unwrap());
        String::from_utf8(out).unwrap()
    }

    fn dec(text: &str) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        decode(text.as_bytes(), &mut out).then(|| {
            assert_eq!(Some(out.len()), decoded_len(text.as_bytes()));
            out
        })
    }

    #[test]
    fn rfc_vectors() {
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(enc(plain.as_bytes()), coded);
            assert_eq!(dec(coded).unwrap(), plain.as_bytes());
        }
    }

    #[test]
    fn refuses() {
        for bad in
            ["Z", "Zg", "Zg=", "Zg===", "=", "==", "====", "Zg==Zg==", "Z=g=", "Zm9v\n", "Zm9-", "Zm 9", "Zm9vZm8=x==="]
        {
            assert_eq!(dec(bad), None, "{bad}");
        }
    }

    #[test]
    fn all_lengths() {
        for n in (0..200usize).chain(760..780).chain(1530..1540) {
            let data: Vec<u8> = (0..n).map(|i| (i * 37 + n) as u8).collect();
            assert_eq!(dec(&enc(&data)).unwrap(), data);
        }
    }

    #[test]
    fn padding_ends_the_text_wherever_pieces_end() {
        for n in [CODED, 2 * CODED] {
            let coded = |end: &str| "Zm9v".repeat(n / 4 - 1) + end;
            assert!(dec(&coded("Zg==")).is_some());
            for bad in ["Zg==Zm9v", "Zg==Zg==", "Zm9vZ", "Zm9vZm9", "Zg=Z", "Z\u{e9}v"] {
                assert_eq!(dec(&coded(bad)), None, "{n} {bad}");
            }
        }
    }
}
