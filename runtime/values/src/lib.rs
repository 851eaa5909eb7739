//! Values of running programs: objects, texts, containers; their release, copy, comparison and JSON; the fiber context.
#![allow(unsafe_code, reason = "object layouts are raw memory shared with generated code")]

pub mod copy;
pub mod ctx;
pub mod cycles;
pub mod decode;
pub mod encode;
pub mod equal;
pub mod map;
pub mod multi;
pub mod object;
mod pool;
pub mod reach;
mod shape;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
pub mod trace;

#[cfg(test)]
mod tests;
