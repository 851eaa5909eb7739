//! `query.order`: positions by keys that the program computed.

use super::convert::field_words;
use super::{Ptr, list_of_words};
use abi::desc::{TYPE_INT, TypeDesc, TypeIdx};
use abi::tables::ColumnKind;
use store::{Cell, Sorter};
use values::ctx::{Ctx, entry};
use values::cycles::with_relief;
use values::multi;
use values::object::{self, Obj};
use values::text;

/// Bytes of an item beside its key that are charged while sorting.
const ITEM: usize = 64;

pub(super) extern "C" fn query_order(ctx: *mut Ctx, query: u64, keys: *mut Obj, skip: i64, take: i64) -> *mut Obj {
    entry(ctx, |ctx| {
        // SAFETY: generated code passes a live object of the class that it made for the keys of this query.
        Ptr(with_relief(ctx, |ctx| unsafe { order(ctx, query, keys, skip, take) }))
    })
    .0
}

/// # Safety
/// `keys` is a live object whose first field is a `multi Int` and whose others are lists as long, one for each key.
unsafe fn order(ctx: &mut Ctx, query: u64, keys: *mut Obj, skip: i64, take: i64) -> *mut Obj {
    let shapes = object::shapes(ctx);
    // SAFETY: a live object.
    let class = unsafe { (*keys).kind }.wrapping_sub(abi::layout::FIRST_CLASS);
    let fields = shapes.classes.get(class as usize).map_or(&[][..], |class| &class.fields);
    let desc = shapes.queries.get(query as usize).map_or(&[][..], |query| &query.computed);
    let mut lists: Vec<(TypeIdx, &[u64])> = Vec::with_capacity(fields.len());
    for field in fields {
        let TypeDesc::Multi(element) = shapes.ty(field.ty) else { continue };
        // SAFETY: a live list, which the object keeps and nothing changes meanwhile.
        lists.push((element, unsafe { &*multi::words(ctx, field_words(ctx, keys, field).0 as *mut Obj) }));
    }
    let Some(((_, positions), keys)) = lists.split_first() else { return std::ptr::null_mut() };
    let skip = usize::try_from(skip).unwrap_or(0);
    let take = usize::try_from(take).ok();
    let mut sorter = Sorter::new(take.map(|take| take.saturating_add(skip)));
    let (mut key, mut charged) = (Vec::with_capacity(64), 0);
    for at in 0..positions.len() {
        key.clear();
        for ((ty, words), desc) in keys.iter().zip(desc) {
            // SAFETY: element `at` of a live list.
            let (kind, cell) = unsafe { key_at(ctx, *ty, words, at) };
            store::put_key(&mut key, kind, cell, *desc);
        }
        let grown = sorter.push(&key, at as u64, at as u64);
        if grown > 0 {
            if !object::charge_extra(ctx, grown + ITEM) {
                object::uncharge(ctx, charged);
                return std::ptr::null_mut();
            }
            charged += grown + ITEM;
        }
    }
    let sorted = sorter.finish();
    let chosen = sorted.iter().skip(skip).take(take.unwrap_or(usize::MAX));
    let words: Vec<u64> = chosen.filter_map(|item| positions.get(item.id as usize).copied()).collect();
    drop(sorted);
    object::uncharge(ctx, charged);
    list_of_words(ctx, TYPE_INT, &words)
}

/// # Safety
/// `words` are those of a live list with elements of type `ty`.
unsafe fn key_at<'a>(ctx: &Ctx, ty: TypeIdx, words: &'a [u64], at: usize) -> (ColumnKind, Cell<'a>) {
    let shapes = object::shapes(ctx);
    let size = object::plans(ctx).words(ty);
    let word = |i: usize| words.get(at * size + i).copied().unwrap_or(0);
    let (mut desc, mut value, mut nil) = (shapes.ty(ty), word(0), false);
    if let TypeDesc::Nullable(inner) = desc {
        desc = shapes.ty(inner);
        nil = value == 0;
        value = word(size - 1);
    }
    match desc {
        TypeDesc::Text | TypeDesc::Bytes | TypeDesc::Json if value != 0 => {
            // SAFETY: a live text, kept by the list.
            (ColumnKind::Bytes, Cell::Bytes(unsafe { text::bytes(value as *mut Obj) }))
        }
        TypeDesc::Text | TypeDesc::Bytes | TypeDesc::Json => (ColumnKind::Bytes, Cell::Nil),
        TypeDesc::Float => (ColumnKind::Float, if nil { Cell::Nil } else { Cell::Word(value) }),
        _ => (ColumnKind::Int, if nil { Cell::Nil } else { Cell::Word(value) }),
    }
}
