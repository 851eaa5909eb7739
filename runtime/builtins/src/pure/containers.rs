//! `multi` and `map`.

use super::{Pair, Ptr, making, symbol_table};
use abi::trap;
use values::ctx::{Ctx, entry};
use values::object::Obj;
use values::{cycles, map, multi};

symbol_table! {
    "multi.new" = multi_new,
    "multi.push" = multi_push,
    "multi.pop" = multi_pop,
    "multi.shift" = multi_shift,
    "multi.slice" = multi_slice,
    "multi.sort" = multi_sort,
    "multi.reverse" = multi_reverse,
    "map.new" = map_new,
    "map.find" = map_find,
    "map.slot" = map_slot,
    "map.remove" = map_remove,
    "map.entry" = map_entry,
}

// SAFETY, for the whole module: generated code passes the context of the running fiber, live containers (null traps or
// counts as empty) and values of their types; nothing else uses a container during the call.

/// Raises trap 6 for null; false then.
fn receiver(ctx: &mut Ctx, obj: *mut Obj) -> bool {
    if obj.is_null() {
        ctx.raise(trap::BOUNDS, trap::NULL_RECEIVER);
    }
    !obj.is_null()
}

pub(super) extern "C" fn multi_new(ctx: *mut Ctx, element: u64, hint: i64) -> *mut Obj {
    making(ctx, |ctx| {
        cycles::poll(ctx);
        Ptr(multi::new(ctx, element as u32, hint))
    })
    .0
}

/// Outside `entry`: lengths are bounded before they are computed with, and storage is written through pointers.
pub(super) extern "C" fn multi_push(ctx: *mut Ctx, list: *mut Obj, first: u64, second: u64) {
    // SAFETY: see the module. Nothing is pushed to null, whose element cannot be released for want of its type.
    unsafe {
        if receiver(&mut *ctx, list) {
            let _ = multi::push_with_relief(&mut *ctx, list, first, second);
        }
    }
}

pub(super) extern "C" fn multi_pop(ctx: *mut Ctx, list: *mut Obj) -> Pair {
    // SAFETY: see the module.
    entry(ctx, |ctx| unsafe {
        if !receiver(ctx, list) {
            return Pair::default();
        }
        match multi::pop(ctx, list) {
            Some((first, second)) => Pair(first, second),
            None => {
                ctx.raise(trap::BOUNDS, "`pop` on an empty multi");
                Pair::default()
            }
        }
    })
}

pub(super) extern "C" fn multi_shift(ctx: *mut Ctx, list: *mut Obj) -> Pair {
    // SAFETY: see the module.
    entry(ctx, |ctx| unsafe {
        if !receiver(ctx, list) {
            return Pair::default();
        }
        match multi::shift(ctx, list) {
            Some((first, second)) => Pair(first, second),
            None => {
                ctx.raise(trap::BOUNDS, "`shift` on an empty multi");
                Pair::default()
            }
        }
    })
}

pub(super) extern "C" fn multi_slice(ctx: *mut Ctx, list: *mut Obj, from: i64, to: i64) -> *mut Obj {
    // SAFETY: see the module.
    making(ctx, |ctx| unsafe {
        if !receiver(ctx, list) {
            return Ptr::default();
        }
        Ptr(multi::slice(ctx, list, from, to))
    })
    .0
}

pub(super) extern "C" fn multi_sort(ctx: *mut Ctx, list: *mut Obj) {
    // SAFETY: see the module.
    making(ctx, |ctx| unsafe {
        if receiver(ctx, list) {
            multi::sort(ctx, list);
        }
    });
}

pub(super) extern "C" fn multi_reverse(ctx: *mut Ctx, list: *mut Obj) {
    // SAFETY: see the module.
    entry(ctx, |ctx| unsafe {
        if !list.is_null() {
            multi::reverse(ctx, list);
        }
    });
}

pub(super) extern "C" fn map_new(ctx: *mut Ctx, key: u64, value: u64) -> *mut Obj {
    making(ctx, |ctx| {
        cycles::poll(ctx);
        Ptr(map::new(ctx, key as u32, value as u32))
    })
    .0
}

/// Outside `entry`: the search masks every slot and follows positions that the index holds.
pub(super) extern "C" fn map_find(_: *mut Ctx, map: *mut Obj, key: u64) -> *mut u64 {
    // SAFETY: see the module.
    unsafe { map::find(map, key) }
}

/// Outside `entry` as `map_find`; growth computes with capacities bounded to 2^30.
pub(super) extern "C" fn map_slot(ctx: *mut Ctx, map: *mut Obj, key: u64) -> *mut u64 {
    // SAFETY: see the module.
    unsafe {
        if !receiver(&mut *ctx, map) {
            return std::ptr::null_mut();
        }
        cycles::with_relief(&mut *ctx, |ctx| map::slot(ctx, map, key))
    }
}

pub(super) extern "C" fn map_remove(ctx: *mut Ctx, map: *mut Obj, key: u64) -> u64 {
    // SAFETY: see the module.
    entry(ctx, |ctx| u64::from(unsafe { map::remove(ctx, map, key) }))
}

pub(super) extern "C" fn map_entry(ctx: *mut Ctx, map: *mut Obj, i: i64) -> *mut u64 {
    /// A borrowed address; null by default.
    struct Address(*mut u64);
    impl Default for Address {
        fn default() -> Address {
            Address(std::ptr::null_mut())
        }
    }
    // SAFETY: see the module.
    entry(ctx, |ctx| unsafe {
        let entry = map::entry(ctx, map, i);
        if entry.is_null() {
            ctx.raise(trap::BOUNDS, trap::MAP_SLOT);
        }
        Address(entry)
    })
    .0
}
