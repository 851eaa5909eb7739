//! `print` and its kin.

use super::text;
use sched::output::Output;
use sched::{fiber, stderr, sys, wait};
use values::ctx::{Ctx, entry};
use values::object::Obj;

fn line(ctx: &mut Ctx, bytes: &[u8]) {
    if let Err(errno) = fiber::of(ctx).shard().out.line(bytes) {
        ctx.raise(abi::trap::IO, &sys::text(errno));
        return;
    }
    wait::for_output(ctx, |out| !out.is_full());
}

extern "C" fn print(ctx: *mut Ctx, t: *const Obj) {
    entry(ctx, |ctx| {
        if let Some(bytes) = text(ctx, t) {
            line(ctx, bytes);
        }
    });
}

extern "C" fn print_int(ctx: *mut Ctx, n: i64) {
    entry(ctx, |ctx| line(ctx, n.to_string().as_bytes()));
}

extern "C" fn print_err(ctx: *mut Ctx, t: *const Obj) {
    entry(ctx, |ctx| {
        let Some(bytes) = text(ctx, t) else { return };
        // What was printed before comes out before.
        wait::for_output(ctx, Output::is_empty);
        if ctx.trap == 0 {
            wait::for_errors(ctx);
        }
        if ctx.trap != 0 {
            return;
        }
        let mut out = Vec::with_capacity(bytes.len() + 1);
        out.extend_from_slice(bytes);
        out.push(b'\n');
        if let Err(errno) = stderr::write(&out) {
            ctx.raise(abi::trap::IO, &sys::text(errno));
        }
    });
}

pub fn functions() -> Vec<(&'static str, *const u8)> {
    vec![("print", print as *const u8), ("print_int", print_int as *const u8), ("print_err", print_err as *const u8)]
}
