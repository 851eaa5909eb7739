//! Values of columns: words of the program to values of the store and back.

use super::blob;
use abi::desc::{FieldDesc, TypeDesc, TypeIdx};
use store::{Cell, Value};
use values::ctx::Ctx;
use values::object::{self, Obj};
use values::text;

/// The two words of a value, owned; zeros beside a pending trap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Words(pub u64, pub u64);

/// The words of a field.
///
/// # Safety
/// `obj` is a live object of the class that the field is of.
pub unsafe fn field_words(ctx: &Ctx, obj: *mut Obj, field: &FieldDesc) -> (u64, u64) {
    // SAFETY: the class's description keeps fields within the object.
    unsafe {
        let at = obj.cast::<u8>().add(field.offset as usize).cast::<u64>();
        (*at, if object::plans(ctx).words(field.ty) == 2 { *at.add(1) } else { 0 })
    }
}

/// The value of a field.
///
/// # Safety
/// As for `field_words`.
pub unsafe fn field(ctx: &Ctx, obj: *mut Obj, field: &FieldDesc) -> Value {
    // SAFETY: the caller's promise.
    unsafe {
        let (first, second) = field_words(ctx, obj, field);
        value_of(ctx, field.ty, first, second)
    }
}

/// A copy of a value.
///
/// # Safety
/// The words are a live value of type `ty` on this shard.
pub unsafe fn value_of(ctx: &Ctx, ty: TypeIdx, first: u64, second: u64) -> Value {
    // SAFETY: the caller's promise.
    unsafe {
        match cell_of(ctx, ty, first, second) {
            Ok(cell) => cell.to_value(),
            Err((ty, word)) => Value::Bytes(blob::encode(ctx, ty, word).into()),
        }
    }
}

/// The value as it is, if it is a word or text; else what is to be encoded, its type without nil.
///
/// # Safety
/// As for `value_of`; a text lives and stays as it is for `'a`.
pub unsafe fn cell_of<'a>(ctx: &Ctx, ty: TypeIdx, first: u64, second: u64) -> Result<Cell<'a>, (TypeIdx, u64)> {
    let shapes = object::shapes(ctx);
    let (mut desc, mut ty, mut word) = (shapes.ty(ty), ty, first);
    if let TypeDesc::Nullable(inner) = desc {
        if object::plans(ctx).words(ty) == 2 {
            if first == 0 {
                return Ok(Cell::Nil);
            }
            word = second;
        }
        ty = inner;
        desc = shapes.ty(ty);
    }
    match desc {
        TypeDesc::Int | TypeDesc::Bool | TypeDesc::Float | TypeDesc::Ordinal(_) | TypeDesc::Row(_) => {
            Ok(Cell::Word(word))
        }
        _ if word == 0 => Ok(Cell::Nil),
        // SAFETY: the type says that the word is a live text.
        TypeDesc::Text | TypeDesc::Bytes | TypeDesc::Json => unsafe { Ok(Cell::Bytes(text::bytes(word as *mut Obj))) },
        _ => Err((ty, word)),
    }
}

/// The words of a value of the store, as a fresh value of type `ty`; zeros with a pending trap when memory is short.
pub fn words_of(ctx: &mut Ctx, ty: TypeIdx, cell: Cell<'_>) -> Words {
    let shapes = object::shapes(ctx);
    let (mut desc, mut inner_ty, mut tagged) = (shapes.ty(ty), ty, false);
    if let TypeDesc::Nullable(inner) = desc {
        tagged = object::plans(ctx).words(ty) == 2;
        inner_ty = inner;
        desc = shapes.ty(inner);
    }
    match cell {
        Cell::Nil => Words(0, 0),
        Cell::Word(word) if tagged => Words(1, word),
        Cell::Word(word) => Words(word, 0),
        Cell::Bytes(bytes) => {
            let obj = match desc {
                TypeDesc::Text | TypeDesc::Json => text::new(ctx, bytes),
                TypeDesc::Bytes => text::new_bytes(ctx, bytes),
                _ => blob::decode(ctx, inner_ty, bytes),
            };
            Words(obj as u64, 0)
        }
    }
}
