//! Doubles for the runtime's functions: enough behaviour to observe what generated code asks for.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use abi::layout;
use values::ctx::{Ctx, Frame};

thread_local! {
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
    static RELEASED: RefCell<Vec<i64>> = const { RefCell::new(Vec::new()) };
    static YIELDS: Cell<u32> = const { Cell::new(0) };
    static STOP_AT_YIELD: Cell<bool> = const { Cell::new(false) };
    static TEXTS: RefCell<Vec<Box<[u64]>>> = const { RefCell::new(Vec::new()) };
}

/// Text of the last trap.
pub(crate) fn message() -> String {
    MESSAGE.with_borrow(Clone::clone)
}
/// Frames of the last recorded trap, innermost first.
pub(crate) fn frames() -> Vec<Frame> {
    FRAMES.take()
}
pub(crate) fn released() -> Vec<i64> {
    RELEASED.take()
}
pub(crate) fn yields() -> u32 {
    YIELDS.replace(0)
}
/// Makes the next yield leave an unwind, as a stop of the program does.
pub(crate) fn stop_at_yield() {
    STOP_AT_YIELD.set(true);
}

fn word(at: i64, offset: i32) -> u64 {
    let base = std::ptr::with_exposed_provenance::<u8>(at as usize);
    // SAFETY: tests pass objects, or frames of the running stack, that reach to `offset`.
    unsafe { base.offset(offset as isize).cast::<u64>().read() }
}

/// The bytes of a text.
pub(crate) fn bytes(text: i64) -> Vec<u8> {
    let len = word(text, layout::TEXT_LEN) as i32;
    (0..len).map(|i| (word(text, layout::TEXT_DATA + (i & !7)) >> (8 * (i & 7))) as u8).collect()
}

fn text(text: &str) -> i64 {
    let mut object = vec![0u64; 4 + text.len() / 8];
    object[0] = 1;
    object[1] = text.len() as u64;
    for (i, byte) in text.bytes().enumerate() {
        object[3 + i / 8] |= u64::from(byte) << (8 * (i % 8));
    }
    let mut object = object.into_boxed_slice();
    let at = object.as_mut_ptr().expose_provenance() as i64;
    TEXTS.with_borrow_mut(|texts| texts.push(object));
    at
}

fn raise(ctx: *mut Ctx, code: i64, message: &str) {
    // SAFETY: generated code passes the context that the test gave it.
    let ctx = unsafe { &mut *ctx };
    if ctx.trap == 0 {
        ctx.trap = code;
        ctx.trap_recorded = false;
        MESSAGE.with_borrow_mut(|m| *m = message.to_string());
    }
}

extern "C" fn trap_raise(ctx: *mut Ctx, code: i64, text: i64) {
    raise(ctx, code, &String::from_utf8(bytes(text)).unwrap());
}

/// Walks frame pointers as the runtime does: up to the first return address outside generated code.
extern "C" fn trap_site(ctx: *mut Ctx, address: u64, fp: i64) {
    // SAFETY: as in `raise`.
    let ctx = unsafe { &mut *ctx };
    assert_ne!(ctx.trap, 0);
    if ctx.trap_recorded {
        return;
    }
    ctx.trap_recorded = true;
    // SAFETY: the test's image lives as long as the process.
    let image = unsafe { &*ctx.image };
    let mut frames = Vec::new();
    let (mut address, mut fp) = (address, fp);
    while let Some(site) = image.offset(address).and_then(|offset| image.site(offset)) {
        frames.push(Frame { func: site.func, line: site.line });
        address = word(fp, 8);
        fp = word(fp, 0) as i64;
    }
    let _ = FRAMES.replace(frames);
}

extern "C" fn sched_yield(ctx: *mut Ctx) {
    YIELDS.set(YIELDS.get() + 1);
    // SAFETY: as in `raise`.
    unsafe { (*ctx).budget = 100 };
    if STOP_AT_YIELD.replace(false) {
        raise(ctx, abi::trap::UNWIND, "stop");
    }
}

/// Called where the index is out of range only.
extern "C" fn byte_at(ctx: *mut Ctx, _: i64, _: i64) -> i64 {
    raise(ctx, abi::trap::BOUNDS, abi::trap::BYTE_INDEX);
    0
}

extern "C" fn sched_overflow(ctx: *mut Ctx) {
    raise(ctx, abi::trap::STACK, abi::trap::STACK_OVERFLOW);
}

extern "C" fn rt_released(_: *mut Ctx, object: i64) {
    RELEASED.with_borrow_mut(|released| released.push(object));
}

extern "C" fn concat(_: *mut Ctx, parts: i64, number: i64) -> i64 {
    let mut out = String::new();
    for i in 0..number as i32 {
        let value = word(parts, 16 * i + 8);
        match word(parts, 16 * i) as i64 {
            abi::symbols::PART_TEXT => out.push_str(&String::from_utf8(bytes(value as i64)).unwrap()),
            abi::symbols::PART_INT => out.push_str(&(value as i64).to_string()),
            abi::symbols::PART_FLOAT => out.push_str(&f64::from_bits(value).to_string()),
            _ => out.push_str(if value == 0 { "false" } else { "true" }),
        }
    }
    text(&out)
}

extern "C" fn append(ctx: *mut Ctx, into: i64, parts: i64, number: i64) -> i64 {
    let tail = concat(ctx, parts, number);
    text(&(String::from_utf8(bytes(into)).unwrap() + &String::from_utf8(bytes(tail)).unwrap()))
}

#[repr(C)]
struct Words(i64, i64);
#[repr(C)]
pub(crate) struct WordFloat(i64, f64);

/// Two words: x - 1 and x + 1.
extern "C" fn parse_int(_: *mut Ctx, x: i64) -> Words {
    Words(x - 1, x + 1)
}
extern "C" fn float(_: *mut Ctx, x: i64) -> f64 {
    x as f64
}
extern "C" fn trunc(ctx: *mut Ctx, x: f64) -> i64 {
    if x.is_nan() {
        raise(ctx, abi::trap::BOUNDS, "trunc");
        return 77;
    }
    x as i64
}
/// A word and a Float, as no symbol gives yet.
pub(crate) extern "C" fn word_float(_: *mut Ctx, x: i64) -> WordFloat {
    WordFloat(x + 1, x as f64 / 2.0)
}

pub(crate) fn functions() -> HashMap<&'static str, *const u8> {
    HashMap::from([
        ("trap.raise", trap_raise as *const u8),
        ("trap.site", trap_site as *const u8),
        ("sched.yield", sched_yield as *const u8),
        ("sched.overflow", sched_overflow as *const u8),
        ("byte_at", byte_at as *const u8),
        ("rt.released", rt_released as *const u8),
        ("text.concat", concat as *const u8),
        ("text.append", append as *const u8),
        ("parse_int", parse_int as *const u8),
        ("float", float as *const u8),
        ("trunc", trunc as *const u8),
    ])
}
