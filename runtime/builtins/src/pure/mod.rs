//! Memory, traps, text, containers, numbers, digests, JSON: functions that do not touch the system, and wait for nothing;
//! digests of much data, the decoding of long JSON and base64 let other fibers run in between.
//!
//! Every function takes the fiber's context and what its row in `abi::symbols` says. All but a few run inside
//! `values::ctx::entry`; those that do not say why they cannot panic.

mod bytes;
mod containers;
mod json;
mod memory;
mod numbers;
mod text;
mod traps;

#[cfg(test)]
mod tests;

use crate::results::{Pair, Ptr};
use values::ctx::{Ctx, entry};
use values::cycles;
use values::object::Obj;

/// Name and address of a runtime function.
type Entry = (&'static str, *const u8);

/// Name and address of each function of this module.
pub fn functions() -> Vec<Entry> {
    let modules = [
        memory::FUNCTIONS as fn() -> Vec<Entry>,
        traps::FUNCTIONS,
        text::FUNCTIONS,
        containers::FUNCTIONS,
        json::FUNCTIONS,
        bytes::FUNCTIONS,
        numbers::FUNCTIONS,
    ];
    modules.into_iter().flat_map(|list| list()).collect()
}

/// The function list of a module.
macro_rules! symbol_table {
    ($($name:literal = $function:path),* $(,)?) => {
        /// Name and address of each function of this module.
        pub(super) const FUNCTIONS: fn() -> Vec<super::Entry> = || vec![$(($name, $function as *const u8)),*];
    };
}
use symbol_table;

/// `entry` for functions that make something and change nothing: without memory they run again after a collection.
fn making<R: Default>(ctx: *mut Ctx, f: impl Fn(&mut Ctx) -> R) -> R {
    entry(ctx, |ctx| cycles::with_relief(ctx, &f))
}

/// The turn of other fibers in the midst of long work (`values::ctx::GiveWay`).
fn give_way(ctx: &mut Ctx) -> bool {
    sched::park::yield_now(ctx);
    ctx.trap == 0
}

/// `obj` with one more reference, for results that are an argument.
///
/// # Safety
/// `obj` is null or a live object of this shard.
unsafe fn retained(obj: *mut Obj) -> *mut Obj {
    // SAFETY: the caller's promise.
    unsafe { values::object::retain(obj) };
    obj
}

/// Makes a text where no trap may arise: the empty text when memory is short.
fn text_or_empty(ctx: &mut Ctx, bytes: &[u8]) -> *mut Obj {
    let pending = ctx.trap;
    let obj = values::text::new(ctx, bytes);
    if !obj.is_null() {
        return obj;
    }
    if pending == 0 {
        ctx.trap = 0;
        // The text of trap 4 is immortal.
        ctx.trap_msg = std::ptr::null_mut();
    }
    values::text::empty()
}

/// Clamps the range `start`, `n` to `len` bytes; negative values count as 0.
fn clamped(len: usize, start: i64, n: i64) -> std::ops::Range<usize> {
    let from = usize::try_from(start.max(0)).unwrap_or(usize::MAX).min(len);
    let n = usize::try_from(n.max(0)).unwrap_or(usize::MAX).min(len - from);
    from..from + n
}
