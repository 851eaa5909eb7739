//! One collection, in steps that take a bounded number of units of work: one unit per object or reference looked at.

use super::chunks::shrink;
use super::graph::{self, LIVE, Node, SEED};
use super::{DYING, lost, set_word, word};
use crate::copy::visit_slots;
use crate::ctx::{Ctx, Heap};
use crate::object::{self, Dead, Obj, Plans, Slot, plans};
use abi::layout::{IMMORTAL, QUIET};

/// What a collection does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Idle,
    /// Makes nodes of the suspects.
    Roots,
    /// Records the references of each node, and makes nodes of what they lead to.
    Scan,
    /// Finds the nodes that something else refers to.
    Verify,
    /// Finds what those reach.
    Spread,
    /// Marks the others, which are garbage, so that releases pass them by.
    Condemn,
    /// Gives up what garbage refers to.
    GiveUp,
    Free,
    /// Frees the tables.
    Retire,
    /// For want of memory: makes the suspects suspects again, then frees the tables.
    Restore,
}

/// Where a collection stands.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub phase: Phase,
    /// The node, or the suspect, that is next.
    node: usize,
    /// Slot of that node.
    slot: u64,
    /// References that `spread` still has to follow.
    edges: (u32, u32),
    /// First node of the pile that `spread` works off, plus one.
    pile: u32,
    /// A reference was lost that could not be noted: nothing is known about garbage.
    pub broken: bool,
    /// It had no memory to go on with.
    pub abandoned: bool,
    /// Nodes that live.
    pub live: usize,
}

impl Progress {
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.node = 0;
        self.slot = 0;
    }

    /// Whether lost references must be noted, and nodes that are freed be forgotten.
    #[inline]
    pub fn watches(&self) -> bool {
        matches!(self.phase, Phase::Roots | Phase::Scan | Phase::Verify | Phase::Restore)
    }
}

fn node_at(heap: &mut Heap) -> Option<&mut Node> {
    let at = heap.cycles.progress.node;
    heap.cycles.graph.nodes.get_mut(at)
}

/// Goes on to the next phase after the last node.
fn next_node(heap: &mut Heap, then: Phase) {
    let cycles = &mut heap.cycles;
    cycles.progress.node += 1;
    cycles.progress.slot = 0;
    if cycles.progress.node >= cycles.graph.nodes.len() {
        cycles.progress.enter(then);
    }
}

/// Begins a collection with the first `roots` suspects.
pub(super) fn begin(heap: &mut Heap, roots: usize) {
    heap.cycles.roots = roots;
    heap.cycles.progress = Progress { phase: Phase::Roots, ..Progress::default() };
}

/// Takes at most `units` units of work; how many are left when the collection ends.
///
/// # Safety
/// Every word on a stack that refers to an object is counted, or was read from what such a word leads to.
pub(super) unsafe fn advance(ctx: &mut Ctx, units: u64) -> u64 {
    let plans = plans(ctx);
    let mut left = units;
    // SAFETY: a context always points at the heap of its shard; no reference to it is held across a step.
    unsafe {
        while left > 0 && (*ctx.heap).cycles.progress.phase != Phase::Idle {
            if !(*ctx.heap).cycles.pending.is_empty() {
                let mut pending = std::mem::take(&mut (*ctx.heap).cycles.pending);
                object::free_some(ctx, plans, &mut pending, &mut left);
                (*ctx.heap).cycles.pending = pending;
                continue;
            }
            left -= 1;
            let heap = &mut *ctx.heap;
            match heap.cycles.progress.phase {
                Phase::Idle => {}
                Phase::Roots => root(heap, plans),
                Phase::Scan => repeat(heap, &mut left, |heap, left| scan(heap, plans, left)),
                Phase::Verify => repeat(heap, &mut left, |heap, _| verify(heap)),
                Phase::Spread => repeat(heap, &mut left, |heap, _| spread(heap)),
                Phase::Condemn => repeat(heap, &mut left, |heap, _| condemn(heap)),
                Phase::GiveUp => give_up(ctx, plans, &mut left),
                Phase::Free => free(ctx, plans),
                Phase::Retire => retire(heap),
                Phase::Restore => restore(heap),
            }
        }
    }
    left
}

/// Takes steps of the current phase while it lasts and units are left; the first one is paid for.
#[inline]
fn repeat(heap: &mut Heap, left: &mut u64, mut step: impl FnMut(&mut Heap, &mut u64)) {
    let phase = heap.cycles.progress.phase;
    loop {
        step(heap, left);
        if *left == 0 || heap.cycles.progress.phase != phase {
            return;
        }
        *left -= 1;
    }
}

/// Takes the `i`-th of the suspects that the collection began with off the list.
fn drop_root(heap: &mut Heap, i: usize) {
    let cycles = &mut heap.cycles;
    let last = cycles.roots - 1;
    if let Some(root) = cycles.suspects.get(last)
        && let Some(place) = cycles.suspects.get_mut(i)
    {
        *place = root;
    }
    cycles.suspects.swap_remove(last);
    cycles.roots = last;
}

// -- steps: of each phase one, all of which rely on the promise of `advance` ---------------------------------------

/// Makes a node of the next suspect, the `i`-th of the `i`-th. A shell is freed.
unsafe fn root(heap: &mut Heap, plans: &Plans) {
    let i = heap.cycles.progress.node;
    let root = if i < heap.cycles.roots { heap.cycles.suspects.get(i) } else { None };
    let Some(obj) = root else {
        heap.cycles.progress.enter(if i == 0 { Phase::Retire } else { Phase::Scan });
        return;
    };
    // SAFETY: what is on the list of suspects is freed by nobody else while it has `QUIET`.
    unsafe {
        let left = word(obj);
        if left == QUIET {
            drop_root(heap, i);
            heap.cycles.shells -= 1;
            object::give_back(heap, obj.cast(), object::block(plans, obj));
        } else if left == DYING {
            // There was no memory for the list of what is to be taken apart.
            drop_root(heap, i);
            set_word(obj, 0);
            heap.cycles.pending.push(obj);
        } else if left < 0 {
            // A count that overflowed has made the object immortal.
            drop_root(heap, i);
        } else if graph::add(heap, obj).is_some() {
            set_word(obj, left & !QUIET);
            heap.cycles.progress.node += 1;
        } else {
            heap.cycles.progress.enter(Phase::Restore);
        }
    }
}

unsafe fn scan(heap: &mut Heap, plans: &Plans, left: &mut u64) {
    let mut slot = heap.cycles.progress.slot;
    let edges = heap.cycles.graph.edges.len() as u32;
    let Some(node) = node_at(heap) else { return };
    if slot == 0 {
        node.edges = edges;
    }
    let obj = node.obj;
    if obj.is_null() {
        next_node(heap, Phase::Verify);
        return;
    }
    let mut stored = true;
    // SAFETY: nodes that have been freed are null.
    let done = unsafe {
        visit_slots(plans, obj, &mut slot, left, |kind, word| {
            stored = kind != Slot::Counted || record(heap, word as *mut Obj);
            stored
        })
    };
    heap.cycles.progress.slot = slot;
    if !stored {
        heap.cycles.progress.enter(Phase::Restore);
    } else if done {
        next_node(heap, Phase::Verify);
    }
}

/// Records a reference of the current node. False: no memory.
unsafe fn record(heap: &mut Heap, child: *mut Obj) -> bool {
    // SAFETY: slots of live objects hold live objects or null.
    if child.is_null() || !(0..QUIET).contains(&unsafe { word(child) }) {
        // On no cycle, or a suspect again, which the next collection begins with.
        return true;
    }
    let number = heap.cycles.graph.number(child).or_else(|| graph::add(heap, child));
    number.is_some_and(|number| graph::refer(heap, number))
}

unsafe fn verify(heap: &mut Heap) {
    if let Some(node) = node_at(heap) {
        // SAFETY: nodes that have been freed are null.
        if node.obj.is_null() || i64::from(unsafe { word(node.obj) }) != i64::from(node.within) {
            node.within = SEED;
        }
    }
    next_node(heap, Phase::Spread);
    if heap.cycles.progress.phase == Phase::Spread && heap.cycles.progress.broken {
        heap.cycles.progress.enter(Phase::Restore);
    }
}

/// Follows one reference of a node that lives, or takes up the next such node.
fn spread(heap: &mut Heap) {
    let (progress, graph) = (&mut heap.cycles.progress, &mut heap.cycles.graph);
    let (edge, end) = progress.edges;
    if edge < end {
        progress.edges.0 += 1;
        if let Some(number) = graph.edges.get(edge as usize)
            && let Some(node) = graph.nodes.get_mut(number as usize)
            && node.within < LIVE
        {
            node.within = LIVE | progress.pile;
            progress.pile = number + 1;
        }
    } else if let Some(number) = progress.pile.checked_sub(1) {
        progress.edges = graph.range(number as usize);
        progress.pile = graph.nodes.get(number as usize).map_or(0, |node| node.within & !LIVE);
        progress.live += 1;
    } else if let Some(node) = graph.nodes.get(progress.node) {
        if node.within == SEED {
            progress.edges = graph.range(progress.node);
            progress.live += 1;
        }
        progress.node += 1;
    } else {
        progress.enter(if progress.live < graph.nodes.len() { Phase::Condemn } else { Phase::Retire });
    }
}

/// The current node, if it is garbage.
fn garbage(heap: &mut Heap) -> Option<*mut Obj> {
    node_at(heap).filter(|node| node.within < LIVE).map(|node| node.obj)
}

unsafe fn condemn(heap: &mut Heap) {
    if let Some(obj) = garbage(heap) {
        // SAFETY: nothing but garbage refers to garbage, and nobody frees it but `free`.
        unsafe { set_word(obj, IMMORTAL) };
    }
    next_node(heap, Phase::GiveUp);
}

unsafe fn give_up(ctx: &mut Ctx, plans: &Plans, left: &mut u64) {
    // SAFETY: as for `condemn`; what else the garbage held is given up once. No reference to the heap is held across
    // `Dead::give_up`.
    unsafe {
        let mut done = true;
        if let Some(obj) = garbage(&mut *ctx.heap) {
            let mut slot = (*ctx.heap).cycles.progress.slot;
            let mut pending: Dead = std::mem::take(&mut (*ctx.heap).cycles.pending);
            done = visit_slots(plans, obj, &mut slot, left, |kind, word| {
                // A large part is taken apart first.
                !pending.give_up(ctx, plans, kind, word)
            });
            (*ctx.heap).cycles.pending = pending;
            (*ctx.heap).cycles.progress.slot = slot;
        }
        if done {
            next_node(&mut *ctx.heap, Phase::Free);
        }
    }
}

unsafe fn free(ctx: &mut Ctx, plans: &Plans) {
    // SAFETY: as for `condemn`; all references to garbage have been passed by.
    unsafe {
        if let Some(obj) = garbage(&mut *ctx.heap) {
            object::free_memory(ctx, plans, obj);
        }
        next_node(&mut *ctx.heap, Phase::Retire);
    }
}

fn retire(heap: &mut Heap) {
    if let Some(last) = heap.cycles.roots.checked_sub(1) {
        heap.cycles.suspects.swap_remove(last);
        heap.cycles.roots = last;
    } else if !graph::retire(heap) {
        let len = heap.cycles.suspects.len();
        if !shrink(heap, |heap| &mut heap.cycles.suspects, len) {
            heap.cycles.progress.enter(Phase::Idle);
            super::ended(heap);
        }
    }
}

/// Makes the last of the remaining roots a suspect as before, unless it is noted anew or no more.
unsafe fn restore(heap: &mut Heap) {
    heap.cycles.progress.abandoned = true;
    let Some(i) = heap.cycles.roots.checked_sub(1) else {
        heap.cycles.progress.enter(Phase::Retire);
        return;
    };
    heap.cycles.roots = i;
    let Some(node) = heap.cycles.graph.nodes.get(i) else { return };
    // SAFETY: nodes that have been freed are null.
    unsafe {
        if !node.obj.is_null() && (0..QUIET).contains(&word(node.obj)) {
            set_word(node.obj, word(node.obj) | QUIET);
        } else {
            heap.cycles.suspects.swap_remove(i);
        }
    }
}

/// The elements of a container change places, which may be those of a node whose references are recorded in part: then
/// none of them counts as recorded.
///
/// # Safety
/// `words` are live objects or null.
pub(super) unsafe fn reordered(heap: &mut Heap, container: *mut Obj, words: &[u64]) {
    let scans = heap.cycles.progress.phase == Phase::Scan && heap.cycles.progress.slot > 0;
    if scans && node_at(heap).is_some_and(|node| node.obj == container) {
        // SAFETY: the caller's promise.
        words.iter().for_each(|&word| unsafe { lost(heap, word as *mut Obj) });
    }
}
