//! Reports of uncaught traps, each written to stderr in one piece.

use crate::{shim, sys};
use abi::layout;
use std::fmt::Write;
use values::ctx::{Ctx, Frame, Image};
use values::object::Obj;

/// Frames printed in full; of longer stacks the first 30 and the last 10.
const MOST: usize = 40;

/// Name of the class of a message.
#[must_use]
pub fn class_of(image: &Image, msg: *const Obj) -> String {
    if msg.is_null() {
        return "nothing".into();
    }
    // SAFETY: a live message, whose header is readable.
    let kind = unsafe { (*msg).kind };
    let class = kind.checked_sub(layout::FIRST_CLASS).and_then(|i| image.shapes.classes.get(i as usize));
    class.map_or_else(|| "a builtin value".to_string(), |c| c.name.clone())
}

/// `fiber trap CODE at METHOD:LINE: MESSAGE`, the stack, the line about the actor. Clears the pending trap.
pub fn fiber_trap(ctx: &mut Ctx, image: &Image, of: &str) {
    let mut out = String::new();
    let (method, line) = place(ctx, image);
    let _ = write!(out, "fiber trap {} at {method}:{line}: ", ctx.trap);
    finish(ctx, image, out.into_bytes(), Some(of));
}

/// `trap CODE in METHOD at line N: MESSAGE` and the stack. Clears the pending trap.
pub fn main_trap(ctx: &mut Ctx, image: &Image) {
    let (method, line) = place(ctx, image);
    let out = format!("trap {} in {method} at line {line}: ", ctx.trap);
    finish(ctx, image, out.into_bytes(), None);
}

/// Bare name of the innermost function and the line in it.
fn place(ctx: &Ctx, image: &Image) -> (String, u32) {
    let frame = ctx.trap_frames.first();
    let func = frame.and_then(|f| image.funcs.get(f.func as usize));
    let name = func.map_or("?", |f| f.display.rsplit('.').next().unwrap_or("?"));
    (name.to_string(), frame.map_or(0, |f| f.line))
}

fn finish(ctx: &mut Ctx, image: &Image, mut out: Vec<u8>, of: Option<&str>) {
    // SAFETY: the context owns the pending trap's text.
    out.extend_from_slice(unsafe { shim::bytes(ctx.trap_msg) });
    out.push(b'\n');
    let frames = &ctx.trap_frames;
    if frames.len() > MOST {
        frame_lines(&mut out, image, &frames[..30]);
        out.extend_from_slice(format!("  ... {} frames left out\n", frames.len() - MOST).as_bytes());
        frame_lines(&mut out, image, &frames[frames.len() - 10..]);
    } else {
        frame_lines(&mut out, image, frames);
    }
    if let Some(of) = of {
        out.extend_from_slice(of.as_bytes());
        out.push(b'\n');
    }
    let _ = sys::write_all(2, &out);
    let msg = std::mem::replace(&mut ctx.trap_msg, std::ptr::null_mut());
    shim::release(ctx, msg);
    ctx.trap = 0;
    ctx.trap_frames.clear();
}

fn frame_lines(out: &mut Vec<u8>, image: &Image, frames: &[Frame]) {
    for f in frames {
        if let Some(func) = image.funcs.get(f.func as usize) {
            out.extend_from_slice(format!("  at {} ({}:{})\n", func.display, func.file, f.line).as_bytes());
        }
    }
}
