//! The cycle collector: small graphs of every kind of link, and random ones against a model of reachability.

// SAFETY, for the whole module: every object is made by the test that uses it, as what it is used as, and lives until
// that test gives up its reference; nothing else runs on the test's heap.

use super::Random;
use crate::object::{self, Obj};
use crate::testing::{World, add_class, add_type, fixed_shapes};
use crate::{copy, cycles, map, multi, shape};
use abi::desc::{ClassDesc, ClassKind, FieldDesc, Shapes, TYPE_INT, TYPE_TEXT, TypeDesc, UnionDesc};

/// Type of the elements of `kids` and the values of `names`.
pub(super) const NODE: u32 = 6;
/// Fields of a node.
pub(super) const NEXT: usize = 1;
pub(super) const PREV: usize = 2;
pub(super) const KIDS: usize = 3;
pub(super) const NAMES: usize = 4;
pub(super) const ANY: usize = 5;
pub(super) const MAYBE: usize = 6;
pub(super) const LEAF: usize = 7;

pub(super) const NODE_CLASS: u32 = 0;
const LEAF_CLASS: u32 = 1;
const SOME_CLASS: u32 = 2;

/// `Node { n: Int, next: ?Node, prev: ?Node, kids: multi Node, names: map<Text, Node>, any: ?Interface,
/// maybe: ?(Some(Node) | None), leaf: ?Leaf }` and `Leaf { tag: Text }`.
pub(super) fn shapes() -> Shapes {
    let mut s = fixed_shapes();
    let node = add_type(&mut s, TypeDesc::Object(NODE_CLASS));
    assert_eq!(node, NODE);
    let next = add_type(&mut s, TypeDesc::Nullable(node));
    let kids = add_type(&mut s, TypeDesc::Multi(node));
    let names = add_type(&mut s, TypeDesc::Map(TYPE_TEXT, node));
    let any = add_type(&mut s, TypeDesc::Interface);
    let any = add_type(&mut s, TypeDesc::Nullable(any));
    let union = add_type(&mut s, TypeDesc::Union(0));
    let union = add_type(&mut s, TypeDesc::Nullable(union));
    let leaf = add_type(&mut s, TypeDesc::Object(LEAF_CLASS));
    let leaf = add_type(&mut s, TypeDesc::Nullable(leaf));
    let fields = [
        ("n", TYPE_INT, None),
        ("next", next, None),
        ("prev", next, None),
        ("kids", kids, None),
        ("names", names, None),
        ("any", any, None),
        ("maybe", union, None),
        ("leaf", leaf, None),
    ];
    assert_eq!(add_class(&mut s, "Node", &fields), NODE_CLASS);
    assert_eq!(add_class(&mut s, "Leaf", &[("tag", TYPE_TEXT, None)]), LEAF_CLASS);
    s.classes.push(ClassDesc {
        name: "Some".into(),
        package: None,
        kind: ClassKind::Variant { union: 0, ordinal: 0 },
        size: 16,
        fields: vec![FieldDesc { name: "0".into(), ty: node, offset: 8, default: None }],
        reply: None,
    });
    s.unions.push(UnionDesc { name: "Maybe".into(), variants: vec!["Some".into()], classes: vec![SOME_CLASS] });
    s
}

pub(super) fn node(w: &mut World) -> *mut Obj {
    object::new(&mut w.ctx, NODE_CLASS)
}

/// Lets field `i` of `from` refer to `to`, which is retained, and releases what it referred to.
pub(super) fn set(w: &mut World, from: *mut Obj, i: usize, to: *mut Obj) {
    unsafe {
        object::retain(to);
        let place = from.cast::<u64>().add(1 + i);
        let old = std::mem::replace(&mut *place, to as u64);
        object::release(&mut w.ctx, old as *mut Obj);
    }
}

pub(super) fn get(from: *mut Obj, i: usize) -> *mut Obj {
    unsafe { *from.cast::<u64>().add(1 + i) as *mut Obj }
}

/// As `set`, by a path of this kind.
pub(super) fn link(w: &mut World, from: *mut Obj, kind: usize, to: *mut Obj) {
    unsafe {
        match kind {
            KIDS => {
                if get(from, KIDS).is_null() {
                    *from.cast::<u64>().add(1 + KIDS) = multi::new(&mut w.ctx, NODE, 0) as u64;
                }
                object::retain(to);
                assert!(multi::push(&mut w.ctx, get(from, KIDS), to as u64, 0));
            }
            NAMES => {
                if get(from, NAMES).is_null() {
                    *from.cast::<u64>().add(1 + NAMES) = map::new(&mut w.ctx, TYPE_TEXT, NODE) as u64;
                }
                let key = w.text("a key");
                object::retain(to);
                let place = map::slot(&mut w.ctx, get(from, NAMES), key as u64);
                let old = std::mem::replace(&mut *place, to as u64);
                object::release(&mut w.ctx, old as *mut Obj);
                w.release(key);
            }
            MAYBE => {
                let some = object::new(&mut w.ctx, SOME_CLASS);
                set(w, some, 0, to);
                set(w, from, MAYBE, some);
                w.release(some);
            }
            kind => set(w, from, kind, to),
        }
    }
}

pub(super) const LINKS: [usize; 6] = [NEXT, PREV, KIDS, NAMES, ANY, MAYBE];

#[test]
fn classes_on_cycles_are_found() {
    let found = shape::cyclic(&shapes());
    assert_eq!(found.classes, [true, false, true]);
    let mut s = fixed_shapes();
    // `Owner { item: Item }`, `Item { tags: multi Text }`: no cycle.
    let item = add_type(&mut s, TypeDesc::Object(1));
    let tags = add_type(&mut s, TypeDesc::Multi(TYPE_TEXT));
    let _ = add_class(&mut s, "Owner", &[("item", item, None)]);
    let _ = add_class(&mut s, "Item", &[("tags", tags, None)]);
    let found = shape::cyclic(&s);
    assert_eq!(found.classes, [false, false]);
    assert!(found.types.iter().all(|t| !t));
    // An interface field can refer to any class, but a class without fields that hold objects still is on no cycle.
    let any = add_type(&mut s, TypeDesc::Interface);
    let _ = add_class(&mut s, "Box", &[("any", any, None)]);
    assert_eq!(shape::cyclic(&s).classes, [false, false, true]);
    // A long chain does not recurse.
    let mut s = fixed_shapes();
    for i in 0..20_000 {
        let next = add_class(&mut s, "C", &[]);
        s.types.push(TypeDesc::Object((i + 1) % 20_000));
        let ty = s.types.len() as u32 - 1;
        s.classes[next as usize].fields.push(FieldDesc { name: "f".into(), ty, offset: 8, default: None });
    }
    assert!(shape::cyclic(&s).classes.iter().all(|c| *c));
}

#[test]
fn loops_of_every_kind_of_link_are_freed() {
    for first in LINKS {
        let mut w = World::new(shapes());
        let alone = node(&mut w);
        link(&mut w, alone, first, alone);
        w.release(alone);
        assert!(w.live().0 > 0);
        w.collect();
        assert_eq!(w.live(), (0, 0), "loop by {first}");
        for second in LINKS {
            let (a, b) = (node(&mut w), node(&mut w));
            let leaf = object::new(&mut w.ctx, LEAF_CLASS);
            set(&mut w, a, LEAF, leaf);
            w.release(leaf);
            link(&mut w, a, first, b);
            link(&mut w, b, second, a);
            w.release(a);
            w.collect();
            assert_ne!(w.live().0, 0, "{first} and {second}");
            w.release(b);
            w.collect();
            assert_eq!(w.live(), (0, 0), "{first} and {second}");
        }
    }
}

#[test]
fn a_container_may_be_what_holds_a_cycle() {
    let mut w = World::new(shapes());
    let a = node(&mut w);
    link(&mut w, a, KIDS, a);
    let kids = get(a, KIDS);
    unsafe { object::retain(kids) };
    w.release(a);
    w.collect();
    assert_eq!(unsafe { multi::words(&w.ctx, kids) }, [a as u64]);
    w.release(kids);
    w.collect();
    assert_eq!(w.live(), (0, 0));
}

#[test]
fn a_long_doubly_linked_list_is_freed() {
    let mut w = World::new(shapes());
    let first = node(&mut w);
    let mut last = first;
    for _ in 0..100_000 {
        let next = node(&mut w);
        set(&mut w, last, NEXT, next);
        set(&mut w, next, PREV, last);
        w.release(next);
        last = next;
    }
    unsafe { object::retain(last) };
    w.release(first);
    w.collect();
    assert_eq!(w.live().0, 100_001);
    w.release(last);
    w.collect();
    assert_eq!(w.live(), (0, 0));
}

#[test]
fn suspects_may_die_before_they_are_looked_at() {
    let mut w = World::new(shapes());
    for n in [1, 7, 20, 1000] {
        let nodes: Vec<_> = (0..n).map(|_| node(&mut w)).collect();
        for &o in &nodes {
            unsafe { object::retain(o) };
            w.release(o);
        }
        for &o in &nodes {
            w.release(o);
        }
        assert_eq!(w.live().0, 0);
        assert!(w.live().1 < LEFT, "{n}: {} bytes", w.live().1);
        w.collect();
        assert_eq!(w.live(), (0, 0));
    }
}

#[test]
fn a_dead_suspect_gives_up_what_it_held() {
    for kind in LINKS {
        let mut w = World::new(shapes());
        let (a, b) = (node(&mut w), node(&mut w));
        link(&mut w, a, kind, b);
        // The last ones are out of reach of the quick look.
        let others: Vec<_> = (0..20).map(|_| node(&mut w)).collect();
        for &o in [a, b].iter().chain(&others) {
            suspect(&mut w, o);
        }
        w.release(b);
        assert!(w.live().0 >= 22);
        w.release(a);
        assert_eq!(w.live().0, 20, "link by {kind}");
        others.iter().for_each(|&o| w.release(o));
    }
}

/// Bytes that nothing but suspects which have died, and their list, may take.
const LEFT: i64 = 32 << 10;

/// Has the collector note an object.
fn suspect(w: &mut World, obj: *mut Obj) {
    unsafe { object::retain(obj) };
    w.release(obj);
}

/// Trees of suspects under a root that is none: all of their memory comes back with the root, however deep they are.
#[test]
fn dead_trees_are_freed_without_a_collection() {
    for kind in LINKS {
        let mut w = World::new(shapes());
        for width in [1, 3] {
            for _ in 0..4 {
                let nodes: Vec<_> = (0..3000).map(|_| node(&mut w)).collect();
                for i in 1..nodes.len() {
                    // Only some kinds lead to more than one.
                    let above = nodes[if kind == KIDS { (i - 1) / width } else { i - 1 }];
                    link(&mut w, above, kind, nodes[i]);
                    w.release(nodes[i]);
                    suspect(&mut w, nodes[i]);
                }
                w.release(nodes[0]);
                let (objects, bytes) = w.live();
                assert_eq!(objects, 0, "link by {kind}, {width} each");
                assert!(bytes < LEFT, "link by {kind}, {width} each: {bytes} bytes");
            }
        }
    }
}

#[test]
fn polling_keeps_memory_flat() {
    let mut w = World::new(shapes());
    let mut most = 0;
    for i in 0..200_000 {
        cycles::poll(&mut w.ctx);
        let (a, b) = (node(&mut w), node(&mut w));
        link(&mut w, a, LINKS[i % LINKS.len()], b);
        set(&mut w, b, PREV, a);
        w.release(a);
        w.release(b);
        most = most.max(w.live().0);
    }
    assert!(most < 50_000, "{most}");
}

#[test]
fn suspects_are_copied_into_messages() {
    let mut w = World::new(shapes());
    let (a, b) = (node(&mut w), node(&mut w));
    set(&mut w, a, ANY, b);
    w.release(b);
    // Noted by the collector of this shard, which must not follow it to another one.
    unsafe { object::retain(b) };
    w.release(b);
    let sent = unsafe { copy::transfer(&mut w.ctx, a) };
    assert_eq!(sent, a);
    assert_ne!(get(sent, ANY), b);
    w.release(sent);
}

/// Random links between nodes, some of them held by the test. After each collection exactly what the model reaches from
/// those is alive, and unharmed.
#[test]
fn random_graphs_follow_the_model() {
    for seed in 1..60u64 {
        let mut r = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut w = World::new(shapes());
        // Per number: the node while the model says it is alive, its references from the test, its fields by number.
        let mut nodes: Vec<(*mut Obj, u32)> = Vec::new();
        let mut edges: Vec<Vec<(usize, usize)>> = Vec::new();
        for _ in 0..if cfg!(miri) { 50 } else { 2000 } {
            let held: Vec<usize> = (0..nodes.len()).filter(|&i| nodes[i].1 > 0).collect();
            let pick = |r: &mut Random, from: &[usize]| from[r.below(from.len() as u64) as usize];
            match r.below(12) {
                0..=2 => {
                    let obj = node(&mut w);
                    unsafe { *obj.cast::<u64>().add(1) = nodes.len() as u64 };
                    nodes.push((obj, 1));
                    edges.push(Vec::new());
                }
                3..=6 if !held.is_empty() => {
                    // From something reachable to something reachable.
                    let alive = reached(&nodes, &edges);
                    let alive: Vec<usize> = (0..nodes.len()).filter(|&i| alive[i]).collect();
                    let (from, to, kind) = (pick(&mut r, &alive), pick(&mut r, &alive), LINKS[r.below(6) as usize]);
                    link(&mut w, nodes[from].0, kind, nodes[to].0);
                    if kind != KIDS {
                        edges[from].retain(|e| e.0 != kind);
                    }
                    edges[from].push((kind, to));
                }
                7 if !held.is_empty() => {
                    let alive = reached(&nodes, &edges);
                    let alive: Vec<usize> = (0..nodes.len()).filter(|&i| alive[i]).collect();
                    let from = pick(&mut r, &alive);
                    let kind = LINKS[r.below(6) as usize];
                    set(&mut w, nodes[from].0, kind, std::ptr::null_mut());
                    edges[from].retain(|e| e.0 != kind);
                }
                8 if !held.is_empty() => {
                    let alive = reached(&nodes, &edges);
                    let alive: Vec<usize> = (0..nodes.len()).filter(|&i| alive[i]).collect();
                    let i = pick(&mut r, &alive);
                    unsafe { object::retain(nodes[i].0) };
                    nodes[i].1 += 1;
                }
                9..=10 if !held.is_empty() => {
                    let i = pick(&mut r, &held);
                    nodes[i].1 -= 1;
                    w.release(nodes[i].0);
                }
                11 if r.below(20) == 0 => {
                    w.collect();
                    check(&w, &nodes, &edges, &reached(&nodes, &edges));
                }
                _ => {}
            }
        }
        w.collect();
        check(&w, &nodes, &edges, &reached(&nodes, &edges));
        for (obj, held) in nodes {
            (0..held).for_each(|_| w.release(obj));
        }
        w.collect();
        assert_eq!(w.live(), (0, 0), "seed {seed}");
    }
}

/// Links that lead from younger nodes to older ones only, so that nothing is ever on a cycle, while a collection goes on
/// now and then: after each change exactly what the model reaches is alive, by counts alone.
#[test]
fn random_trees_die_at_once() {
    for seed in 1..40u64 {
        let mut r = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut w = World::new(shapes());
        // As in `random_graphs_follow_the_model`; `collects` is how likely the next step of a collection is.
        let mut nodes: Vec<(*mut Obj, u32)> = Vec::new();
        let mut edges: Vec<Vec<(usize, usize)>> = Vec::new();
        let collects = [0, 0, 1, 4, 30][r.below(5) as usize];
        for _ in 0..if cfg!(miri) { 50 } else { 1500 } {
            if r.below(30) < collects {
                let _ = cycles::step(&mut w.ctx, 1 + seed % 7);
            }
            let held: Vec<usize> = (0..nodes.len()).filter(|&i| nodes[i].1 > 0).collect();
            let pick = |r: &mut Random, from: &[usize]| from[r.below(from.len() as u64) as usize];
            match r.below(10) {
                0..=3 => {
                    let obj = node(&mut w);
                    unsafe { *obj.cast::<u64>().add(1) = nodes.len() as u64 };
                    let number = nodes.len();
                    nodes.push((obj, 1));
                    edges.push(Vec::new());
                    for _ in 0..r.below(4) {
                        let alive = reached(&nodes, &edges);
                        let older: Vec<usize> = (0..number).filter(|&i| alive[i]).collect();
                        if older.is_empty() {
                            break;
                        }
                        let (to, kind) = (pick(&mut r, &older), LINKS[r.below(6) as usize]);
                        link(&mut w, obj, kind, nodes[to].0);
                        if kind != KIDS {
                            edges[number].retain(|e| e.0 != kind);
                        }
                        edges[number].push((kind, to));
                    }
                }
                4 if !held.is_empty() => {
                    let i = pick(&mut r, &held);
                    let kind = LINKS[r.below(6) as usize];
                    set(&mut w, nodes[i].0, kind, std::ptr::null_mut());
                    edges[i].retain(|e| e.0 != kind);
                }
                5 if !held.is_empty() => {
                    let i = pick(&mut r, &held);
                    unsafe { object::retain(nodes[i].0) };
                    nodes[i].1 += 1;
                }
                6..=9 if !held.is_empty() => {
                    let i = pick(&mut r, &held);
                    nodes[i].1 -= 1;
                    w.release(nodes[i].0);
                }
                _ => {}
            }
            check(&w, &nodes, &edges, &reached(&nodes, &edges));
        }
        for (obj, held) in nodes {
            (0..held).for_each(|_| w.release(obj));
        }
        assert_eq!(w.live().0, 0, "seed {seed}");
    }
}

/// Which nodes the model reaches from those that the test holds.
fn reached(nodes: &[(*mut Obj, u32)], edges: &[Vec<(usize, usize)>]) -> Vec<bool> {
    let mut seen = vec![false; nodes.len()];
    let mut todo: Vec<usize> = (0..nodes.len()).filter(|&i| nodes[i].1 > 0).collect();
    while let Some(i) = todo.pop() {
        if !std::mem::replace(&mut seen[i], true) {
            todo.extend(edges[i].iter().map(|e| e.1));
        }
    }
    seen
}

/// The nodes that the model reaches are alive with the right counts, and nothing else is.
fn check(w: &World, nodes: &[(*mut Obj, u32)], edges: &[Vec<(usize, usize)>], alive: &[bool]) {
    let objects = check_reached(w, nodes, edges, alive);
    let mut counts: Vec<i32> = nodes.iter().map(|n| n.1 as i32).collect();
    let alive = || (0..nodes.len()).filter(|&i| alive[i]);
    alive().for_each(|i| edges[i].iter().for_each(|e| counts[e.1] += 1));
    alive().for_each(|i| assert_eq!(unsafe { object::count(nodes[i].0) }, counts[i]));
    assert_eq!(w.live().0, objects);
}

/// The nodes that the model reaches are unharmed: how many objects they are, containers included.
pub(super) fn check_reached(
    w: &World,
    nodes: &[(*mut Obj, u32)],
    edges: &[Vec<(usize, usize)>],
    alive: &[bool],
) -> i64 {
    let mut objects = 0;
    for i in (0..nodes.len()).filter(|&i| alive[i]) {
        let obj = nodes[i].0;
        objects += 1;
        assert_eq!(unsafe { *obj.cast::<u64>().add(1) }, i as u64);
        for kind in LINKS {
            let wanted: Vec<_> = edges[i].iter().filter(|e| e.0 == kind).map(|e| nodes[e.1].0 as u64).collect();
            let held = get(obj, kind);
            if held.is_null() {
                assert!(wanted.is_empty());
                continue;
            }
            let found = match kind {
                KIDS => unsafe { multi::words(&w.ctx, held).to_vec() },
                NAMES => unsafe {
                    // The keys are shared by nobody.
                    objects += map::entries(held).count() as i64;
                    map::entries(held).map(|e| *e.add(1)).collect()
                },
                MAYBE => vec![get(held, 0) as u64],
                _ => vec![held as u64],
            };
            objects += i64::from(matches!(kind, KIDS | NAMES | MAYBE));
            assert_eq!(found, wanted);
        }
    }
    objects
}
