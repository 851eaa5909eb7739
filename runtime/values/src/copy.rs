//! Copies of object graphs, with sharing and cycles preserved; and the hand-over of messages between actors, which
//! copies only what something else still refers to.

use crate::ctx::Ctx;
use crate::object::{self, Obj, Plans, Slot, plans};
use crate::{cycles, map, multi, text};
use abi::layout::{FIRST_CLASS, KIND_BYTES, KIND_MAP, KIND_MULTI};
use std::collections::HashMap;

/// Maps originals to their copies.
type Memo = HashMap<*mut Obj, *mut Obj, foldhash::fast::FixedState>;

struct Copier<'c> {
    ctx: &'c mut Ctx,
    plans: &'c Plans,
    /// Originals that can be met more than once.
    memo: Memo,
    /// Copies whose slots are still null, with their originals.
    unfilled: Vec<(*mut Obj, *mut Obj)>,
    /// Texts get copies of their own. Otherwise they are shared.
    texts: bool,
}

/// An independent copy of the graph behind `obj`, null for null. Texts are shared with the original. Null and trap 4
/// when memory is short.
///
/// # Safety
/// `obj` is null or a live object of this shard.
pub unsafe fn deep_copy(ctx: &mut Ctx, obj: *mut Obj) -> *mut Obj {
    // SAFETY: the caller's promise.
    unsafe { Copier::new(ctx, false).copy(obj) }
}

/// Makes an owned graph independent of everything outside it, so that another shard may own it. What is referred to
/// once moves as it is; what is shared is copied, once, with all below it. Consumes `obj` in every case. Null and trap
/// 4 when memory is short; null for null.
///
/// # Safety
/// `obj` is null or a live object of this shard of which the caller owns a reference.
pub unsafe fn transfer(ctx: &mut Ctx, obj: *mut Obj) -> *mut Obj {
    // SAFETY: the caller's promise.
    unsafe { independent(ctx, obj, true) }
}

/// The same for an owner on this shard: texts, which never change, stay shared.
///
/// # Safety
/// As for `transfer`.
pub unsafe fn transfer_here(ctx: &mut Ctx, obj: *mut Obj) -> *mut Obj {
    // SAFETY: the caller's promise.
    unsafe { independent(ctx, obj, false) }
}

unsafe fn independent(ctx: &mut Ctx, obj: *mut Obj, texts: bool) -> *mut Obj {
    // SAFETY: the caller's promise.
    unsafe {
        if obj.is_null() || object::count(obj) < 0 {
            return obj;
        }
        if !object::is_unique(ctx, plans(ctx), obj) {
            let copy = cycles::with_relief(ctx, |ctx| Copier::new(ctx, texts).copy(obj));
            object::release(ctx, obj);
            return copy;
        }
        // No second try: the parts that have been copied would lose what they share with those that have not.
        if detach(ctx, obj, texts) {
            return obj;
        }
        object::release(ctx, obj);
        std::ptr::null_mut()
    }
}

/// Puts copies into the place of what something outside the graph behind `obj` refers to, of texts too if so asked. False
/// with trap 4 when memory is short.
///
/// # Safety
/// `obj` is a live object of this shard to which only the caller has a reference.
unsafe fn detach(ctx: &mut Ctx, obj: *mut Obj, texts: bool) -> bool {
    let mut copier = Copier::new(ctx, texts);
    // Slots are emptied of shared objects right away, but these are given up only at the end: their counts must keep
    // telling that they are shared.
    let mut given_up: Vec<*mut Obj> = Vec::new();
    let mut pending: Vec<*mut Obj> = Vec::new();
    let mut complete = true;
    let mut next = Some(obj);
    // SAFETY: an object with count 1 is referred to by the slot it was found in only, and that slot belongs to the
    // graph, so the walk may write to it.
    unsafe {
        while let Some(owner) = next {
            let copier = &mut copier;
            let (given_up, nested) = (&mut given_up, &mut pending);
            complete &= each_slot(copier.plans, owner, |slot, place| {
                let child = *place as *mut Obj;
                if slot != Slot::Counted || child.is_null() || object::count(child) < 0 {
                    return true;
                }
                if !copier.texts && (*child).kind <= KIND_BYTES {
                    return true;
                }
                if object::is_unique(copier.ctx, copier.plans, child) {
                    if (*child).kind > KIND_BYTES {
                        nested.push(child);
                    }
                    return true;
                }
                if given_up.try_reserve(1).is_err() {
                    object::out_of_memory(copier.ctx);
                    return false;
                }
                let copy = copier.copy(child);
                if copy.is_null() {
                    return false;
                }
                *place = copy as u64;
                given_up.push(child);
                true
            });
            next = if complete { pending.pop() } else { None };
        }
        for child in given_up {
            object::release(ctx, child);
        }
    }
    complete
}

/// Calls `visit` with every slot of `owner` that is not a scalar, until it returns false; then the result is false.
/// Keys of maps are visited too: a visitor may replace a key by an equal one.
///
/// # Safety
/// `owner` is a live object, not changed in shape by `visit`.
pub(crate) unsafe fn each_slot(plans: &Plans, owner: *mut Obj, mut visit: impl FnMut(Slot, *mut u64) -> bool) -> bool {
    // SAFETY: the caller's promise; offsets and counts come from the object's shape.
    unsafe {
        match (*owner).kind {
            kind if kind <= KIND_BYTES => true,
            KIND_MULTI => {
                let slot = plans.slot((*owner.cast::<multi::Multi>()).element);
                slot == Slot::Scalar || multi::words_with(plans, owner).iter_mut().all(|word| visit(slot, word))
            }
            KIND_MAP => {
                let (key, value) = map::slots(plans, &*owner.cast::<map::Map>());
                (key == Slot::Scalar && value == Slot::Scalar)
                    || map::entries(owner).all(|entry| {
                        (key == Slot::Scalar || visit(key, entry))
                            && (value == Slot::Scalar || visit(value, entry.add(1)))
                    })
            }
            kind => plans.classes.get(kind.wrapping_sub(FIRST_CLASS) as usize).is_none_or(|plan| {
                plan.slots.iter().all(|&(offset, slot)| visit(slot, owner.cast::<u8>().add(offset).cast()))
            }),
        }
    }
}

/// Calls `visit` with the words of `owner` that are not scalars, from slot `next` on, one more than `left` at most and
/// until it returns false. True: there was none left. `next` tells where to go on; what has moved to another slot in
/// between may be left out.
///
/// # Safety
/// `owner` is a live object, not changed in shape by `visit`.
pub(crate) unsafe fn visit_slots(
    plans: &Plans,
    owner: *mut Obj,
    next: &mut u64,
    left: &mut u64,
    mut visit: impl FnMut(Slot, u64) -> bool,
) -> bool {
    let mut go_on = |goes_on: bool| {
        let more = goes_on && *left > 0;
        *left -= u64::from(more);
        more
    };
    // SAFETY: the caller's promise; offsets and counts come from the object's shape.
    unsafe {
        match (*owner).kind {
            kind if kind <= KIND_BYTES => {}
            KIND_MULTI => {
                let element = (*owner.cast::<multi::Multi>()).element;
                let (slot, words) = (plans.slot(element), plans.words(element));
                let all = if slot == Slot::Scalar { &[] } else { &*multi::words_with(plans, owner) };
                while let Some(&word) = all.get(*next as usize * words) {
                    *next += 1;
                    if !go_on(visit(slot, word)) {
                        return false;
                    }
                }
            }
            KIND_MAP => {
                let (key, value) = map::slots(plans, &*owner.cast::<map::Map>());
                let mut position = *next as u32;
                while (key, value) != (Slot::Scalar, Slot::Scalar)
                    && let Some(entry) = map::next_entry(owner, &mut position)
                {
                    *next = u64::from(position);
                    // Keys are never containers.
                    let _ = key == Slot::Scalar || visit(key, *entry);
                    if !go_on(value == Slot::Scalar || visit(value, *entry.add(1))) {
                        return false;
                    }
                }
            }
            kind => {
                let plan = plans.classes.get(kind.wrapping_sub(FIRST_CLASS) as usize);
                let slots = plan.map_or(&[][..], |plan| &plan.slots);
                while let Some(&(offset, slot)) = slots.get(*next as usize) {
                    *next += 1;
                    if !go_on(visit(slot, *owner.cast::<u8>().add(offset).cast())) {
                        return false;
                    }
                }
            }
        }
        true
    }
}

impl<'c> Copier<'c> {
    fn new(ctx: &'c mut Ctx, texts: bool) -> Copier<'c> {
        let plans = plans(ctx);
        Copier {
            ctx,
            plans,
            memo: Memo::with_hasher(foldhash::fast::FixedState::default()),
            unfilled: Vec::new(),
            texts,
        }
    }

    /// The copy of `obj`, owned by the caller. Null with trap 4 on failure, and for null.
    ///
    /// # Safety
    /// `obj` is null or a live object of this shard.
    unsafe fn copy(&mut self, obj: *mut Obj) -> *mut Obj {
        // SAFETY: the caller's promise. Copies are complete graphs at all times, with null where a slot is unfilled, so
        // a failure can release them.
        unsafe {
            let root = self.shell(obj);
            while let Some((original, copy)) = self.unfilled.pop() {
                let plans = self.plans;
                // A slot of the copy holds the original's word until it is visited; see `shell`.
                let done = each_pair(plans, original, copy, |slot, from, to| match slot {
                    Slot::Scalar => true,
                    Slot::Actor => {
                        object::retain_slot(self.ctx, slot, from);
                        *to = from;
                        true
                    }
                    Slot::Counted => {
                        let child = self.shell(from as *mut Obj);
                        *to = child as u64;
                        from == 0 || !child.is_null()
                    }
                });
                if !done {
                    self.unfilled.clear();
                    // Of a cycle among unfinished copies the cycle collector hears here.
                    object::release(self.ctx, root);
                    return std::ptr::null_mut();
                }
            }
            root
        }
    }

    /// A copy of `obj` alone, whose slots are null until it comes off `unfilled`; or the copy that exists already,
    /// retained. Null with trap 4 on failure, and for null.
    unsafe fn shell(&mut self, obj: *mut Obj) -> *mut Obj {
        // SAFETY: as for `copy`.
        unsafe {
            if obj.is_null() || object::count(obj) < 0 {
                return obj;
            }
            let kind = (*obj).kind;
            if kind <= KIND_BYTES && !self.texts {
                object::retain(obj);
                return obj;
            }
            let shared = !object::is_unique(self.ctx, self.plans, obj);
            if shared {
                if let Some(&copy) = self.memo.get(&obj) {
                    object::retain(copy);
                    return copy;
                }
                if self.memo.try_reserve(1).is_err() {
                    object::out_of_memory(self.ctx);
                    return std::ptr::null_mut();
                }
            }
            if self.unfilled.try_reserve(1).is_err() {
                object::out_of_memory(self.ctx);
                return std::ptr::null_mut();
            }
            let (copy, slots) = match kind {
                kind if kind <= KIND_BYTES => (text::new_kind(self.ctx, kind, text::bytes(obj)), false),
                KIND_MULTI => multi::shell(self.ctx, obj),
                KIND_MAP => map::shell(self.ctx, obj),
                kind => {
                    let class = kind.wrapping_sub(FIRST_CLASS);
                    let copy = object::new(self.ctx, class);
                    let Some(plan) = self.plans.classes.get(class as usize) else { return copy };
                    if !copy.is_null() {
                        let (from, to) = (obj.cast::<u8>(), copy.cast::<u8>());
                        let head = size_of::<Obj>();
                        to.add(head).copy_from_nonoverlapping(from.add(head), plan.size - head);
                        for &(offset, _) in &plan.slots {
                            *to.add(offset).cast::<u64>() = 0;
                        }
                    }
                    (copy, !plan.slots.is_empty())
                }
            };
            if !copy.is_null() {
                if slots {
                    self.unfilled.push((obj, copy));
                }
                if shared {
                    let _ = self.memo.insert(obj, copy);
                }
            }
            copy
        }
    }
}

/// Calls `visit` with each slot's word in `from` and its place in `to`, a shell of it.
unsafe fn each_pair(
    plans: &Plans,
    from: *mut Obj,
    to: *mut Obj,
    mut visit: impl FnMut(Slot, u64, *mut u64) -> bool,
) -> bool {
    // SAFETY: as for `each_slot`; a shell has the same elements and entries in the same order.
    unsafe {
        match (*from).kind {
            KIND_MULTI => {
                let slot = plans.slot((*from.cast::<multi::Multi>()).element);
                multi::words_with(plans, from)
                    .iter()
                    .zip(multi::words_with(plans, to))
                    .all(|(&word, place)| visit(slot, word, place))
            }
            KIND_MAP => {
                let (key, value) = map::slots(plans, &*from.cast::<map::Map>());
                map::entries(from).zip(map::entries(to)).all(|(from, to)| {
                    (key == Slot::Scalar || visit(key, *from, to))
                        && (value == Slot::Scalar || visit(value, *from.add(1), to.add(1)))
                })
            }
            _ => each_slot(plans, from, |slot, place| {
                let offset = place.byte_offset_from(from) as usize;
                visit(slot, *place, to.cast::<u8>().add(offset).cast())
            }),
        }
    }
}
