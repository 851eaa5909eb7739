//! Child processes: arguments and results of `sched::proc`.

use super::{Pair, Ptr, shim, text};
use sched::proc::{self, Bounds};
use std::ffi::CString;
use values::ctx::{Ctx, entry};
use values::multi;
use values::object::{self, Obj};

/// The command and its arguments, copied for the helper thread; `None` with a pending trap 6.
fn argv(ctx: &mut Ctx, command: *const Obj, args: *mut Obj) -> Option<Vec<CString>> {
    let mut all = vec![argument(ctx, command)?];
    if args.is_null() {
        ctx.raise(abi::trap::BOUNDS, abi::trap::NULL_RECEIVER);
        return None;
    }
    // SAFETY: generated code passes a live list and keeps it for the call; nothing changes it before the copy is made.
    let words = unsafe { multi::words(ctx, args) }.to_vec();
    for word in words {
        all.push(argument(ctx, std::ptr::with_exposed_provenance(word as usize))?);
    }
    Some(all)
}

fn argument(ctx: &mut Ctx, t: *const Obj) -> Option<CString> {
    let copy = CString::new(text(ctx, t)?).ok();
    if copy.is_none() {
        ctx.raise(abi::trap::BOUNDS, "nul byte in argument");
    }
    copy
}

fn class_index(class: i64) -> u32 {
    u32::try_from(class).unwrap_or(u32::MAX)
}

/// A `Proc`; null with a pending trap 4 when memory is short.
fn ran(ctx: &mut Ctx, class: i64, ran: &proc::Ran) -> *mut Obj {
    let mut texts = [std::ptr::null_mut(); 2];
    for (place, bytes) in texts.iter_mut().zip([&ran.out, &ran.err]) {
        *place = shim::text(ctx, bytes);
    }
    let [out, err] = texts;
    if !out.is_null() && !err.is_null() {
        let fields = [
            ("code", i64::from(ran.code)),
            ("out", out.expose_provenance().cast_signed() as i64),
            ("err", err.expose_provenance().cast_signed() as i64),
        ];
        let o = shim::object(ctx, class_index(class), &fields);
        if !o.is_null() {
            return o;
        }
    }
    for t in texts {
        // SAFETY: null or the only reference.
        unsafe { object::release(ctx, t) };
    }
    std::ptr::null_mut()
}

fn run_with(ctx: &mut Ctx, class: i64, command: *const Obj, args: *mut Obj, bounds: Bounds) -> Ptr {
    let Some(argv) = argv(ctx, command, args) else { return Ptr::default() };
    match proc::run(ctx, argv, bounds) {
        Some(r) => Ptr(ran(ctx, class, &r)),
        None => Ptr::default(),
    }
}

extern "C" fn run(ctx: *mut Ctx, class: i64, command: *const Obj, args: *mut Obj) -> *mut Obj {
    entry(ctx, |ctx| run_with(ctx, class, command, args, Bounds::default())).0
}

extern "C" fn run_dl(
    ctx: *mut Ctx,
    class: i64,
    command: *const Obj,
    args: *mut Obj,
    ms: i64,
    out_cap: i64,
    err_cap: i64,
) -> *mut Obj {
    entry(ctx, |ctx| run_with(ctx, class, command, args, Bounds { ms, out_cap, err_cap })).0
}

/// A `Child`. When there is no memory for it nobody would know of the child.
fn spawn_with(
    ctx: &mut Ctx,
    class: i64,
    command: *const Obj,
    args: *mut Obj,
    terminal: Option<(i64, i64)>,
) -> Option<Ptr> {
    let argv = argv(ctx, command, args)?;
    let child = proc::spawn(ctx, argv, terminal)?;
    let fields = [("id", child.id), ("stdin", child.stdin), ("stdout", child.stdout), ("stderr", child.stderr)];
    let o = shim::object(ctx, class_index(class), &fields);
    if o.is_null() {
        proc::undo(ctx, &child);
    }
    Some(Ptr(o))
}

extern "C" fn spawn(ctx: *mut Ctx, class: i64, command: *const Obj, args: *mut Obj) -> *mut Obj {
    entry(ctx, |ctx| spawn_with(ctx, class, command, args, None).unwrap_or_default()).0
}

extern "C" fn spawn_pty(
    ctx: *mut Ctx,
    class: i64,
    command: *const Obj,
    args: *mut Obj,
    cols: i64,
    rows: i64,
) -> *mut Obj {
    entry(ctx, |ctx| spawn_with(ctx, class, command, args, Some((cols, rows))).unwrap_or_default()).0
}

extern "C" fn wait_dl(ctx: *mut Ctx, id: i64, ms: i64) -> Pair {
    entry(ctx, |ctx| proc::wait(ctx, id, ms).map_or_else(Pair::default, |c| Pair(1, i64::from(c).cast_unsigned())))
}

extern "C" fn signal(ctx: *mut Ctx, id: i64, signal: i64) {
    entry(ctx, |ctx| proc::signal(ctx, id, signal));
}

extern "C" fn resize(ctx: *mut Ctx, id: i64, cols: i64, rows: i64) {
    entry(ctx, |ctx| proc::resize(ctx, id, cols, rows));
}

pub fn functions() -> Vec<(&'static str, *const u8)> {
    vec![
        ("proc.run", run as *const u8),
        ("proc.run_dl", run_dl as *const u8),
        ("proc.spawn", spawn as *const u8),
        ("proc.spawn_pty", spawn_pty as *const u8),
        ("proc.wait_dl", wait_dl as *const u8),
        ("proc.signal", signal as *const u8),
        ("proc.resize", resize as *const u8),
    ]
}
