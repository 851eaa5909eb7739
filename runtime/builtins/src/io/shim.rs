//! What the I/O builtins need of `values`, in the form they need it: byte strings, lists of texts, objects of a class.

use values::ctx::Ctx;
use values::cycles::with_relief;
use values::object::{self, Obj};
use values::{multi, text as texts};

pub use sched::shim::{bytes, text};

/// A fresh Bytes object; null with a pending trap 4 when memory is short.
pub fn new_bytes(ctx: &mut Ctx, b: &[u8]) -> *mut Obj {
    with_relief(ctx, |ctx| texts::new_bytes(ctx, b))
}

/// A fresh `multi Text`; null with a pending trap 4 when memory is short.
pub fn list_of_texts(ctx: &mut Ctx, items: &[Vec<u8>]) -> *mut Obj {
    with_relief(ctx, |ctx| try_list(ctx, items))
}

fn try_list(ctx: &mut Ctx, items: &[Vec<u8>]) -> *mut Obj {
    let list = multi::new(ctx, abi::desc::TYPE_TEXT, i64::try_from(items.len()).unwrap_or(0));
    if list.is_null() {
        return list;
    }
    for item in items {
        let t = texts::new(ctx, item);
        // SAFETY: a live list of this function's own; the push consumes the text, also where it fails.
        if t.is_null() || !unsafe { multi::push(ctx, list, t as u64, 0) } {
            // SAFETY: the only reference.
            unsafe { object::release(ctx, list) };
            return std::ptr::null_mut();
        }
    }
    list
}

/// A fresh object of a class with these fields set, by name; null with a pending trap 4 when memory is short.
pub fn object(ctx: &mut Ctx, class: u32, fields: &[(&str, i64)]) -> *mut Obj {
    let o = with_relief(ctx, |ctx| object::new(ctx, class));
    if o.is_null() {
        return o;
    }
    let shapes = object::shapes(ctx);
    let Some(desc) = shapes.classes.get(class as usize) else { return o };
    for f in &desc.fields {
        if let Some((_, word)) = fields.iter().find(|(name, _)| *name == f.name) {
            // SAFETY: the field's word lies within the object, by the class's description.
            unsafe { o.cast::<u8>().add(f.offset as usize).cast::<i64>().write(*word) };
        }
    }
    o
}
