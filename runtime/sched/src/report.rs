//! Reports of uncaught traps, each written to stderr in one piece.

use crate::{shim, stderr};
use abi::layout;
use values::ctx::{Ctx, Image};
use values::object::Obj;
use values::trace;

/// Number of the class of a message; none for nil and for builtin values.
#[must_use]
pub fn class_index(msg: *const Obj) -> Option<u32> {
    // SAFETY: null or a live message, whose header is readable.
    unsafe { msg.as_ref() }.and_then(|msg| msg.kind.checked_sub(layout::FIRST_CLASS))
}

/// Name of the class of a message.
#[must_use]
pub fn class_of(image: &Image, msg: *const Obj) -> String {
    if msg.is_null() {
        return "nothing".into();
    }
    let class = class_index(msg).and_then(|i| image.shapes.classes.get(i as usize));
    class.map_or_else(|| "a builtin value".to_string(), |c| c.name.clone())
}

/// The report of a trap that left an actor's `receive`, with the line about the actor. Clears the pending trap.
pub fn fiber_trap(ctx: &mut Ctx, of: &str) {
    let mut out = trace::report_actor(ctx);
    out.extend_from_slice(of.as_bytes());
    out.push(b'\n');
    finish(ctx, &out);
}

/// The report of a trap that left `main`. Clears the pending trap.
pub fn main_trap(ctx: &mut Ctx) {
    let out = trace::report_main(ctx);
    finish(ctx, &out);
}

fn finish(ctx: &mut Ctx, out: &[u8]) {
    stderr::report(out);
    let msg = std::mem::replace(&mut ctx.trap_msg, std::ptr::null_mut());
    shim::release(ctx, msg);
    ctx.trap = 0;
    ctx.trap_frames.clear();
}
