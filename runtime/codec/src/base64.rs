//! Base64 with the standard alphabet and padding (RFC 4648).

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

/// Encodes into `out`, whose length must be `encoded_len(data.len())`. Returns the bytes written.
pub fn encode(data: &[u8], out: &mut [u8]) -> usize {
    ENGINE.encode_slice(data, out).unwrap_or(0)
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

/// Decodes into `out`, whose length must be `decoded_len(text)`. False: `text` is not strict base64 (alphabet, length
/// a multiple of 4, `=` only as the last one or two bytes).
#[must_use]
pub fn decode(text: &[u8], out: &mut [u8]) -> bool {
    ENGINE.decode_slice(text, out).is_ok_and(|n| n == out.len())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn enc(data: &[u8]) -> String {
        let mut out = vec![0; encoded_len(data.len()).unwrap()];
        let n = encode(data, &mut out);
        assert_eq!(n, out.len());
        String::from_utf8(out).unwrap()
    }

    fn dec(text: &str) -> Option<Vec<u8>> {
        let mut out = vec![0; decoded_len(text.as_bytes())?];
        decode(text.as_bytes(), &mut out).then_some(out)
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
        for n in 0..200usize {
            let data: Vec<u8> = (0..n).map(|i| (i * 37 + n) as u8).collect();
            assert_eq!(dec(&enc(&data)).unwrap(), data);
        }
    }
}
