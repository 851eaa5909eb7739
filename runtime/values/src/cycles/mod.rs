//! The cycle collector: finds garbage that holds itself, by trial deletion (Bacon and Rajan, 2001), in short steps between
//! which the program goes on.
//!
//! Only objects that can be on a cycle take part (`crate::shape`); the flag `layout::QUIET` keeps all others, and those
//! that are noted already, away from here. An object that loses a reference but not its last is noted as a suspect, with
//! `QUIET`. A collection makes nodes of the suspects, without `QUIET`, and of what they reach, records every reference
//! between nodes, and frees the nodes that have no other reference and cannot be reached from one that has.
//!
//! A suspect that loses its last reference is taken apart at once, as any other object. Only its own memory stays, as a
//! shell, until it comes off the list: its place there is not known.
//!
//! Why that is sound though the program runs in between: while a collection records, whatever takes a reference out of
//! an object either releases it, which notes what it referred to, or comes here (`moved_out`, `reordered`). So a node
//! without `QUIET` has lost no reference since it was met, and all that were recorded to it exist at the time T when the
//! last one is. If later its count equals their number still, that was its count at T too, for it can only have grown.
//! Take the nodes for which this holds and which no other node leads to by recorded references: at T only members of
//! this set referred to its members, so nobody can have reached them since. Words on stacks that are not counted do not
//! matter: each was read from a place that a counted word leads to, and the way there lies outside the set.
//!
//! A step runs where generated code may trap or give way (`poll`); the units of work owed grow with calls and with
//! memory, so a collection ends before memory has grown by much. The tables count as memory of the program. A collection
//! that has no room for them makes its suspects suspects again, and the next one begins with fewer. Where memory has run
//! out, a collection ends before the program goes on, and its tables may exceed the bound.

mod chunks;
mod collection;
mod graph;

use crate::ctx::{Ctx, Heap};
use crate::object::{self, Dead, LIST_DEBT, Obj, Plans, Slot, plans};
use crate::{map, multi, text};
use abi::desc::TypeIdx;
use abi::layout::{FIRST_CLASS, KIND_MAP, KIND_MULTI, QUIET};
use abi::trap;
use chunks::{Chunks, push, shrink};
use collection::{Phase, Progress, advance, begin};
use graph::Graph;
use std::sync::atomic::Ordering;

/// Fewest suspects that start a collection, while memory does not grow.
const SUSPECTS: usize = 10_000;
/// Growth in bytes from the end of one collection to the end of the next, at least and with plenty of memory: half of it
/// goes by before the next one starts.
const GROWTH: i64 = 16 << 20;
/// The same where memory is short.
const LEAST_GROWTH: i64 = 1 << 20;
/// Shells that are worth looking for.
const SHELLS: usize = 64;
/// Suspects that are looked at for shells at a time.
const LOOKED_AT: usize = 16;
/// An object that dies soon after it was noted is looked for among this many.
const RECENT: usize = 8;

/// Units of work done at once, but where the program gives way: there it may be `LONG_STEP`.
pub const STEP: u64 = 250;
pub const LONG_STEP: u64 = 4 * STEP;
/// Units owed for a call that makes an object, and for giving way.
const PER_OBJECT: i64 = 2;
const PER_YIELD: i64 = 64;
/// Bytes of growth for which a unit is owed; and units for a byte once growth has come to what was meant for all of the
/// collection. In all, a collection takes about a unit for every other byte that is live, or less: that is four for each
/// word of the objects that it reaches. So from then on memory grows by another eighth at most.
const BYTES_PER_UNIT: i64 = 2;
const HURRIED: i64 = 4;
/// Collections tried when memory is short.
const TRIES: u32 = 32;
/// The part of the bound that makes a collection worth its time when memory is short, though no object was freed.
const WORTH: i64 = 64;

/// Count word of a dead suspect that is still to be taken apart. That of a shell is `QUIET`.
const DYING: i32 = i32::MIN;

/// What a shard knows about possible garbage cycles.
#[derive(Debug, Default)]
pub(crate) struct Cycles {
    /// Each once with `QUIET` set, shells included; before them those that the collection began with.
    suspects: Chunks<*mut Obj>,
    /// How many the collection began with; their places keep the order of their nodes.
    roots: usize,
    /// How many suspects are shells.
    shells: usize,
    /// The next suspect to be looked at for shells.
    hand: usize,
    /// Suspects that start a collection, beyond `SUSPECTS`.
    patience: usize,
    /// How often the number of suspects is halved before a collection begins, for want of memory.
    halvings: u32,
    /// How many collections in a row had no memory.
    failures: usize,
    /// Memory is short, and the collection ends before the program goes on.
    urgent: bool,
    /// Live bytes that start a collection, or its next step: there is something to do at each poll while it goes on.
    bytes: i64,
    /// Units of work that are owed.
    debt: i64,
    /// Live bytes after the last step, growth since the collection began, and how much is meant for all of it.
    seen: i64,
    grown: i64,
    allowed: i64,
    progress: Progress,
    graph: Graph,
    /// Dead objects that the collection has come upon.
    pending: Dead,
}

impl Cycles {
    pub fn is_urgent(&self) -> bool {
        self.urgent
    }
}

/// # Safety
/// `obj` is a live object, not immortal.
#[inline]
unsafe fn word(obj: *mut Obj) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { (*obj).count.load(Ordering::Relaxed) }
}

/// # Safety
/// `obj` is a live object of this shard, not immortal.
#[inline]
unsafe fn set_word(obj: *mut Obj, word: i32) {
    // SAFETY: the caller's promise.
    unsafe { (*obj).count.store(word, Ordering::Relaxed) };
}

// -- suspects ----------------------------------------------------------------------------------------------------

/// Decides about an object that a release has left with a count word of `QUIET` or less: true, it is dead and the
/// caller frees it. Otherwise it is a suspect now.
///
/// # Safety
/// `obj` is an object of this shard, one of whose references was just given up; it is no text.
#[inline]
pub(crate) unsafe fn settle(heap: &mut Heap, plans: &Plans, obj: *mut Obj) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let left = word(obj);
        if left == 0 || (left == QUIET && !is_traced(plans, obj)) {
            return true;
        }
        if left < QUIET {
            note(heap, obj);
            return false;
        }
        let cycles = &mut heap.cycles;
        let len = cycles.suspects.len();
        let recent = len.saturating_sub(RECENT).max(cycles.roots)..len;
        if let Some(at) = recent.clone().find(|&i| cycles.suspects.get(i) == Some(obj)) {
            cycles.suspects.swap_remove(at);
        } else {
            set_word(obj, DYING);
        }
        true
    }
}

/// Makes an object a suspect. Without memory for that it is found, should it be garbage, when it is released once more.
///
/// # Safety
/// `obj` is a live object of this shard whose count word is below `QUIET`.
unsafe fn note(heap: &mut Heap, obj: *mut Obj) {
    // SAFETY: the caller's promise.
    unsafe {
        if push(heap, |heap| &mut heap.cycles.suspects, obj, LIST_DEBT) {
            set_word(obj, word(obj) | QUIET);
        } else {
            heap.cycles.progress.broken = true;
        }
    }
}

/// Notes an object that is no longer referred to from where it was, should a collection have seen it there.
///
/// # Safety
/// `obj` is null or a live object of this shard.
unsafe fn lost(heap: &mut Heap, obj: *mut Obj) {
    // SAFETY: the caller's promise.
    unsafe {
        if !obj.is_null() && (0..QUIET).contains(&word(obj)) {
            note(heap, obj);
        }
    }
}

/// To be called when a value of type `ty` leaves an object, and its reference goes to the caller instead of being given
/// up.
///
/// # Safety
/// `word` is a live value of this type, of this shard.
#[inline]
pub(crate) unsafe fn moved_out(ctx: &Ctx, ty: TypeIdx, word: u64) {
    // SAFETY: the caller's promise; a context always points at the heap of its shard.
    unsafe {
        if (*ctx.heap).cycles.progress.watches() && plans(ctx).slot(ty) == Slot::Counted {
            lost(&mut *ctx.heap, word as *mut Obj);
        }
    }
}

/// To be called when the elements of a container, of type `ty`, have changed places.
///
/// # Safety
/// `words` are live values of this type, of this shard.
pub(crate) unsafe fn reordered(ctx: &Ctx, ty: TypeIdx, container: *mut Obj, words: &[u64]) {
    // SAFETY: the caller's promise; a context always points at the heap of its shard.
    unsafe {
        if plans(ctx).slot(ty) == Slot::Counted {
            collection::reordered(&mut *ctx.heap, container, words);
        }
    }
}

/// To be called before an object is freed.
#[inline]
pub(crate) fn forget(heap: &mut Heap, obj: *mut Obj) {
    if heap.cycles.progress.watches() {
        heap.cycles.graph.forget(obj);
    }
}

/// Whether a collection has met the object.
pub(crate) fn knows(heap: &mut Heap, obj: *mut Obj) -> bool {
    heap.cycles.progress.watches() && heap.cycles.graph.number(obj).is_some()
}

/// Whether an object that has been taken apart is still on the list of suspects: then `keep` must follow.
///
/// # Safety
/// `obj` is dead, and its memory is not freed yet.
#[inline]
pub(crate) unsafe fn is_listed(obj: *mut Obj) -> bool {
    // SAFETY: the caller's promise.
    unsafe { word(obj) == DYING }
}

/// Makes a dead suspect a shell, and frees some of the shells once they are many. There is more than one look for each
/// that is made, so that no more are left than there are other suspects.
///
/// # Safety
/// `obj` is on the list of suspects and has been taken apart. Nobody uses it any more.
#[cold]
pub(crate) unsafe fn keep(heap: &mut Heap, plans: &Plans, obj: *mut Obj) {
    // SAFETY: the caller's promise; shells are freed by nobody else.
    unsafe {
        set_word(obj, QUIET);
        let cycles = &mut heap.cycles;
        cycles.shells += 1;
        if cycles.shells >= SHELLS && cycles.shells * 2 > cycles.suspects.len() - cycles.roots {
            purge(heap, plans);
        }
    }
}

/// # Safety
/// As for `keep`.
unsafe fn purge(heap: &mut Heap, plans: &Plans) {
    for _ in 0..LOOKED_AT {
        let cycles = &mut heap.cycles;
        cycles.hand = if cycles.hand < cycles.suspects.len() { cycles.hand.max(cycles.roots) } else { cycles.roots };
        let Some(obj) = cycles.suspects.get(cycles.hand) else { break };
        // SAFETY: what is on the list stays allocated; a shell is referred to from nowhere else.
        unsafe {
            if word(obj) == QUIET {
                cycles.suspects.swap_remove(cycles.hand);
                cycles.shells -= 1;
                object::give_back(heap, obj.cast(), object::block(plans, obj));
            } else {
                cycles.hand += 1;
            }
        }
    }
    let room = heap.cycles.suspects.len() * 2;
    let _ = shrink(heap, |heap| &mut heap.cycles.suspects, room);
}

/// Whether the object can be on a cycle.
///
/// # Safety
/// `obj` is a live object.
#[inline]
pub(crate) unsafe fn is_traced(plans: &Plans, obj: *mut Obj) -> bool {
    // SAFETY: the caller's promise; the kind says what the object is.
    unsafe {
        match (*obj).kind {
            KIND_MULTI => plans.traced_multi((*obj.cast::<multi::Multi>()).element),
            KIND_MAP => plans.traced_map((*obj.cast::<map::Map>()).value),
            kind => plans.classes.get(kind.wrapping_sub(FIRST_CLASS) as usize).is_some_and(|c| c.traced),
        }
    }
}

// -- pace --------------------------------------------------------------------------------------------------------

/// Does some of the work of a collection, when there are many suspects, or some and memory has grown. Called where
/// generated code may trap or give way: every word that refers to an object is counted there, or was read from what
/// such a word leads to.
#[inline]
pub fn poll(ctx: &mut Ctx) {
    if is_due(ctx) {
        work(ctx, PER_OBJECT, STEP);
    }
}

/// As `poll`, where the program gives way to others.
pub fn poll_between(ctx: &mut Ctx) {
    if is_due(ctx) {
        work(ctx, PER_YIELD, LONG_STEP);
    }
}

/// As `poll`, when there is nothing else to do. True: there is more.
pub fn poll_idle(ctx: &mut Ctx) -> bool {
    // SAFETY: a context always points at the heap of its shard.
    let is_idle = |ctx: &Ctx| unsafe { (*ctx.heap).cycles.progress.phase == Phase::Idle };
    if !is_idle(ctx) {
        work(ctx, STEP as i64, STEP);
    }
    !is_idle(ctx)
}

#[inline]
fn is_due(ctx: &Ctx) -> bool {
    // SAFETY: a context always points at the heap of its shard.
    let heap = unsafe { &*ctx.heap };
    heap.bytes_live > heap.cycles.bytes || heap.cycles.suspects.len() >= SUSPECTS + heap.cycles.patience
}

/// Begins a collection if none is on its way, and takes the step that is due, of `most` units at most.
#[cold]
fn work(ctx: &mut Ctx, units: i64, most: u64) {
    // SAFETY: a context always points at the heap of its shard; the reference is not used after `advance`. Callers
    // promise what `poll` says.
    unsafe {
        let heap = &mut *ctx.heap;
        if heap.cycles.progress.phase == Phase::Idle {
            if heap.cycles.suspects.len() == 0 {
                heap.cycles.bytes = heap.bytes_live.saturating_add(growth(heap) / 2);
                return;
            }
            start(heap);
        }
        let grown = heap.bytes_live - heap.cycles.seen;
        let cycles = &mut heap.cycles;
        cycles.grown += grown;
        cycles.debt +=
            units + if cycles.grown <= cycles.allowed { grown.max(0) / BYTES_PER_UNIT } else { grown.max(0) * HURRIED };
        let step = cycles.debt.unsigned_abs().min(most);
        if step >= STEP {
            cycles.debt -= step as i64;
            let _ = advance(ctx, step);
        }
        (*ctx.heap).cycles.seen = (*ctx.heap).bytes_live;
    }
}

/// Growth in bytes after which garbage should be gone.
fn growth(heap: &Heap) -> i64 {
    let room = ((object::heap_limit() - heap.bytes_live) / 2).max(LEAST_GROWTH);
    heap.bytes_live.max(GROWTH).min(room)
}

fn start(heap: &mut Heap) {
    let allowed = growth(heap) / 2;
    let cycles = &mut heap.cycles;
    let roots = (cycles.suspects.len() >> cycles.halvings).max(1);
    cycles.bytes = i64::MIN;
    cycles.debt = 0;
    cycles.seen = heap.bytes_live;
    cycles.grown = 0;
    cycles.allowed = allowed;
    begin(heap, roots);
}

/// A collection has ended: when the next one is due, and with how many suspects.
fn ended(heap: &mut Heap) {
    heap.cycles.bytes = heap.bytes_live.saturating_add(growth(heap) / 2);
    let cycles = &mut heap.cycles;
    let suspects = cycles.suspects.len();
    if cycles.progress.abandoned {
        cycles.halvings = (cycles.halvings + 1).min(suspects.checked_ilog2().unwrap_or(0));
        cycles.patience = suspects * 2;
        // A single one may reach too much: the next collection tries another, from the youngest on.
        cycles.failures += 1;
        cycles.suspects.swap(0, suspects.wrapping_sub(cycles.failures));
    } else {
        cycles.halvings = cycles.halvings.saturating_sub(1);
        cycles.failures = 0;
        cycles.patience = cycles.progress.live.saturating_sub(SUSPECTS);
    }
}

/// Begins a collection if none is on its way, and takes `units` units of work: how many objects it knows when it goes on.
#[cfg(test)]
pub(crate) fn step(ctx: &mut Ctx, units: u64) -> Option<usize> {
    // SAFETY: tests hold counted references only, and their contexts have a heap.
    unsafe {
        let heap = &mut *ctx.heap;
        if heap.cycles.progress.phase == Phase::Idle && heap.cycles.suspects.len() > 0 {
            start(heap);
        }
        let _ = advance(ctx, units);
        let cycles = &(*ctx.heap).cycles;
        (cycles.progress.phase != Phase::Idle).then(|| cycles.graph.nodes.len())
    }
}

// -- at once -----------------------------------------------------------------------------------------------------

/// Runs the collection that is on its way to its end.
fn finish(ctx: &mut Ctx) {
    // SAFETY: callers promise what `poll` says.
    let _ = unsafe { advance(ctx, u64::MAX) };
}

/// A whole collection, or the rest of one; whether objects were freed, or tables worth a collection.
fn collect(ctx: &mut Ctx) -> bool {
    // SAFETY: a context always points at the heap of its shard; no reference is held across `finish`.
    unsafe {
        let blocks = |heap: &Heap| heap.objects_live + heap.cycles.shells as i64;
        let (before, bytes) = (blocks(&*ctx.heap), (*ctx.heap).bytes_live);
        if (*ctx.heap).cycles.progress.phase == Phase::Idle && (*ctx.heap).cycles.suspects.len() > 0 {
            start(&mut *ctx.heap);
        }
        finish(ctx);
        blocks(&*ctx.heap) < before || bytes - (*ctx.heap).bytes_live > object::heap_limit() / WORTH
    }
}

/// How many suspects there are.
fn suspects(ctx: &Ctx) -> usize {
    // SAFETY: a context always points at the heap of its shard.
    unsafe { (*ctx.heap).cycles.suspects.len() }
}

/// Collects because memory is short; whether any was freed. As for `poll`.
#[cold]
fn relieve(ctx: &mut Ctx) -> bool {
    // There may be nothing but garbage: its tables take memory beyond the bound, for as long as nothing else does.
    let set_urgent = |ctx: &mut Ctx, urgent| {
        // SAFETY: a context always points at the heap of its shard.
        let cycles = unsafe { &mut (*ctx.heap).cycles };
        cycles.urgent = urgent;
        cycles.halvings = 0;
    };
    set_urgent(ctx, true);
    let mut tries = 0;
    let mut freed = collect(ctx);
    while !freed && tries < TRIES && suspects(ctx) > 0 {
        tries += 1;
        freed = collect(ctx);
    }
    set_urgent(ctx, false);
    freed
}

/// Collects until nothing is suspect any more, or memory is too short for it. As for `poll`.
pub fn collect_all(ctx: &mut Ctx) {
    let mut failures = 0;
    finish(ctx);
    while suspects(ctx) > 0 && failures < TRIES {
        let before = suspects(ctx);
        let freed = collect(ctx);
        failures = if freed || suspects(ctx) < before { 0 } else { failures + 1 };
    }
    let rest = suspects(ctx);
    // SAFETY: a context always points at the heap of its shard.
    debug_assert!(unsafe { (*ctx.heap).cycles.shells } <= rest);
    // SAFETY: as above.
    while shrink(unsafe { &mut *ctx.heap }, |heap| &mut heap.cycles.suspects, rest) {}
}

/// Runs `make`, which changes nothing that can be seen when it has no memory; then collects, and runs it again, as long
/// as that frees anything. As for `poll`.
#[inline]
pub fn with_relief<R>(ctx: &mut Ctx, mut make: impl FnMut(&mut Ctx) -> R) -> R {
    let pending = ctx.trap;
    let mut made = make(ctx);
    while ctx.trap == trap::OOM && pending == 0 && reprieved(ctx) {
        made = make(ctx);
    }
    made
}

/// Withdraws a trap for want of memory, if a collection frees anything.
#[cold]
fn reprieved(ctx: &mut Ctx) -> bool {
    // Other texts of trap 4 tell of bounds that no collection changes.
    let freed = ctx.trap_msg == text::out_of_memory() && relieve(ctx);
    if freed {
        ctx.trap = 0;
        // The text is immortal.
        ctx.trap_msg = std::ptr::null_mut();
    }
    freed
}
