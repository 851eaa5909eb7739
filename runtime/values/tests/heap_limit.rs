//! The process-wide memory bound. Alone in its process, because the bound is too.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::undocumented_unsafe_blocks,
    reason = "tests: objects are live and of the type that the test gives them"
)]

use abi::desc::{FIXED_TYPES, Shapes, TYPE_INT, TYPE_TEXT};
use abi::symbols::PART_TEXT;
use values::ctx::{Ctx, Heap, Image};
use values::object::{self, Obj};
use values::text::Part;
use values::{copy, map, multi, text};

fn with_ctx(test: impl FnOnce(&mut Ctx)) {
    let image = Image {
        shapes: Shapes { types: FIXED_TYPES.to_vec(), ..Shapes::default() },
        funcs: Vec::new(),
        receives: Vec::new(),
        main: None,
        base: 0,
        sites: Vec::new(),
        args: Vec::new(),
    };
    let mut heap = Heap::default();
    let mut ctx = Ctx {
        budget: 0,
        stack_limit: 0,
        trap: 0,
        heap: &raw mut heap,
        image: &raw const image,
        fiber: std::ptr::null_mut(),
        stack_base: 0,
        trap_msg: std::ptr::null_mut(),
        trap_frames: Vec::new(),
        trap_recorded: false,
        caught_frames: Vec::new(),
    };
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
    object::set_heap_limit(BOUND as u64);
    with_ctx(|ctx| {
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
