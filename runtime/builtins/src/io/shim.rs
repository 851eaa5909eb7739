//! What the I/O builtins need of `values`: texts, byte strings, lists of texts, objects of a class. Thin, so that the
//! crate can be told apart from its neighbour in one place.

use abi::layout;
use values::ctx::Ctx;
use values::object::Obj;

pub use sched::shim::{bytes, text};

/// A fresh Bytes object; null with a pending trap 4 when memory is short.
pub fn new_bytes(ctx: &mut Ctx, b: &[u8]) -> *mut Obj {
    let t = values::text::new(ctx, b);
    if !t.is_null() {
        // SAFETY: a fresh object that nothing else refers to.
        unsafe { (*t).kind = layout::KIND_BYTES };
    }
    t
}

/// A fresh `multi Text`; null with a pending trap 4 when memory is short.
pub fn list_of_texts(ctx: &mut Ctx, items: &[Vec<u8>]) -> *mut Obj {
    let _ = items;
    ctx.raise(abi::trap::EXPLICIT, "lists are not available yet");
    std::ptr::null_mut()
}

/// A fresh object of a class with these fields set, by name; null with a pending trap when it cannot be made.
pub fn object(ctx: &mut Ctx, class: u32, fields: &[(&str, i64)]) -> *mut Obj {
    let _ = (class, fields);
    ctx.raise(abi::trap::EXPLICIT, "objects are not available yet");
    std::ptr::null_mut()
}
