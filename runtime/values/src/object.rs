//! The header that every heap object starts with.

use std::sync::atomic::AtomicI32;

/// A counted heap object: this header, then what its kind says (`abi::layout`).
#[repr(C)]
pub struct Obj {
    /// Not used atomically by generated code; the type only makes shared immortal objects sound to read.
    pub count: AtomicI32,
    pub kind: u32,
}
