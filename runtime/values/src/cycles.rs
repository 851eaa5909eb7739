//! The cycle collector: finds garbage that holds itself, by synchronous trial deletion (Bacon and Rajan, 2001).
//!
//! Only objects that can be on a cycle take part (`crate::shape`); the flag `layout::QUIET` keeps all others, and those
//! that are noted already, away from here. An object that loses a reference but not its last is noted as a suspect. A
//! collection counts, for everything that can be reached from the suspects, how many references come from within; what
//! has more than those, and what that reaches, lives. The rest is garbage.
//!
//! While a collection runs, the count word of each object that it has met holds the object's number instead, as a
//! negative value above `layout::IMMORTAL`. It runs only at `poll`, where every word that refers to an object is
//! counted; nothing else runs on the shard meanwhile. Its pause is linear in what can be reached from the suspects, and
//! the number of suspects that start one grows with what the last one found alive.

use crate::copy::each_slot;
use crate::ctx::{Ctx, Heap};
use crate::object::{self, Dead, Obj, Plans, Slot, plans};
use crate::{map, multi};
use abi::layout::{FIRST_CLASS, IMMORTAL, KIND_MAP, KIND_MULTI, QUIET};
use std::sync::atomic::Ordering;

/// Fewest suspects that start a collection, while memory does not grow.
const SUSPECTS: usize = 10_000;
/// Growth in bytes that starts a collection, at least and with plenty of memory.
const GROWTH: i64 = 16 << 20;
/// The same where memory is short.
const LEAST_GROWTH: i64 = 1 << 20;
/// Dead suspects that are worth a walk through the list.
const DEAD: usize = 64;
/// An object that dies soon after it was noted is looked for among this many.
const RECENT: usize = 8;

/// What a shard knows about possible garbage cycles.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    /// Each once, with `QUIET` set, dead ones included.
    list: Vec<*mut Obj>,
    /// How many of them have died; a hint.
    dead: usize,
    /// Suspects beyond `SUSPECTS` that start a collection.
    patience: usize,
    /// Live bytes that start one.
    bytes: i64,
}

/// An object that a collection has met.
struct Node {
    obj: *mut Obj,
    /// References to it; what goes back into its header when it lives.
    word: i32,
    /// References from other nodes, `LIVE` once it is known to be reachable.
    within: u32,
}

const LIVE: u32 = u32::MAX;

/// Number of the node whose header holds `word`.
#[inline]
fn node_of(word: i32) -> Option<usize> {
    (word < 0 && word > IMMORTAL).then_some((-1 - word) as usize)
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

/// Decides about an object that a release has left with a count word of `QUIET` or less: true, it is dead and the
/// caller frees it. Otherwise it is a suspect now, or a dead one that `purge` frees.
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
        let suspects = &mut heap.suspects;
        if left < QUIET {
            // Without memory to note it the object, should it be garbage, is found when it is released once more.
            if suspects.list.try_reserve(1).is_ok() {
                suspects.list.push(obj);
                set_word(obj, left | QUIET);
            }
            return false;
        }
        let old = suspects.list.len().saturating_sub(RECENT);
        if let Some(at) = suspects.list.iter().skip(old).position(|&s| s == obj) {
            let _ = suspects.list.swap_remove(old + at);
            return true;
        }
        suspects.dead += 1;
        false
    }
}

/// Frees the suspects that have died, once that is worth it.
#[inline]
pub(crate) fn tidy(ctx: &mut Ctx) {
    // SAFETY: a context always points at the heap of its shard.
    let suspects = unsafe { &(*ctx.heap).suspects };
    if suspects.dead >= DEAD && suspects.dead * 2 > suspects.list.len() {
        purge(ctx);
    }
}

#[cold]
fn purge(ctx: &mut Ctx) {
    let mut i = 0;
    // SAFETY: a context always points at the heap of its shard; no reference is held across `free_graph`. What is on
    // the list with no reference left is freed by nobody else.
    unsafe {
        (*ctx.heap).suspects.dead = 0;
        loop {
            let list = &mut (*ctx.heap).suspects.list;
            let Some(&obj) = list.get(i) else { return };
            if word(obj) == QUIET {
                let _ = list.swap_remove(i);
                object::free_graph(ctx, obj);
            } else {
                i += 1;
            }
        }
    }
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

/// Collects when there are many suspects, or some and memory has grown. Called where generated code may trap or give
/// way: every reference is counted there.
#[inline]
pub fn poll(ctx: &mut Ctx) {
    // SAFETY: a context always points at the heap of its shard.
    let heap = unsafe { &*ctx.heap };
    let n = heap.suspects.list.len();
    if n > 0 && (heap.bytes_live > heap.suspects.bytes || n >= SUSPECTS + heap.suspects.patience) {
        let _ = collect(ctx);
    }
}

/// Collects because memory is short; whether anything was freed. As for `poll`.
#[cold]
pub fn relieve(ctx: &mut Ctx) -> bool {
    collect(ctx).is_some_and(|freed| freed > 0)
}

/// Collects until nothing is suspect any more. As for `poll`.
pub fn collect_all(ctx: &mut Ctx) {
    // What dies with a garbage cycle can leave new suspects, but each round frees something or is the last.
    while collect(ctx).is_some_and(|freed| freed > 0) {}
}

/// One collection: how many objects on garbage cycles it freed; `None` when it had no memory to work with, and nothing
/// has changed.
#[cold]
fn collect(ctx: &mut Ctx) -> Option<usize> {
    let plans = plans(ctx);
    // SAFETY: a context always points at the heap of its shard; the reference ends here.
    let roots = unsafe { std::mem::take(&mut (*ctx.heap).suspects.list) };
    let mut graph = Graph { nodes: Vec::new(), plans };
    // SAFETY: suspects are objects of this shard that nobody frees but `purge` and this function, and every reference
    // to an object is counted here (`poll`).
    unsafe {
        if graph.discover(&roots).is_none() || graph.mark().is_none() {
            graph.restore(&roots);
            let suspects = &mut (*ctx.heap).suspects;
            suspects.patience = suspects.patience.max(roots.len()) * 2;
            suspects.list = roots;
            return None;
        }
        (*ctx.heap).suspects.dead = 0;
        drop(roots);
        let freed = graph.free(ctx);
        let heap = &mut *ctx.heap;
        heap.suspects.patience = (graph.nodes.len() - freed).saturating_sub(SUSPECTS);
        let room = ((object::heap_limit() - heap.bytes_live) / 2).max(LEAST_GROWTH);
        heap.suspects.bytes = heap.bytes_live.saturating_add(heap.bytes_live.max(GROWTH).min(room));
        Some(freed)
    }
}

struct Graph<'p> {
    nodes: Vec<Node>,
    plans: &'p Plans,
}

impl Graph<'_> {
    /// Makes a node of an object. `None`: no memory.
    unsafe fn add(&mut self, obj: *mut Obj, word: i32, within: u32) -> Option<()> {
        let number = i32::try_from(self.nodes.len()).ok().filter(|n| *n < i32::MAX / 2)?;
        self.nodes.try_reserve(1).ok()?;
        self.nodes.push(Node { obj, word, within });
        // SAFETY: the caller gives a mortal object that has no node yet.
        unsafe { set_word(obj, -1 - number) };
        Some(())
    }

    /// Makes nodes of the suspects and of all that can be reached from them, and counts the references among them.
    /// `None`: no memory.
    unsafe fn discover(&mut self, roots: &[*mut Obj]) -> Option<()> {
        // SAFETY: see `collect`. Slots of live objects and of dead suspects are intact and counted.
        unsafe {
            for &obj in roots {
                let word = word(obj);
                // A count that overflowed has made the object immortal.
                if word >= 0 {
                    self.add(obj, word & !QUIET, 0)?;
                }
            }
            let mut i = 0;
            while let Some(node) = self.nodes.get(i) {
                let mut complete = true;
                complete &= each_slot(self.plans, node.obj, |slot, place| {
                    let child = *place as *mut Obj;
                    if slot != Slot::Counted || child.is_null() {
                        return true;
                    }
                    let word = word(child);
                    if word >= 0 {
                        // Every suspect is a node already. A count that has grown into the flag is taken for more
                        // references than there are.
                        return (word >= QUIET && !is_traced(self.plans, child)) || self.add(child, word, 1).is_some();
                    }
                    if let Some(node) = node_of(word).and_then(|n| self.nodes.get_mut(n)) {
                        node.within += 1;
                    }
                    true
                });
                if !complete {
                    return None;
                }
                i += 1;
            }
            Some(())
        }
    }

    /// Finds what is referred to from without, and all that it reaches. `None`: no memory.
    unsafe fn mark(&mut self) -> Option<()> {
        let mut pending: Vec<usize> = Vec::new();
        for i in 0..self.nodes.len() {
            let Some(node) = self.nodes.get_mut(i) else { continue };
            if node.within == LIVE || i64::from(node.word) == i64::from(node.within) {
                continue;
            }
            node.within = LIVE;
            let mut next = Some(node.obj);
            while let Some(owner) = next {
                // SAFETY: see `collect`.
                let complete = unsafe {
                    each_slot(self.plans, owner, |slot, place| {
                        let child = *place as *mut Obj;
                        if slot != Slot::Counted || child.is_null() {
                            return true;
                        }
                        let number = node_of(word(child));
                        if let Some((n, node)) = number.and_then(|n| Some((n, self.nodes.get_mut(n)?)))
                            && node.within != LIVE
                        {
                            node.within = LIVE;
                            if pending.try_reserve(1).is_err() {
                                return false;
                            }
                            pending.push(n);
                        }
                        true
                    })
                };
                if !complete {
                    return None;
                }
                next = pending.pop().and_then(|n| self.nodes.get(n)).map(|node| node.obj);
            }
        }
        Some(())
    }

    /// Gives every node its count back, and the suspects their flag.
    unsafe fn restore(&self, roots: &[*mut Obj]) {
        // SAFETY: nodes are live objects.
        unsafe {
            for node in &self.nodes {
                set_word(node.obj, node.word);
            }
            for &obj in roots {
                let word = word(obj);
                if word >= 0 {
                    set_word(obj, word | QUIET);
                }
            }
        }
    }

    /// Gives the live nodes their counts back and frees the others: how many.
    unsafe fn free(&mut self, ctx: &mut Ctx) -> usize {
        // SAFETY: nothing but garbage refers to garbage. It is freed once, after all it referred to has been given up;
        // references to other garbage need not be: a garbage object's word is negative, so releases pass it by.
        unsafe {
            for node in self.nodes.iter().filter(|node| node.within == LIVE) {
                set_word(node.obj, node.word);
            }
            let garbage = || self.nodes.iter().filter(|node| node.within != LIVE).map(|node| node.obj);
            let mut dead = Dead::default();
            let mut freed = 0;
            for obj in garbage() {
                let _ = each_slot(self.plans, obj, |slot, place| {
                    let _ = dead.give_up(ctx, self.plans, slot, *place);
                    true
                });
            }
            for obj in garbage() {
                object::free_memory(ctx, self.plans, obj);
                freed += 1;
            }
            while let Some(obj) = dead.pop() {
                object::free_graph(ctx, obj);
            }
            freed
        }
    }
}
