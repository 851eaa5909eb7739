//! Raising traps, and what `catch` and `trap_stack` read of them.

use super::{Ptr, making, retained, symbol_table, text_or_empty};
use values::ctx::{Ctx, Image, entry};
use values::object::{self, Obj};
use values::{text, trace};

symbol_table! {
    "trap.raise" = raise,
    "trap.site" = site,
    "trap.catchable" = catchable,
    "trap.code" = code,
    "trap.line" = line,
    "trap.method" = method,
    "trap.msg" = msg,
    "trap.clear" = clear,
    "trap_stack" = stack,
}

fn image<'a>(ctx: &Ctx) -> &'a Image {
    // SAFETY: the image outlives every context.
    unsafe { &*ctx.image }
}

pub(super) extern "C" fn raise(ctx: *mut Ctx, code: i64, msg: *mut Obj) {
    entry(ctx, |ctx| {
        // SAFETY: generated code passes a live text; null stands for the empty one.
        unsafe {
            let msg = if msg.is_null() { text::empty() } else { retained(msg) };
            if !ctx.raise_text(code, msg) {
                object::release(ctx, msg);
            }
        }
    });
}

pub(super) extern "C" fn site(ctx: *mut Ctx, address: u64, fp: u64) {
    // SAFETY: generated code passes its own frame pointer, and keeps frame pointers throughout.
    entry(ctx, |ctx| unsafe { trace::record(ctx, address, fp) });
}

pub(super) extern "C" fn catchable(ctx: *mut Ctx) -> u64 {
    entry(ctx, |ctx| u64::from(ctx.trap != 0 && ctx.trap != abi::trap::UNWIND))
}

pub(super) extern "C" fn code(ctx: *mut Ctx) -> i64 {
    entry(ctx, |ctx| ctx.trap)
}

pub(super) extern "C" fn line(ctx: *mut Ctx) -> i64 {
    entry(ctx, |ctx| i64::from(trace::line(&ctx.trap_frames)))
}

pub(super) extern "C" fn method(ctx: *mut Ctx) -> *mut Obj {
    entry(ctx, |ctx| {
        let name = trace::method(image(ctx), &ctx.trap_frames);
        Ptr(text_or_empty(ctx, name.as_bytes()))
    })
    .0
}

pub(super) extern "C" fn msg(ctx: *mut Ctx) -> *mut Obj {
    entry(ctx, |ctx| {
        // SAFETY: the pending trap owns its text.
        Ptr(if ctx.trap_msg.is_null() { text::empty() } else { unsafe { retained(ctx.trap_msg) } })
    })
    .0
}

pub(super) extern "C" fn clear(ctx: *mut Ctx) {
    entry(ctx, |ctx| {
        let msg = std::mem::replace(&mut ctx.trap_msg, std::ptr::null_mut());
        // SAFETY: the trap owned its text.
        unsafe { object::release(ctx, msg) };
        ctx.trap = 0;
        ctx.trap_recorded = false;
        ctx.caught_frames = std::mem::take(&mut ctx.trap_frames);
    });
}

pub(super) extern "C" fn stack(ctx: *mut Ctx) -> *mut Obj {
    making(ctx, |ctx| {
        let lines = trace::lines(image(ctx), &ctx.caught_frames);
        Ptr(text::new(ctx, lines.as_bytes()))
    })
    .0
}
