//! JSON, structural equality and class names: functions over values of any type.

use super::{Ptr, give_way, making, symbol_table, text_or_empty};
use abi::layout::FIRST_CLASS;
use abi::trap;
use values::ctx::{Ctx, entry};
use values::object::{self, Obj};
use values::{decode, encode, equal, text};

symbol_table! {
    "json.encode" = json_encode,
    "json.decode" = json_decode,
    "assert_eq" = assert_eq,
    "class_name" = class_name,
}

// SAFETY, for the whole module: generated code passes the context of the running fiber and live values of the types
// that it names.

pub(super) extern "C" fn json_encode(ctx: *mut Ctx, ty: u64, first: u64, second: u64) -> *mut Obj {
    // SAFETY: see the module.
    making(ctx, |ctx| Ptr(unsafe { encode::encode(ctx, ty as u32, first, second) })).0
}

pub(super) extern "C" fn json_decode(ctx: *mut Ctx, ty: u64, document: *mut Obj) -> *mut Obj {
    // SAFETY: see the module.
    making(ctx, |ctx| Ptr(unsafe { decode::decode(ctx, ty as u32, document, give_way) })).0
}

pub(super) extern "C" fn assert_eq(ctx: *mut Ctx, ty: u64, a: u64, a2: u64, b: u64, b2: u64) {
    // SAFETY: see the module.
    making(ctx, |ctx| unsafe {
        let ty = ty as u32;
        if equal::equal(ctx, ty, [a, a2], [b, b2]) {
            return;
        }
        let mut msg = b"assertion failed: ".to_vec();
        msg.extend(encode::describe(ctx, ty, a, a2));
        msg.extend(b" != ");
        msg.extend(encode::describe(ctx, ty, b, b2));
        let msg = text::new(ctx, &msg);
        if !msg.is_null() && !ctx.raise_text(trap::EXPLICIT, msg) {
            object::release(ctx, msg);
        }
    });
}

pub(super) extern "C" fn class_name(ctx: *mut Ctx, obj: *mut Obj) -> *mut Obj {
    entry(ctx, |ctx| {
        let mut name: &[u8] = b"";
        if !obj.is_null() {
            // SAFETY: see the module.
            let kind = unsafe { (*obj).kind };
            let class = object::shapes(ctx).classes.get(kind.wrapping_sub(FIRST_CLASS) as usize);
            name = class.map_or(b"", |c| c.name.as_bytes());
        }
        Ptr(text_or_empty(ctx, name))
    })
    .0
}
