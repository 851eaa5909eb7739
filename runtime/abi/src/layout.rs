//! Byte offsets that generated code hard-wires. Each is asserted against the real structure in the crate that owns it.
//!
//! Every heap object starts with a header of two 32-bit words: a reference count and a kind. The count is not atomic:
//! an object belongs to one shard at a time. A negative count (as `i32`) marks an immortal object, which is never
//! counted and never freed; the count of others may carry the flag `QUIET`. Kinds below `FIRST_CLASS` are built in; `FIRST_CLASS + i` is class `i` of the program.

/// Reference count, `i32`.
pub const COUNT: i32 = 0;
/// Kind, `u32`.
pub const KIND: i32 = 4;
/// First field of a class object; fields are 8-byte words, a nullable scalar takes two (tag, value).
pub const FIELDS: i32 = 8;

/// Count of immortal objects (literals).
pub const IMMORTAL: i32 = i32::MIN / 2;

/// Flag in the count of mortal objects. Set: the object cannot be on a cycle, or waits already for the cycle collector
/// to look at it. After a release that leaves a count word above this value there is nothing to do; any other one goes
/// to `rt.released`, which frees the object or notes it for the collector.
pub const QUIET: i32 = 1 << 30;

pub const KIND_TEXT: u32 = 0;
pub const KIND_BYTES: u32 = 1;
pub const KIND_MULTI: u32 = 2;
pub const KIND_MAP: u32 = 3;
pub const FIRST_CLASS: u32 = 16;

/// Text and Bytes: length in bytes, `u64`.
pub const TEXT_LEN: i32 = 8;
/// Text and Bytes: first byte.
pub const TEXT_DATA: i32 = 24;

/// `multi`: number of elements, `u64`.
pub const MULTI_LEN: i32 = 8;
/// `multi`: capacity in elements, `u64`.
pub const MULTI_CAP: i32 = 16;
/// `multi`: pointer to the elements, one or two words each.
pub const MULTI_DATA: i32 = 24;

/// `map`: number of entries, `u64`. The rest is private to the runtime.
pub const MAP_LEN: i32 = 8;

/// An entry as `map.entry` returns it: the key word, then the value's one or two words.
pub const ENTRY_KEY: i32 = 0;
pub const ENTRY_VALUE: i32 = 8;

/// The fiber context, first argument of every generated function and of every runtime function.
/// Back-edges left in this slice, `i64`; below zero the slice is over.
pub const CTX_BUDGET: i32 = 0;
/// Lowest stack address that generated code may use, `u64`.
pub const CTX_STACK_LIMIT: i32 = 8;
/// Pending trap: 0 for none, else its code or `trap::UNWIND`, `i64`.
pub const CTX_TRAP: i32 = 16;
