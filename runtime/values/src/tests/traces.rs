//! Recorded stacks and their printed form.

// SAFETY, for the whole module: every object is made by the test that uses it, as what it is used as, and lives until
// that test gives up its reference; nothing else runs on the test's heap.

use crate::ctx::{Frame, Site};
use crate::testing::{World, fixed_shapes};
use crate::{text, trace};

/// A made-up stack of `n` frames that return into `main` (address 100) or `Order.each` (200); the outermost returns
/// into the runtime. The frame pointer of the innermost comes first.
fn stack(n: usize) -> Vec<u64> {
    let mut words = vec![0u64; 2 * n];
    let base = words.as_ptr() as u64;
    for i in 0..n {
        words[2 * i] = if i + 1 < n { base + 16 * (i as u64 + 1) } else { 0 };
        words[2 * i + 1] = match n - i {
            1 => 7,
            2 => 100,
            _ => 200,
        };
    }
    words
}

fn world() -> World {
    let mut w = World::new(fixed_shapes());
    w.image().sites = vec![
        Site { offset: 100, func: 0, line: 6 },
        Site { offset: 200, func: 1, line: 11 },
        Site { offset: 300, func: 1, line: 3 },
    ];
    w
}

#[test]
fn records_once_and_reports() {
    let mut w = world();
    w.ctx.raise(1, "division by zero");
    let words = stack(3);
    w.ctx.stack_base = words.as_ptr_range().end as u64;
    unsafe {
        trace::record(&mut w.ctx, 300, words.as_ptr() as u64);
        trace::record(&mut w.ctx, 100, words.as_ptr() as u64);
    }
    let lines = "  at Order.each (order.wo:3)\n  at Order.each (order.wo:11)\n  at main (main.wo:6)";
    let main = String::from_utf8(trace::report_main(&w.ctx)).unwrap();
    assert_eq!(main, format!("trap 1 in each at line 3: division by zero\n{lines}\n"));
    let actor = String::from_utf8(trace::report_actor(&w.ctx)).unwrap();
    assert_eq!(actor, format!("fiber trap 1 at each:3: division by zero\n{lines}\n"));
    assert!(w.take_trap().is_some());
}

#[test]
fn stops_at_anything_strange() {
    let mut w = world();
    let words = stack(5);
    let first = words.as_ptr() as u64;
    let mut count = |fp: u64, base: u64| {
        w.ctx.raise(1, "x");
        w.ctx.stack_base = base;
        unsafe { trace::record(&mut w.ctx, 300, fp) };
        assert!(w.take_trap().is_some());
        w.ctx.trap_frames.len()
    };
    assert_eq!(count(first, first + 80), 5);
    assert_eq!(count(0, first + 80), 1);
    assert_eq!(count(first + 4, first + 80), 1);
    assert_eq!(count(first, first + 40), 3);
    assert_eq!(count(first, 0), 1);
    assert_eq!(count(u64::MAX - 7, u64::MAX), 1);
}

#[test]
fn a_frame_that_points_down_ends_the_walk() {
    let mut w = world();
    let mut words = stack(4);
    words[2] = words.as_ptr() as u64;
    w.ctx.raise(1, "x");
    w.ctx.stack_base = words.as_ptr_range().end as u64;
    unsafe { trace::record(&mut w.ctx, 300, words.as_ptr() as u64) };
    assert_eq!(w.ctx.trap_frames.len(), 3);
    assert!(w.take_trap().is_some());
}

#[test]
fn long_stacks_keep_both_ends() {
    let mut w = world();
    for (n, expected) in [(40, 40), (41, 41), (20_000, 41)] {
        w.ctx.raise(3, "stack overflow");
        let words = stack(n);
        w.ctx.stack_base = words.as_ptr_range().end as u64;
        unsafe { trace::record(&mut w.ctx, 300, words.as_ptr() as u64) };
        let lines = trace::lines(unsafe { &*w.ctx.image }, &w.ctx.trap_frames);
        let all: Vec<&str> = lines.lines().collect();
        assert_eq!(all.len(), expected);
        assert_eq!(all[0], "  at Order.each (order.wo:3)");
        assert_eq!(all[expected - 1], "  at main (main.wo:6)");
        assert_eq!(all[30].contains("left out"), n > 40, "{}", all[30]);
        if n > 40 {
            assert_eq!(all[30], format!("  ... {} frames left out", n - 40));
        }
        assert!(w.take_trap().is_some());
    }
}

#[test]
fn odd_frames_are_printed() {
    let mut w = world();
    assert_eq!(trace::lines(w.image(), &[Frame { func: 77, line: 1 }]), "  at ? (?:1)");
    assert_eq!(trace::lines(w.image(), &[]), "");
    assert_eq!(trace::method(w.image(), &[]), "");
}

#[test]
fn the_first_trap_stays() {
    let mut w = world();
    w.ctx.raise(6, "first");
    w.ctx.raise(7, "second");
    let t = text::new(&mut w.ctx, b"third trap");
    assert!(!w.ctx.raise_text(8, t));
    w.release(t);
    assert_eq!(w.take_trap(), Some((6, "first".into())));
}
