//! The environment, the stop latch, live counters, the kernel's random source.

use super::{Pair, Ptr, shim, text};
use sched::{fiber, stop};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use values::ctx::{Ctx, entry};
use values::object::{Claim, Obj};

extern "C" fn get(ctx: *mut Ctx, name: *const Obj) -> *mut Obj {
    entry(ctx, |ctx| {
        let Some(name) = text(ctx, name) else { return Ptr::default() };
        // Names that the environment cannot hold are unset.
        if name.is_empty() || name.iter().any(|b| matches!(b, 0 | b'=')) {
            return Ptr::default();
        }
        match std::env::var_os(std::ffi::OsStr::from_bytes(name)) {
            Some(value) => Ptr(shim::text(ctx, &value.into_vec())),
            None => Ptr::default(),
        }
    })
    .0
}

extern "C" fn stopping(ctx: *mut Ctx) -> i64 {
    entry(ctx, |_| i64::from(stop::stopping()))
}

extern "C" fn stat(ctx: *mut Ctx, name: *const Obj) -> Pair {
    entry(ctx, |ctx| {
        let Some(name) = text(ctx, name) else { return Pair::default() };
        let value = std::str::from_utf8(name).ok().and_then(|n| fiber::of(ctx).shard().stat(n));
        value.map_or_else(Pair::default, |v| Pair(1, v.cast_unsigned()))
    })
}

extern "C" fn random_bytes(ctx: *mut Ctx, n: i64) -> *mut Obj {
    entry(ctx, |ctx| {
        let Ok(n) = usize::try_from(n) else {
            ctx.raise(abi::trap::BOUNDS, "negative count");
            return Ptr::default();
        };
        let (mut buf, mut claim) = (Vec::new(), Claim::default());
        if !claim.grow(n) || buf.try_reserve_exact(n).is_err() {
            ctx.raise(abi::trap::OOM, abi::trap::OUT_OF_MEMORY);
            return Ptr::default();
        }
        ctx.works(n);
        buf.resize(n, 0);
        match getrandom::fill(&mut buf) {
            Ok(()) => Ptr(shim::new_bytes(ctx, &buf)),
            Err(e) => {
                ctx.raise(abi::trap::IO, &e.raw_os_error().map_or_else(|| e.to_string(), sched::sys::text));
                Ptr::default()
            }
        }
    })
    .0
}

pub fn functions() -> Vec<(&'static str, *const u8)> {
    vec![
        ("env.get", get as *const u8),
        ("env.stopping", stopping as *const u8),
        ("env.stat", stat as *const u8),
        ("random_bytes", random_bytes as *const u8),
    ]
}
