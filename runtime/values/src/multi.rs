//! `multi`: a growable array of one- or two-word elements.
//!
//! Elements taken from the front leave a gap before `data` (`head` elements), which growth uses up before it asks for
//! memory; so a queue of `push` and `shift` takes constant time per operation.

use crate::ctx::Ctx;
use crate::object::{self, Obj, Plans, Slot, plans};
use crate::{cycles, text};
use abi::desc::{TypeDesc, TypeIdx};
use abi::layout::{KIND_MULTI, MULTI_CAP, MULTI_DATA, MULTI_LEN};
use std::cmp::Ordering;

#[repr(C)]
pub struct Multi {
    pub header: Obj,
    /// Elements.
    pub len: u64,
    /// Elements that fit behind `data`.
    pub capacity: u64,
    /// First element; null while nothing was allocated.
    pub data: *mut u64,
    pub element: TypeIdx,
    /// Elements of free storage before `data`.
    head: u32,
}

const _: () = {
    assert!(std::mem::offset_of!(Multi, len) == MULTI_LEN as usize);
    assert!(std::mem::offset_of!(Multi, capacity) == MULTI_CAP as usize);
    assert!(std::mem::offset_of!(Multi, data) == MULTI_DATA as usize);
};

/// Most elements.
const MAX_LEN: u64 = u32::MAX as u64;

/// An empty multi with room for `hint` elements (values out of range are ignored); null and trap 4 when memory is
/// short.
pub fn new(ctx: &mut Ctx, element: TypeIdx, hint: i64) -> *mut Obj {
    let obj = object::allocate(ctx, size_of::<Multi>(), KIND_MULTI, plans(ctx).traced_multi(element));
    if obj.is_null() {
        return obj;
    }
    let m = obj.cast::<Multi>();
    // SAFETY: fresh memory of the size of a `Multi`, owned here.
    unsafe {
        (*m).len = 0;
        (*m).capacity = 0;
        (*m).data = std::ptr::null_mut();
        (*m).element = element;
        (*m).head = 0;
        if (1..=MAX_LEN as i64).contains(&hint) && !reserve(ctx, m, hint as u64) {
            object::release(ctx, obj);
            return std::ptr::null_mut();
        }
    }
    obj
}

/// Makes room for `wanted` elements in all. False with trap 4 when memory is short.
///
/// # Safety
/// `m` is a live multi that nothing else touches.
#[cold]
unsafe fn reserve(ctx: &mut Ctx, m: *mut Multi, wanted: u64) -> bool {
    // SAFETY: the caller's promise; storage spans `head + capacity` elements from `data - head`.
    unsafe {
        let words = plans(ctx).words((*m).element);
        let head = u64::from((*m).head);
        if wanted <= (*m).capacity {
            return true;
        }
        let base = if (*m).data.is_null() { (*m).data } else { (*m).data.sub((*m).head as usize * words) };
        // The move costs no more than the shifts that opened the gap.
        if head >= (*m).len && head + (*m).capacity >= wanted {
            base.copy_from((*m).data, (*m).len as usize * words);
            (*m).data = base;
            (*m).capacity += head;
            (*m).head = 0;
            return true;
        }
        if wanted > MAX_LEN {
            object::out_of_memory(ctx);
            return false;
        }
        let capacity = wanted.max((*m).capacity * 2).clamp(4, MAX_LEN);
        let new_bytes = capacity as usize * words * 8;
        let moved = if base.is_null() {
            object::raw_alloc(ctx, new_bytes)
        } else if head == 0 {
            object::raw_realloc(ctx, base.cast(), (*m).capacity as usize * words * 8, new_bytes)
        } else {
            let fresh = object::raw_alloc(ctx, new_bytes);
            if !fresh.is_null() {
                fresh.cast::<u64>().copy_from_nonoverlapping((*m).data, (*m).len as usize * words);
                object::raw_free(ctx, base.cast(), (head + (*m).capacity) as usize * words * 8);
            }
            fresh
        };
        if moved.is_null() {
            return false;
        }
        (*m).data = moved.cast();
        (*m).capacity = capacity;
        (*m).head = 0;
        true
    }
}

/// Frees the element storage, not the elements.
///
/// # Safety
/// `m` is a dead multi with elements of `words` words.
pub(crate) unsafe fn free_storage(ctx: &mut Ctx, m: *mut Multi, words: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if !(*m).data.is_null() {
            let head = (*m).head as usize;
            let bytes = (head + (*m).capacity as usize) * words * 8;
            object::raw_free(ctx, (*m).data.sub(head * words).cast(), bytes);
        }
    }
}

/// Makes room for one more element. False with trap 4 when memory is short.
#[inline]
unsafe fn make_room(ctx: &mut Ctx, m: *mut Multi) -> bool {
    // SAFETY: the caller gives a live multi.
    unsafe { (*m).len < (*m).capacity || reserve(ctx, m, (*m).len + 1) }
}

/// Appends an element, which is consumed in every case. False with trap 4 when memory is short.
///
/// # Safety
/// `obj` is a live multi; the words are an owned value of its element type.
#[inline]
pub unsafe fn push(ctx: &mut Ctx, obj: *mut Obj, first: u64, second: u64) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let room = make_room(ctx, obj.cast());
        append(ctx, obj.cast(), (first, second), room)
    }
}

/// As `push`, but without memory once more after a collection (`cycles::with_relief`).
///
/// # Safety
/// As for `push`.
pub unsafe fn push_with_relief(ctx: &mut Ctx, obj: *mut Obj, first: u64, second: u64) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let room = cycles::with_relief(ctx, |ctx| make_room(ctx, obj.cast()));
        append(ctx, obj.cast(), (first, second), room)
    }
}

/// `push` when it is known whether there is room.
#[inline]
unsafe fn append(ctx: &mut Ctx, m: *mut Multi, (first, second): (u64, u64), room: bool) -> bool {
    // SAFETY: the promise of `push`.
    unsafe {
        let words = plans(ctx).words((*m).element);
        if !room {
            let slot = plans(ctx).slot((*m).element);
            object::release_slot(ctx, slot, first);
            return false;
        }
        let at = (*m).data.add((*m).len as usize * words);
        at.write(first);
        if words == 2 {
            at.add(1).write(second);
        }
        (*m).len += 1;
        true
    }
}

/// Removes the last element; `None` when there is none.
///
/// # Safety
/// `obj` is a live multi.
pub unsafe fn pop(ctx: &Ctx, obj: *mut Obj) -> Option<(u64, u64)> {
    let m = obj.cast::<Multi>();
    // SAFETY: the caller's promise.
    unsafe {
        let last = (*m).len.checked_sub(1)?;
        let element = read(ctx, m, last);
        (*m).len = last;
        cycles::moved_out(ctx, (*m).element, element.0);
        Some(element)
    }
}

/// Removes the first element; `None` when there is none.
///
/// # Safety
/// `obj` is a live multi.
pub unsafe fn shift(ctx: &Ctx, obj: *mut Obj) -> Option<(u64, u64)> {
    let m = obj.cast::<Multi>();
    // SAFETY: the caller's promise; the first element's place joins the gap.
    unsafe {
        if (*m).len == 0 {
            return None;
        }
        let element = read(ctx, m, 0);
        (*m).data = (*m).data.add(plans(ctx).words((*m).element));
        (*m).len -= 1;
        (*m).capacity -= 1;
        (*m).head += 1;
        cycles::moved_out(ctx, (*m).element, element.0);
        Some(element)
    }
}

/// The words of element `i` (the second is 0 for one-word elements).
///
/// # Safety
/// `m` is a live multi and `i` below its length.
unsafe fn read(ctx: &Ctx, m: *const Multi, i: u64) -> (u64, u64) {
    // SAFETY: the caller's promise.
    unsafe {
        let words = plans(ctx).words((*m).element);
        let at = (*m).data.add(i as usize * words);
        (*at, if words == 2 { *at.add(1) } else { 0 })
    }
}

/// The elements' words; one or two a element. Null counts as empty.
///
/// # Safety
/// `obj` is null or a live multi that is not changed while the slice is in use.
#[must_use]
pub unsafe fn words<'a>(ctx: &Ctx, obj: *mut Obj) -> &'a mut [u64] {
    // SAFETY: the caller's promise.
    unsafe { words_with(plans(ctx), obj) }
}

/// `words` for callers that have the plans at hand.
///
/// # Safety
/// As for `words`.
pub unsafe fn words_with<'a>(plans: &Plans, obj: *mut Obj) -> &'a mut [u64] {
    if obj.is_null() {
        return &mut [];
    }
    let m = obj.cast::<Multi>();
    // SAFETY: the caller's promise; `len` elements are initialised.
    unsafe {
        if (*m).data.is_null() {
            return &mut [];
        }
        std::slice::from_raw_parts_mut((*m).data, (*m).len as usize * plans.words((*m).element))
    }
}

/// Bytes that take as long to go through as an element of a list, and what hangs on it.
const ELEMENT: usize = 64;

/// A new multi with the elements `[from, to)`, both clamped; the elements are retained. Null and trap 4 when memory is
/// short.
///
/// # Safety
/// `obj` is a live multi.
pub unsafe fn slice(ctx: &mut Ctx, obj: *mut Obj, from: i64, to: i64) -> *mut Obj {
    let m = obj.cast::<Multi>();
    // SAFETY: the caller's promise; the new multi is written before anyone sees it.
    unsafe {
        let len = (*m).len as i64;
        let to = to.clamp(0, len);
        let from = from.clamp(0, to);
        let element = (*m).element;
        let copy = new(ctx, element, to - from);
        if copy.is_null() || from == to {
            return copy;
        }
        let (words, slot) = (plans(ctx).words(element), plans(ctx).slot(element));
        let source = (*m).data.add(from as usize * words);
        let count = (to - from) as usize;
        let c = copy.cast::<Multi>();
        (*c).data.copy_from_nonoverlapping(source, count * words);
        (*c).len = count as u64;
        if slot != Slot::Scalar {
            ctx.works(count.saturating_mul(ELEMENT));
            for i in 0..count {
                object::retain_slot(ctx, slot, *source.add(i * words));
            }
        }
        copy
    }
}

/// Reverses in place.
///
/// # Safety
/// `obj` is a live multi.
pub unsafe fn reverse(ctx: &Ctx, obj: *mut Obj) {
    // SAFETY: the caller's promise.
    unsafe {
        let element = (*obj.cast::<Multi>()).element;
        let two = plans(ctx).words(element) == 2;
        let all = words(ctx, obj);
        cycles::reordered(ctx, element, obj, all);
        if two {
            all.as_chunks_mut::<2>().0.reverse();
        } else {
            all.reverse();
        }
    }
}

/// Sorts in place, stable, nil first. Traps 4 when there is no room to sort floats or pairs.
///
/// # Safety
/// `obj` is a live multi of scalars, Texts or Bytes, or of a nullable type of these.
pub unsafe fn sort(ctx: &mut Ctx, obj: *mut Obj) {
    // SAFETY: the caller's promise.
    let all = unsafe { words(ctx, obj) };
    if all.len() < 2 {
        return;
    }
    ctx.works(all.len().saturating_mul(ELEMENT));
    let shapes = object::shapes(ctx);
    // SAFETY: as above.
    let ty = shapes.ty(unsafe { (*obj.cast::<Multi>()).element });
    let (scalar, nullable) = match ty {
        TypeDesc::Nullable(inner) => (shapes.ty(inner), true),
        other => (other, false),
    };
    match scalar {
        TypeDesc::Text | TypeDesc::Bytes | TypeDesc::Json => {
            // Equal texts cannot be told apart, so an unstable sort is stable enough; null sorts first.
            // SAFETY: the elements are null or live texts.
            all.sort_unstable_by(|&a, &b| unsafe { compare_nullable(a as *mut Obj, b as *mut Obj) });
        }
        TypeDesc::Int | TypeDesc::Bool | TypeDesc::Ordinal(_) | TypeDesc::Row(_) => {
            if nullable {
                all.as_chunks_mut::<2>()
                    .0
                    .sort_unstable_by_key(|&[tag, v]| if tag == 0 { (0, 0) } else { (1, v as i64) });
            } else {
                // SAFETY: `i64` and `u64` have the same size and alignment.
                unsafe { &mut *(std::ptr::from_mut::<[u64]>(all) as *mut [i64]) }.sort_unstable();
            }
        }
        TypeDesc::Float => {
            // The stable sort borrows room for at most all elements.
            let room = size_of_val(all);
            if !object::charge_extra(ctx, room) {
                return;
            }
            if nullable {
                all.as_chunks_mut::<2>().0.sort_by(|&[tag_a, a], &[tag_b, b]| {
                    tag_a.cmp(&tag_b).then_with(|| if tag_a == 0 { Ordering::Equal } else { compare_floats(a, b) })
                });
            } else {
                all.sort_by(|&a, &b| compare_floats(a, b));
            }
            object::uncharge(ctx, room);
        }
        _ => {}
    }
}

fn compare_floats(a: u64, b: u64) -> Ordering {
    codec::float::compare(f64::from_bits(a), f64::from_bits(b))
}

unsafe fn compare_nullable(a: *mut Obj, b: *mut Obj) -> Ordering {
    match (a.is_null(), b.is_null()) {
        // SAFETY: the caller's promise.
        (false, false) => unsafe { text::bytes(a).cmp(text::bytes(b)) },
        (a, b) => b.cmp(&a),
    }
}

/// A copy of a multi alone: scalars copied, everything else null; and whether there is anything else. Null and trap 4
/// when memory is short.
///
/// # Safety
/// `obj` is a live multi.
pub(crate) unsafe fn shell(ctx: &mut Ctx, obj: *mut Obj) -> (*mut Obj, bool) {
    // SAFETY: the caller's promise; the copy has room for all elements.
    unsafe {
        let (element, len) = ((*obj.cast::<Multi>()).element, (*obj.cast::<Multi>()).len);
        let copy = new(ctx, element, len as i64);
        if copy.is_null() || len == 0 {
            return (copy, false);
        }
        let slots = plans(ctx).slot(element) != Slot::Scalar;
        let from = words(ctx, obj);
        let to = copy.cast::<Multi>();
        if slots {
            (*to).data.write_bytes(0, from.len());
        } else {
            (*to).data.copy_from_nonoverlapping(from.as_ptr(), from.len());
        }
        (*to).len = len;
        (copy, slots)
    }
}
