//! Conversions between numbers and to text.

use super::{Ptr, making, symbol_table};
use abi::trap;
use values::ctx::{Ctx, entry};
use values::object::Obj;
use values::text;

symbol_table! {
    "float" = float,
    "trunc" = trunc,
    "parse_float" = parse_float,
    "float_to_text" = float_to_text,
    "float_cmp" = float_cmp,
    "sqrt" = sqrt,
}

pub(super) extern "C" fn float(_: *mut Ctx, n: i64) -> f64 {
    n as f64
}

pub(super) extern "C" fn trunc(ctx: *mut Ctx, f: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&f) {
        return f as i64;
    }
    entry(ctx, |ctx| ctx.raise(trap::BOUNDS, "trunc: float has no integer value"));
    0
}

pub(super) extern "C" fn parse_float(ctx: *mut Ctx, t: *mut Obj) -> f64 {
    // SAFETY: generated code passes a live text.
    entry(ctx, |_| codec::float::parse(unsafe { text::bytes(t) }))
}

pub(super) extern "C" fn float_to_text(ctx: *mut Ctx, f: f64) -> *mut Obj {
    making(ctx, |ctx| Ptr(text::new(ctx, codec::float::format(f).as_bytes()))).0
}

pub(super) extern "C" fn sqrt(_: *mut Ctx, f: f64) -> f64 {
    f.sqrt()
}

pub(super) extern "C" fn float_cmp(_: *mut Ctx, a: f64, b: f64) -> i64 {
    codec::float::compare(a, b) as i64
}
