//! Encodings without objects and without I/O: JSON scanning and escaping, the text form of floats, base64, CRC-32.
//! Safe code only; every function accepts any bytes.
#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stderr, clippy::print_stdout)
)]
#![forbid(unsafe_code)]
#![allow(clippy::indexing_slicing, reason = "scanners index within bounds they have just checked")]

pub mod base64;
pub mod crc32;
pub mod float;
pub mod int;
pub mod json;

/// Where encoders put their bytes.
pub trait Sink {
    /// Appends `bytes`.
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
