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

    /// Takes no more: the rest of the work is in vain.
    fn is_closed(&self) -> bool {
        false
    }
}

/// Bytes that are worked on before others get their turn: less than a slice's worth of time.
pub const PIECE: usize = 64 << 10;

/// How long work lets others have their turn, between pieces of it.
pub trait Turns {
    /// False: the rest is not to be done.
    fn give_way(&mut self) -> bool;
}

/// There are no others.
impl Turns for () {
    fn give_way(&mut self) -> bool {
        true
    }
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
