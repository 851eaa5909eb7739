//! The cycle collector in steps: what the program does between two of them, in every way that a reference can leave its
//! place.

// SAFETY, for the whole module: every object is made by the test that uses it, as what it is used as, and lives until
// that test gives up its reference; nothing else runs on the test's heap.

use super::Random;
use super::cycles::{
    ANY, KIDS, LINKS, MAYBE, NAMES, NEXT, NODE, NODE_CLASS, PREV, check_reached, get, link, node, set, shapes,
};
use crate::object::{self, Obj};
use crate::testing::World;
use crate::{copy, cycles, map, multi};
use abi::desc::TYPE_TEXT;

/// Most steps of one unit that the collections of a small test take.
const STEPS: usize = 2_000;

/// Two nodes that refer to each other, noted as suspects; the test holds the first.
fn pair(w: &mut World) -> (*mut Obj, *mut Obj) {
    let (a, b) = (node(w), node(w));
    set(w, a, NEXT, b);
    set(w, b, PREV, a);
    w.release(b);
    unsafe { object::retain(a) };
    w.release(a);
    (a, b)
}

/// Runs `change` after every possible number of steps into a collection, each time in a world of its own in which
/// `build` has made the test hold a node that leads to others. What the test holds in the end must be unharmed, and
/// nothing must be left when it is released.
fn at_every_step(
    build: impl Fn(&mut World) -> *mut Obj,
    change: impl Fn(&mut World, *mut Obj) -> *mut Obj,
    unharmed: impl Fn(&World, *mut Obj),
) {
    for steps in 0..STEPS {
        let mut w = World::new(shapes());
        let held = build(&mut w);
        let went_on = (0..steps).all(|_| cycles::step(&mut w.ctx, 1).is_some());
        let held = change(&mut w, held);
        for _ in 0..STEPS {
            let _ = cycles::step(&mut w.ctx, 1);
        }
        unharmed(&w, held);
        w.release(held);
        w.collect();
        assert_eq!(w.live(), (0, 0));
        if !went_on {
            assert!(steps > 20);
            return;
        }
    }
    panic!("a collection that does not end");
}

/// A node at the head of a list of nodes whose last one refers back to it, each with a number.
fn ring(w: &mut World, n: usize, kind: usize) -> *mut Obj {
    let nodes: Vec<_> = (0..n).map(|_| node(w)).collect();
    for i in 0..n {
        unsafe { *nodes[i].cast::<u64>().add(1) = i as u64 };
        link(w, nodes[i], kind, nodes[(i + 1) % n]);
        unsafe { object::retain(nodes[i]) };
        w.release(nodes[i]);
    }
    nodes[1..].iter().for_each(|&o| w.release(o));
    nodes[0]
}

fn number(obj: *mut Obj) -> u64 {
    unsafe { *obj.cast::<u64>().add(1) }
}

#[test]
fn a_reference_may_move_from_an_object_to_the_stack() {
    for (kind, shifted) in [(KIDS, false), (KIDS, true)] {
        at_every_step(
            |w| ring(w, 3, kind),
            |w, first| unsafe {
                // The test gives up the ring and keeps the second node, by the reference that the first one held.
                let list = get(first, KIDS);
                let taken = if shifted { multi::shift(&w.ctx, list) } else { multi::pop(&w.ctx, list) };
                w.release(first);
                taken.unwrap().0 as *mut Obj
            },
            |_, second| {
                assert_eq!(number(second), 1);
                let third = unsafe { multi::words(&World::new(shapes()).ctx, get(second, KIDS))[0] } as *mut Obj;
                assert_eq!(number(third), 2);
            },
        );
    }
}

#[test]
fn a_reference_may_move_to_an_object_that_was_seen_before() {
    // `keeper` is recorded early or late; the ring's reference moves to it.
    for kind in [NEXT, KIDS] {
        at_every_step(
            |w| {
                let first = ring(w, 3, KIDS);
                let keeper = node(w);
                link(w, first, kind, keeper);
                link(w, keeper, kind, first);
                w.release(first);
                keeper
            },
            |w, keeper| unsafe {
                let first = if kind == NEXT { get(keeper, NEXT) } else { kid(keeper, 0) };
                let list = get(first, KIDS);
                let (second, _) = multi::shift(&w.ctx, list).unwrap();
                *keeper.cast::<u64>().add(1 + ANY) = second;
                keeper
            },
            |_, keeper| {
                let second = get(keeper, ANY);
                assert_eq!(number(second), 1);
                assert_eq!(number(kid(second, 0)), 2);
            },
        );
    }
}

#[test]
fn a_cycle_may_close_by_moves_alone() {
    at_every_step(
        |w| {
            let (holder, outer, inner) = (node(w), node(w), node(w));
            // Only `outer` is suspect: the collection comes upon `inner` last.
            adopt(w, outer, inner);
            unsafe { object::retain(outer) };
            w.release(outer);
            adopt(w, holder, outer);
            holder
        },
        |w, holder| unsafe {
            // No count changes: `outer` moves from its holder into `inner`, which has moved out of `outer` to the stack.
            let outer = kid(holder, 0);
            let (inner, _) = multi::pop(&w.ctx, get(outer, KIDS)).unwrap();
            let (outer, _) = multi::pop(&w.ctx, get(holder, KIDS)).unwrap();
            *(inner as *mut u64).add(1 + ANY) = outer;
            w.release(holder);
            inner as *mut Obj
        },
        |w, inner| {
            let outer = get(inner, ANY);
            assert!(unsafe { multi::words(&w.ctx, get(outer, KIDS)) }.is_empty());
        },
    );
}

/// Moves the test's reference to `kid` into `kids` of `owner`.
fn adopt(w: &mut World, owner: *mut Obj, kid: *mut Obj) {
    unsafe {
        if get(owner, KIDS).is_null() {
            *owner.cast::<u64>().add(1 + KIDS) = multi::new(&mut w.ctx, NODE, 0) as u64;
        }
        assert!(multi::push(&mut w.ctx, get(owner, KIDS), kid as u64, 0));
    }
}

fn kid(obj: *mut Obj, i: usize) -> *mut Obj {
    unsafe { *(*get(obj, KIDS).cast::<multi::Multi>()).data.add(i) as *mut Obj }
}

#[test]
fn garbage_is_found_while_the_program_goes_on() {
    // What is garbage when a collection begins is gone at its end, whatever else happens.
    for unit in [1, 7, 1000] {
        let mut w = World::new(shapes());
        let (busy, other) = pair(&mut w);
        let garbage = ring(&mut w, 50, NAMES);
        w.release(garbage);
        let before = w.live().0;
        while cycles::step(&mut w.ctx, unit).is_some() {
            set(&mut w, other, PREV, std::ptr::null_mut());
            set(&mut w, other, PREV, busy);
        }
        // Nodes, their maps, and a key for each.
        assert_eq!(w.live().0, before - 150);
        w.release(busy);
    }
}

#[test]
fn fields_entries_and_payloads_may_be_replaced() {
    for kind in [NEXT, NAMES, ANY, MAYBE] {
        at_every_step(
            |w| ring(w, 4, kind),
            |w, first| {
                // Keeps the third node only.
                let second = inner(first, kind);
                let third = inner(second, kind);
                unsafe { object::retain(third) };
                link(w, first, kind, first);
                w.release(first);
                third
            },
            |_, third| {
                assert_eq!(number(third), 2);
                assert_eq!(number(inner(third, kind)), 3);
            },
        );
    }
}

fn inner(obj: *mut Obj, kind: usize) -> *mut Obj {
    let held = get(obj, kind);
    match kind {
        NAMES => unsafe { *map::entries(held).next().unwrap().add(1) as *mut Obj },
        MAYBE => get(held, 0),
        _ => held,
    }
}

#[test]
fn elements_may_change_places() {
    at_every_step(
        |w| {
            let owner = node(w);
            for _ in 0..10 {
                let kid = node(w);
                adopt(w, owner, kid);
            }
            unsafe { object::retain(owner) };
            w.release(owner);
            owner
        },
        |w, owner| unsafe {
            // The element that comes last now may have been seen already. It is kept, and the only reference to the
            // owner moves into it.
            let first = kid(owner, 0);
            object::retain(first);
            multi::reverse(&w.ctx, get(owner, KIDS));
            *first.cast::<u64>().add(1 + ANY) = owner as u64;
            first
        },
        |_, first| assert_eq!(kid(get(first, ANY), 9), first),
    );
}

#[test]
fn objects_die_and_their_memory_is_used_again() {
    at_every_step(
        |w| ring(w, 2, NEXT),
        |w, first| {
            // Without its cycle the ring is freed at once. Two other objects take its place.
            let second = get(first, NEXT);
            set(w, second, NEXT, std::ptr::null_mut());
            w.release(first);
            let others = multi::new(&mut w.ctx, NODE, 2);
            for i in 0..2 {
                let other = node(w);
                unsafe {
                    *other.cast::<u64>().add(1) = i;
                    assert!(multi::push(&mut w.ctx, others, other as u64, 0));
                }
            }
            others
        },
        |w, others| {
            let words = unsafe { multi::words(&w.ctx, others) };
            assert_eq!(words.iter().map(|&word| number(word as *mut Obj)).collect::<Vec<_>>(), [0, 1]);
            assert_eq!(w.live().0, 3);
        },
    );
}

#[test]
fn what_a_collection_knows_does_not_travel() {
    for steps in 0..200 {
        let mut w = World::new(shapes());
        let (a, b) = pair(&mut w);
        let message = node(&mut w);
        link(&mut w, message, ANY, a);
        w.release(a);
        // No cycle any more: every object has one reference.
        set(&mut w, b, PREV, std::ptr::null_mut());
        for _ in 0..steps {
            let _ = cycles::step(&mut w.ctx, 1);
        }
        let sent = unsafe { copy::transfer(&mut w.ctx, message) };
        let known = |obj| cycles::knows(unsafe { &mut *w.ctx.heap }, obj);
        let parts = [sent, get(sent, ANY), get(get(sent, ANY), NEXT)];
        assert!(parts.iter().all(|&part| !known(part)));
        w.release(sent);
    }
}

/// Steps of a poll and what they change: nothing is left undone, and no poll does more than `STEP`.
#[test]
fn a_poll_takes_a_bounded_step() {
    const LIVE: usize = if cfg!(miri) { 2_000 } else { 1_000_000 };
    let mut w = World::new(shapes());
    let kids = multi::new(&mut w.ctx, NODE, 0);
    let anchor = ring(&mut w, 3, NEXT);
    for _ in 0..LIVE / 2 {
        let (kid, other) = pair(&mut w);
        set(&mut w, other, NEXT, anchor);
        assert!(unsafe { multi::push(&mut w.ctx, kids, kid as u64, 0) });
    }
    let (mut known, mut polls, mut worked) = (0, 0, false);
    let live = w.live().0;
    while cycles::step(&mut w.ctx, 0).is_none() || !worked || polls < 2_000_000 {
        let garbage = pair(&mut w);
        w.release(garbage.0);
        let before = w.live().0;
        cycles::poll(&mut w.ctx);
        polls += 1;
        let Some(now) = cycles::step(&mut w.ctx, 0) else { break };
        worked |= now > LIVE;
        assert!(now <= known.max(1) + cycles::STEP as usize, "{known} to {now}");
        assert!(before - w.live().0 <= cycles::STEP as i64);
        known = now;
        if cfg!(miri) && polls > 50 {
            break;
        }
    }
    println!("{polls} polls, {} objects more than the {live} at first", w.live().0 - live);
    assert!(worked || cfg!(miri));
    w.release(kids);
    w.release(anchor);
}

/// Random links between nodes, moved, replaced and dropped between the steps of collections.
#[test]
fn random_changes_between_steps_follow_the_model() {
    for seed in 1..if cfg!(miri) { 4 } else { 300u64 } {
        let mut r = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let longest = [1, 2, 5, 20, 300][seed as usize % 5];
        let mut m = Model { w: World::new(shapes()), nodes: Vec::new(), edges: Vec::new() };
        for _ in 0..if cfg!(miri) { 60 } else { 1500 } {
            m.change(&mut r);
            if r.below(3) > 0 {
                let _ = cycles::step(&mut m.w.ctx, 1 + r.below(longest));
            }
            if r.below(10) == 0 {
                let alive = m.reached();
                let _ = check_reached(&m.w, &m.nodes, &m.edges, &alive);
            }
        }
        m.w.collect();
        let alive = m.reached();
        assert_eq!(check_reached(&m.w, &m.nodes, &m.edges, &alive), m.w.live().0, "seed {seed}");
        for (obj, held) in std::mem::take(&mut m.nodes) {
            (0..held).for_each(|_| m.w.release(obj));
        }
        m.w.collect();
        assert_eq!(m.w.live(), (0, 0), "seed {seed}");
    }
}

/// What the test believes: per number the node while it can be reached, the references that the test holds, the links
/// by kind and number.
struct Model {
    w: World,
    nodes: Vec<(*mut Obj, u32)>,
    edges: Vec<Vec<(usize, usize)>>,
}

impl Model {
    fn reached(&self) -> Vec<bool> {
        let mut seen = vec![false; self.nodes.len()];
        let mut todo: Vec<usize> = (0..self.nodes.len()).filter(|&i| self.nodes[i].1 > 0).collect();
        while let Some(i) = todo.pop() {
            if !std::mem::replace(&mut seen[i], true) {
                todo.extend(self.edges[i].iter().map(|e| e.1));
            }
        }
        seen
    }

    fn change(&mut self, r: &mut Random) {
        let alive = self.reached();
        let alive: Vec<usize> = (0..alive.len()).filter(|&i| alive[i]).collect();
        if alive.is_empty() || (r.below(6) == 0 && alive.len() < 40) {
            let obj = node(&mut self.w);
            assert_eq!(object::shapes(&self.w.ctx).classes[NODE_CLASS as usize].name, "Node");
            unsafe { *obj.cast::<u64>().add(1) = self.nodes.len() as u64 };
            self.nodes.push((obj, 1));
            self.edges.push(Vec::new());
            return;
        }
        let mut pick = |n: usize| r.below(n as u64) as usize;
        let (from, to, kind) = (alive[pick(alive.len())], alive[pick(alive.len())], LINKS[pick(6)]);
        let kids = get(self.nodes[from].0, KIDS);
        match pick(12) {
            0..=3 => self.link(from, kind, to),
            4 => {
                set(&mut self.w, self.nodes[from].0, kind, std::ptr::null_mut());
                self.edges[from].retain(|e| e.0 != kind);
            }
            5 => {
                unsafe { object::retain(self.nodes[to].0) };
                self.nodes[to].1 += 1;
            }
            6 | 7 if self.nodes[from].1 > 0 => {
                self.nodes[from].1 -= 1;
                self.w.release(self.nodes[from].0);
            }
            8 if !kids.is_null() => unsafe {
                multi::reverse(&self.w.ctx, kids);
                let mut order: Vec<_> = self.edges[from].iter().filter(|e| e.0 == KIDS).copied().collect();
                self.edges[from].retain(|e| e.0 != KIDS);
                order.reverse();
                self.edges[from].extend(order);
            },
            9 | 10 if !kids.is_null() => {
                // Generated code holds the object that it writes to, be it by what a variable holds.
                let into = self.nodes[to].0;
                let by_variable = self.nodes[to].1 > 0;
                if !by_variable {
                    unsafe { object::retain(into) };
                }
                if let Some(taken) = self.take(from, pick(2) == 0) {
                    if pick(2) == 0 {
                        self.nodes[taken].1 += 1;
                    } else {
                        // Straight on into another place.
                        put(&mut self.w, into, self.nodes[taken].0);
                        self.edges[to].retain(|e| e.0 != ANY);
                        self.edges[to].push((ANY, taken));
                    }
                }
                if !by_variable {
                    self.w.release(into);
                }
            }
            11 => unsafe {
                let key = self.w.text("a key");
                let names = get(self.nodes[from].0, NAMES);
                let removed = map::remove(&mut self.w.ctx, names, key as u64);
                assert_eq!(removed, self.edges[from].iter().any(|e| e.0 == NAMES));
                self.edges[from].retain(|e| e.0 != NAMES);
                self.w.release(key);
            },
            _ => {}
        }
    }

    fn link(&mut self, from: usize, kind: usize, to: usize) {
        link(&mut self.w, self.nodes[from].0, kind, self.nodes[to].0);
        if kind != KIDS {
            self.edges[from].retain(|e| e.0 != kind);
        }
        self.edges[from].push((kind, to));
    }

    /// The first or last of the node's `kids`, whose reference is the caller's.
    fn take(&mut self, from: usize, first: bool) -> Option<usize> {
        let kids = get(self.nodes[from].0, KIDS);
        let word = unsafe { if first { multi::shift(&self.w.ctx, kids) } else { multi::pop(&self.w.ctx, kids) } };
        let links = &mut self.edges[from];
        let at = if first { links.iter().position(|e| e.0 == KIDS) } else { links.iter().rposition(|e| e.0 == KIDS) };
        let at = at?;
        let (_, taken) = links.remove(at);
        assert_eq!(word.unwrap().0, self.nodes[taken].0 as u64);
        Some(taken)
    }
}

/// Puts an owned reference into `any` of `obj`.
fn put(w: &mut World, obj: *mut Obj, owned: *mut Obj) {
    unsafe {
        let place = obj.cast::<u64>().add(1 + ANY);
        let old = std::mem::replace(&mut *place, owned as u64);
        object::release(&mut w.ctx, old as *mut Obj);
    }
}

/// A map whose entries move while they are recorded.
#[test]
fn entries_may_be_removed_and_close_up() {
    at_every_step(
        |w| {
            let first = node(w);
            let names = map::new(&mut w.ctx, TYPE_TEXT, NODE);
            unsafe { *first.cast::<u64>().add(1 + NAMES) = names as u64 };
            for i in 0..12 {
                let (kid, other) = pair(w);
                link(w, other, NEXT, first);
                let key = w.text(&format!("a key of number {i}"));
                unsafe { *map::slot(&mut w.ctx, names, key as u64) = kid as u64 };
                w.release(key);
            }
            unsafe { object::retain(first) };
            w.release(first);
            first
        },
        |w, first| unsafe {
            let names = get(first, NAMES);
            for i in [3, 4, 7] {
                let key = w.text(&format!("a key of number {i}"));
                assert!(map::remove(&mut w.ctx, names, key as u64));
                w.release(key);
            }
            // By position: closes the gaps.
            assert!(!map::entry(&mut w.ctx, names, 5).is_null());
            object::retain(names);
            w.release(first);
            names
        },
        |_, names| {
            let all: Vec<_> = unsafe { map::entries(names).map(|e| *e.add(1)).collect() };
            assert_eq!(all.len(), 9);
            for kid in all {
                let other = get(kid as *mut Obj, NEXT);
                assert_eq!(get(other, PREV) as u64, kid);
                assert_eq!(get(get(other, NEXT), NAMES), names);
            }
        },
    );
}
