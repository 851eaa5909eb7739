//! The process-wide memory bound. Alone in its process, because the bound is too.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::undocumented_unsafe_blocks,
    reason = "tests: objects are live and of the type that the test gives them"
)]

use abi::desc::{ClassDesc, ClassKind, FIXED_TYPES, FieldDesc, Shapes, TYPE_INT, TYPE_TEXT, TypeDesc};
use abi::symbols::PART_TEXT;
use std::sync::{Mutex, PoisonError};
use values::ctx::{Ctx, Heap, Image};
use values::object::{self, Obj};
use values::text::Part;
use values::{copy, cycles, map, multi, text};

/// One test at a time sets the bound.
static BOUND: Mutex<()> = Mutex::new(());

/// Types of `Node { next: ?Node, tag: Text }` and `multi Node`.
const NODE: u32 = FIXED_TYPES.len() as u32;
const NULLABLE_NODE: u32 = NODE + 1;

fn shapes() -> Shapes {
    let mut shapes = Shapes { types: FIXED_TYPES.to_vec(), ..Shapes::default() };
    shapes.types.extend([TypeDesc::Object(0), TypeDesc::Nullable(NODE), TypeDesc::Multi(NODE)]);
    let field = |name: &str, ty, offset| FieldDesc { name: name.into(), ty, offset, default: None };
    shapes.classes.push(ClassDesc {
        name: "Node".into(),
        package: None,
        kind: ClassKind::Record,
        size: 24,
        fields: vec![field("next", NULLABLE_NODE, 8), field("tag", TYPE_TEXT, 16)],
        reply: None,
    });
    shapes
}

/// Makes an object with a reference to itself, to which there is no other.
fn garbage(ctx: &mut Ctx) {
    let node = object::new(ctx, 0);
    if !node.is_null() {
        unsafe {
            *node.cast::<u64>().add(1) = node as u64;
            object::retain(node);
            object::release(ctx, node);
        }
    }
}

fn with_ctx(test: impl FnOnce(&mut Ctx)) {
    let _alone = BOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let image = Image::of(shapes());
    let mut heap = Heap::default();
    let mut ctx = Ctx::new(&raw mut heap, &raw const image);
    test(&mut ctx);
    assert_eq!((heap.objects_live, heap.bytes_live), (0, 0));
}

/// The pending trap must be 4; it is cleared.
fn caught(ctx: &mut Ctx) {
    assert_eq!(ctx.trap, 4);
    assert_eq!(unsafe { text::bytes(ctx.trap_msg) }, b"out of memory");
    ctx.trap = 0;
    ctx.trap_msg = std::ptr::null_mut();
}

fn live(ctx: &Ctx) -> i64 {
    unsafe { (*ctx.heap).bytes_live }
}

#[test]
fn growth_traps_at_the_bound_and_goes_on_after_release() {
    const BOUND: i64 = 16 << 20;
    with_ctx(|ctx| {
        object::set_heap_limit(BOUND as u64);
        for _ in 0..3 {
            let list = multi::new(ctx, TYPE_TEXT, 0);
            loop {
                let t = text::new(ctx, b"a text of some length, thirty-two");
                if t.is_null() || !unsafe { multi::push(ctx, list, t as u64, 0) } {
                    break;
                }
            }
            caught(ctx);
            assert!(live(ctx) <= BOUND + (64 << 10) && live(ctx) > BOUND / 3, "{}", live(ctx));
            unsafe { object::release(ctx, list) };
        }

        let m = map::new(ctx, TYPE_INT, TYPE_INT);
        let mut n = 0u64;
        loop {
            let place = unsafe { map::slot(ctx, m, n) };
            if place.is_null() {
                break;
            }
            unsafe { *place = n };
            n += 1;
        }
        caught(ctx);
        assert!(n > 10_000);
        // The map is intact, and removing needs no memory.
        assert!((0..n).all(|i| unsafe { *map::find(m, i) } == i));
        let mut hoard: Vec<*mut Obj> = Vec::new();
        for size in [1 << 20, 1 << 12, 40] {
            loop {
                let t = text::new(ctx, &vec![b'x'; size]);
                if t.is_null() {
                    break;
                }
                hoard.push(t);
            }
            caught(ctx);
        }
        for i in (0..n).filter(|i| i % 10_007 == 5) {
            assert!(unsafe { map::remove(ctx, m, i) });
        }
        assert_eq!(ctx.trap, 0);
        assert!((0..n).all(|i| unsafe { map::find(m, i) }.is_null() == (i % 10_007 == 5)));
        for t in hoard {
            unsafe { object::release(ctx, t) };
        }
        unsafe { object::release(ctx, m) };

        // After the trap there is room to handle it, though not for ever.
        let mut hoard: Vec<*mut Obj> = Vec::new();
        for _ in 0..1000 {
            loop {
                let t = text::new(ctx, &[b'x'; 40]);
                if t.is_null() {
                    break;
                }
                hoard.push(t);
            }
            caught(ctx);
        }
        assert!(live(ctx) > BOUND && live(ctx) <= BOUND + (1 << 20), "{}", live(ctx));
        for t in hoard {
            unsafe { object::release(ctx, t) };
        }

        let mut s = text::new(ctx, &[b'y'; 1000]);
        let copy = text::new(ctx, &[b'z'; 1000]);
        loop {
            s = unsafe { text::append(ctx, s, &[Part { kind: PART_TEXT, word: copy as u64 }]) };
            if s.is_null() {
                break;
            }
        }
        caught(ctx);
        unsafe { object::release(ctx, copy) };
        assert_eq!(live(ctx), 0);

        // Copies that do not fit leave the original and nothing else; a message is consumed all the same.
        let texts = multi::new(ctx, TYPE_TEXT, 0);
        for _ in 0..BOUND / 100 {
            let t = text::new(ctx, &[b'x'; 40]);
            unsafe {
                object::retain(t);
                assert!(multi::push(ctx, texts, t as u64, 0));
            }
        }
        let before = live(ctx);
        unsafe {
            object::retain(texts);
            assert!(copy::transfer(ctx, texts).is_null());
        }
        caught(ctx);
        assert_eq!(live(ctx), before);
        let all: Vec<u64> = unsafe { multi::words(ctx, texts) }.to_vec();
        assert!(unsafe { copy::transfer(ctx, texts) }.is_null());
        caught(ctx);
        for t in all {
            unsafe { object::release(ctx, t as *mut Obj) };
        }
        assert_eq!(live(ctx), 0);

        assert!(text::new(ctx, &vec![0; 32 << 20]).is_null());
        caught(ctx);
        assert!(multi::new(ctx, TYPE_INT, i64::from(u32::MAX)).is_null());
        caught(ctx);
        assert!(!object::charge_extra(ctx, usize::MAX));
        caught(ctx);
    });
}

/// Asks for about four times the bound in all, with garbage made all the time and no poll.
fn is_given_more_than_the_bound(ctx: &mut Ctx, bytes: usize, mut ask: impl FnMut(&mut Ctx)) {
    for _ in 0..(4 << 20) / bytes {
        (0..bytes / 24).for_each(|_| garbage(ctx));
        if ctx.trap != 0 {
            caught(ctx);
        }
        ask(ctx);
        assert_eq!(ctx.trap, 0);
    }
}

#[test]
fn garbage_is_collected_before_trap_4() {
    with_ctx(|ctx| {
        object::set_heap_limit(1 << 20);
        is_given_more_than_the_bound(ctx, 1000, |ctx| unsafe {
            let made = cycles::with_relief(ctx, |ctx| text::new(ctx, &[b'x'; 1000]));
            object::release(ctx, made);
        });
        is_given_more_than_the_bound(ctx, 8000, |ctx| unsafe {
            let list = cycles::with_relief(ctx, |ctx| multi::new(ctx, TYPE_INT, 0));
            (0..1000).for_each(|i| assert!(multi::push_with_relief(ctx, list, i, 0)));
            object::release(ctx, list);
        });
        let mut all = text::empty();
        is_given_more_than_the_bound(ctx, 20_000, |ctx| unsafe {
            let word = text::of_byte(b'y') as u64;
            if text::bytes(all).len() > 200_000 {
                object::release(ctx, std::mem::replace(&mut all, text::empty()));
            }
            all = text::append(ctx, all, &[Part { kind: PART_TEXT, word }; 500]);
        });
        unsafe { object::release(ctx, all) };
        cycles::collect_all(ctx);
    });
}

#[test]
fn a_graph_too_large_for_a_collection_hides_no_other_garbage() {
    with_ctx(|ctx| {
        object::set_heap_limit(2 << 20);
        // A list that takes most of the bound, each of whose nodes is suspect.
        let list = multi::new(ctx, NODE, 0);
        let mut last = std::ptr::null_mut::<Obj>();
        while live(ctx) < 3 << 19 {
            let node = object::new(ctx, 0);
            unsafe {
                object::retain(last);
                *node.cast::<u64>().add(1) = last as u64;
                assert!(multi::push(ctx, list, node as u64, 0));
                object::retain(node);
                object::release(ctx, node);
            }
            last = node;
        }
        for _ in 0..20 {
            while ctx.trap == 0 {
                garbage(ctx);
            }
            caught(ctx);
            let made = cycles::with_relief(ctx, |ctx| object::new(ctx, 0));
            assert_eq!(ctx.trap, 0);
            unsafe { object::release(ctx, made) };
        }
        unsafe { object::release(ctx, list) };
        object::lift_heap_limit();
        cycles::collect_all(ctx);
    });
}

/// A ring of nodes with texts, as many as there is memory for.
fn ring(ctx: &mut Ctx) -> (*mut Obj, usize) {
    let first = object::new(ctx, 0);
    let (mut last, mut n) = (first, 1);
    loop {
        let tag = cycles::with_relief(ctx, |ctx| text::new(ctx, b"a text of some length"));
        if tag.is_null() {
            break;
        }
        unsafe { *last.cast::<u64>().add(2) = tag as u64 };
        let node = cycles::with_relief(ctx, |ctx| object::new(ctx, 0));
        if node.is_null() {
            break;
        }
        unsafe { *last.cast::<u64>().add(1) = node as u64 };
        (last, n) = (node, n + 1);
    }
    caught(ctx);
    unsafe {
        *last.cast::<u64>().add(1) = first as u64;
        object::retain(first);
    }
    (first, n)
}

#[test]
fn garbage_that_fills_the_bound_is_found() {
    with_ctx(|ctx| {
        object::set_heap_limit(8 << 20);
        let (first, n) = ring(ctx);
        unsafe { object::release(ctx, first) };
        let (again, m) = ring(ctx);
        assert!(n > 50_000 && m > n - n / 10, "{n} {m}");
        unsafe { object::release(ctx, again) };
        object::lift_heap_limit();
        cycles::collect_all(ctx);
    });
}
