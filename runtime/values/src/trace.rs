//! Stacks of traps: recording them by walking frame pointers, and their text in reports.

use crate::ctx::{Ctx, Frame, Image, Site};
use abi::trap;
use std::collections::VecDeque;
use std::fmt::Write as _;

/// Frames kept and printed from the inner end of a long stack.
const FIRST: usize = 30;
/// Frames kept and printed from its outer end.
const LAST: usize = 10;
/// In the place of the frames of a long stack that were not kept; `line` is their number.
const LEFT_OUT: u32 = u32::MAX;

/// Sites remembered during one walk: a deep stack is recursion, the same few return addresses over and over.
const REMEMBERED: usize = 64;

/// Records the stack of the pending trap, once: the frame of the call that returns to `address`, then its callers in
/// generated code.
///
/// # Safety
/// `fp` is null or the frame pointer of a frame on the fiber's stack; each frame holds its caller's frame pointer and,
/// behind it, its return address, and lies below `ctx.stack_base`.
pub unsafe fn record(ctx: &mut Ctx, address: u64, fp: u64) {
    if ctx.trap == 0 || ctx.trap == trap::UNWIND || ctx.trap_recorded {
        return;
    }
    ctx.trap_recorded = true;
    let mut first = std::mem::take(&mut ctx.trap_frames);
    first.clear();
    let mut last = VecDeque::new();
    let mut left_out = 0u32;
    let mut known: [Option<Site>; REMEMBERED] = [None; REMEMBERED];
    // SAFETY: the image outlives every context.
    let image = unsafe { &*ctx.image };
    let (mut address, mut fp) = (address, fp);
    while let Some(offset) = image.offset(address) {
        #[allow(clippy::indexing_slicing, reason = "the remainder is below the length")]
        let slot = &mut known[(offset >> 2) as usize % REMEMBERED];
        if slot.is_none_or(|s| s.offset != offset) {
            *slot = image.site(offset);
        }
        let Some(site) = *slot else { break };
        let frame = Frame { func: site.func, line: site.line };
        if first.len() < FIRST {
            first.push(frame);
        } else {
            if last.len() == LAST {
                let _ = last.pop_front();
                left_out = left_out.saturating_add(1);
            }
            last.push_back(frame);
        }
        if fp == 0 || !fp.is_multiple_of(8) || fp.checked_add(16).is_none_or(|end| end > ctx.stack_base) {
            break;
        }
        // SAFETY: the frame lies on the fiber's stack, by the caller's promise and the check above.
        let (caller, back) = unsafe { (*(fp as *const u64), *(fp as *const u64).add(1)) };
        address = back;
        // A frame that does not lie above the last one ends the walk.
        fp = if caller > fp { caller } else { 0 };
    }
    if left_out > 0 {
        first.push(Frame { func: LEFT_OUT, line: left_out });
    }
    first.extend(last);
    ctx.trap_frames = first;
}

/// The frame lines, innermost first, joined by line feeds: `  at name (file:line)`.
#[must_use]
pub fn lines(image: &Image, frames: &[Frame]) -> String {
    let mut out = String::new();
    for frame in frames {
        let func = image.funcs.get(frame.func as usize);
        if func.is_some_and(|f| f.display.is_empty()) {
            continue; // made by the compiler
        }
        if !out.is_empty() {
            out.push('\n');
        }
        // Writing to a `String` cannot fail.
        let _ = match func {
            _ if frame.func == LEFT_OUT => write!(out, "  ... {} frames left out", frame.line),
            Some(f) => write!(out, "  at {} ({}:{})", f.display, f.file, frame.line),
            None => write!(out, "  at ? (?:{})", frame.line),
        };
    }
    out
}

/// The bare name of the function or method that trapped; empty when no stack was recorded.
#[must_use]
pub fn method<'a>(image: &'a Image, frames: &[Frame]) -> &'a str {
    let display = frames.first().and_then(|f| image.funcs.get(f.func as usize)).map_or("", |f| f.display.as_str());
    // The name of a test is any text.
    if display.starts_with("test \"") { display } else { display.rsplit('.').next().unwrap_or(display) }
}

/// The line that trapped; 0 when no stack was recorded.
#[must_use]
pub fn line(frames: &[Frame]) -> u32 {
    frames.first().map_or(0, |f| f.line)
}

/// Report of the pending trap when nothing in `main` caught it: first line, then the stack; ends with a line feed.
#[must_use]
pub fn report_main(ctx: &Ctx) -> Vec<u8> {
    // SAFETY: the image outlives every context.
    let image = unsafe { &*ctx.image };
    let frames = &ctx.trap_frames;
    let head = format!("trap {} in {} at line {}: ", ctx.trap, method(image, frames), line(frames));
    report(ctx, image, &head)
}

/// Report of the pending trap when nothing in an actor caught it, without the line of classes that the scheduler adds.
#[must_use]
pub fn report_actor(ctx: &Ctx) -> Vec<u8> {
    // SAFETY: the image outlives every context.
    let image = unsafe { &*ctx.image };
    let frames = &ctx.trap_frames;
    let head = format!("fiber trap {} at {}:{}: ", ctx.trap, method(image, frames), line(frames));
    report(ctx, image, &head)
}

fn report(ctx: &Ctx, image: &Image, head: &str) -> Vec<u8> {
    let mut out = head.as_bytes().to_vec();
    // SAFETY: a pending trap owns its text.
    out.extend_from_slice(unsafe { crate::text::bytes(ctx.trap_msg) });
    out.push(b'\n');
    if !ctx.trap_frames.is_empty() {
        out.extend_from_slice(lines(image, &ctx.trap_frames).as_bytes());
        out.push(b'\n');
    }
    out
}
