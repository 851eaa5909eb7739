//! Tests of the values on contexts made by `testing`; each world checks at its end that everything was freed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::undocumented_unsafe_blocks,
    reason = "tests: objects are live and of the type that each test gives them"
)]

mod copies;
mod cycles;
mod json;
mod maps;
mod memory;
mod multis;
mod slices;
mod texts;
mod traces;

/// Seeded xorshift.
pub(crate) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}
