//! What the scheduler needs of `values`: texts, release, messages between actors. Thin, so that the crate can be told
//! apart from its neighbour in one place.

use abi::layout;
use std::sync::atomic::Ordering;
use values::ctx::Ctx;
use values::object::Obj;

/// The bytes of a Text or Bytes object; empty for null.
///
/// # Safety
/// `t` is null or a live Text or Bytes, which stays alive and unchanged for `'a`.
#[must_use]
pub unsafe fn bytes<'a>(t: *const Obj) -> &'a [u8] {
    if t.is_null() {
        return &[];
    }
    let p = t.cast::<u8>();
    // SAFETY: the caller's promise; offsets are the contract of `abi::layout`.
    unsafe {
        let len = p.offset(layout::TEXT_LEN as isize).cast::<u64>().read();
        std::slice::from_raw_parts(p.offset(layout::TEXT_DATA as isize), usize::try_from(len).unwrap_or(0))
    }
}

/// Drops one reference of `o`, which may be null.
pub fn release(_ctx: &mut Ctx, o: *mut Obj) {
    if o.is_null() {
        return;
    }
    // SAFETY: the caller hands over one reference.
    let count = unsafe { &(*o).count };
    let n = count.load(Ordering::Relaxed);
    if n > 0 {
        count.store(n - 1, Ordering::Relaxed);
    }
}

/// A fresh Text; null with a pending trap 4 when memory is short.
pub fn text(ctx: &mut Ctx, bytes: &[u8]) -> *mut Obj {
    values::text::new(ctx, bytes)
}
