//! Output, clocks, environment, files, sockets, child processes, actors: functions that wait or touch the system. Each
//! checks its arguments and hands over to `sched`; every one runs inside `values::ctx::entry`.

mod actors;
mod env;
mod fs;
mod net;
mod output;
mod proc;
mod shim;
mod time;

use crate::results::{Pair, Ptr};
use values::ctx::Ctx;
use values::object::Obj;

/// The bytes of a Text argument, borrowed for the call; `None` with a pending trap 6 for nil.
fn text<'a>(ctx: &mut Ctx, t: *const Obj) -> Option<&'a [u8]> {
    if t.is_null() {
        ctx.raise(abi::trap::BOUNDS, abi::trap::NULL_TEXT);
        return None;
    }
    // SAFETY: generated code passes a live text and keeps it for the duration of the call.
    Some(unsafe { shim::bytes(t) })
}

/// A path, host or name: a text without NUL bytes of at most 4095 bytes; `None` with a pending trap 6.
fn path<'a>(ctx: &mut Ctx, t: *const Obj) -> Option<&'a [u8]> {
    let bytes = text(ctx, t)?;
    let refusal = if bytes.len() > 4095 {
        "text too long for a path"
    } else if memchr::memchr(0, bytes).is_some() {
        "nul byte in path"
    } else {
        return Some(bytes);
    };
    ctx.raise(abi::trap::BOUNDS, refusal);
    None
}

/// Name and address of each function of this module.
pub fn functions() -> Vec<(&'static str, *const u8)> {
    let mut all = Vec::new();
    for list in [actors::functions(), env::functions(), fs::functions(), net::functions(), output::functions()] {
        all.extend(list);
    }
    all.extend(proc::functions());
    all.extend(time::functions());
    all
}

#[cfg(test)]
mod tests;
