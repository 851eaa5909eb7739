//! Lists: growth, removal, sorting.

// SAFETY, for the whole module: every object is made by the test that uses it, as what it is used as, and lives until
// that test gives up its reference; nothing else runs on the test's heap.

use super::Random;
use crate::multi;
use crate::testing::{World, add_type, fixed_shapes};
use abi::desc::{TYPE_BOOL, TYPE_FLOAT, TYPE_INT, TYPE_TEXT, TypeDesc};
use std::collections::VecDeque;

#[test]
fn behaves_as_a_queue_and_a_stack() {
    let mut w = World::new(fixed_shapes());
    let mut r = Random(7);
    for round in 0..50 {
        let m = multi::new(&mut w.ctx, TYPE_INT, round % 7);
        let mut model = VecDeque::new();
        for _ in 0..500 {
            match r.below(10) {
                0..5 => {
                    let n = r.next();
                    assert!(unsafe { multi::push(&mut w.ctx, m, n, 0) });
                    model.push_back((n, 0));
                }
                5 | 6 => assert_eq!(unsafe { multi::pop(&w.ctx, m) }, model.pop_back()),
                _ => assert_eq!(unsafe { multi::shift(&w.ctx, m) }, model.pop_front()),
            }
            let all: Vec<u64> = model.iter().map(|p| p.0).collect();
            assert_eq!(unsafe { multi::words(&w.ctx, m) }, &all[..]);
        }
        w.release(m);
    }
}

#[test]
fn a_long_queue_is_not_quadratic_and_keeps_its_room() {
    let mut w = World::new(fixed_shapes());
    let m = multi::new(&mut w.ctx, TYPE_INT, 0);
    for i in 0..100u64 {
        assert!(unsafe { multi::push(&mut w.ctx, m, i, 0) });
    }
    for i in 0..1_000_000u64 {
        assert!(unsafe { multi::push(&mut w.ctx, m, i, 0) });
        assert!(unsafe { multi::shift(&w.ctx, m) }.is_some());
    }
    assert!(w.live().1 < 10_000, "{:?}", w.live());
    w.release(m);
}

#[test]
fn pairs_of_words() {
    let mut shapes = fixed_shapes();
    let ty = add_type(&mut shapes, TypeDesc::Nullable(TYPE_INT));
    let mut w = World::new(shapes);
    let m = multi::new(&mut w.ctx, ty, 0);
    for (tag, v) in [(1, 5i64), (0, 0), (1, -3), (1, i64::MIN), (0, 0), (1, 5)] {
        assert!(unsafe { multi::push(&mut w.ctx, m, tag, v as u64) });
    }
    unsafe { multi::reverse(&w.ctx, m) };
    assert_eq!(unsafe { multi::pop(&w.ctx, m) }, Some((1, 5)));
    unsafe { multi::sort(&mut w.ctx, m) };
    let expected = [0, 0, 0, 0, 1, i64::MIN as u64, 1, -3i64 as u64, 1, 5];
    assert_eq!(unsafe { multi::words(&w.ctx, m) }, &expected);
    let s = unsafe { multi::slice(&mut w.ctx, m, 1, 3) };
    assert_eq!(unsafe { multi::words(&w.ctx, s) }, &expected[2..6]);
    w.release(s);
    w.release(m);
}

#[test]
fn slices_are_clamped_and_retain() {
    let mut w = World::new(fixed_shapes());
    let m = multi::new(&mut w.ctx, TYPE_TEXT, 0);
    for i in 0..5 {
        let t = w.text(&format!("t{i}"));
        assert!(unsafe { multi::push(&mut w.ctx, m, t as u64, 0) });
    }
    for (from, to, n) in [(0, 5, 5), (-3, 2, 2), (3, 99, 2), (4, 2, 0), (i64::MIN, i64::MAX, 5), (5, 6, 0), (9, -9, 0)]
    {
        let s = unsafe { multi::slice(&mut w.ctx, m, from, to) };
        assert_eq!(unsafe { multi::words(&w.ctx, s) }.len(), n);
        w.release(s);
    }
    let s = unsafe { multi::slice(&mut w.ctx, m, 1, 3) };
    w.release(m);
    let first = unsafe { multi::words(&w.ctx, s) }[0];
    assert_eq!(w.read(first as *mut _), "t1");
    w.release(s);
}

#[test]
fn sorts_floats_by_the_total_order() {
    let mut w = World::new(fixed_shapes());
    let m = multi::new(&mut w.ctx, TYPE_FLOAT, 0);
    for f in [f64::NAN, 0.0, 1.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, -f64::NAN, -1.5, 0.0] {
        assert!(unsafe { multi::push(&mut w.ctx, m, f.to_bits(), 0) });
    }
    unsafe { multi::sort(&mut w.ctx, m) };
    let texts: Vec<String> =
        unsafe { multi::words(&w.ctx, m) }.iter().map(|&b| format!("{:?}", f64::from_bits(b))).collect();
    assert_eq!(texts, ["-inf", "-1.5", "0.0", "-0.0", "0.0", "1.0", "inf", "NaN", "NaN"]);
    w.release(m);
}

#[test]
fn sorts_texts_and_scalars() {
    let mut shapes = fixed_shapes();
    let nullable = add_type(&mut shapes, TypeDesc::Nullable(TYPE_TEXT));
    let mut w = World::new(shapes);
    let m = multi::new(&mut w.ctx, nullable, 0);
    for t in ["b", "", "a\0", "ab", "a", "\u{ff}", "B"] {
        let t = w.text(t);
        assert!(unsafe { multi::push(&mut w.ctx, m, t as u64, 0) });
    }
    assert!(unsafe { multi::push(&mut w.ctx, m, 0, 0) });
    unsafe { multi::sort(&mut w.ctx, m) };
    let words = unsafe { multi::words(&w.ctx, m) };
    assert_eq!(words[0], 0);
    let texts: Vec<String> = words[1..].iter().map(|&t| w.read(t as *mut _)).collect();
    assert_eq!(texts, ["", "B", "a", "a\0", "ab", "b", "\u{ff}"]);
    w.release(m);

    let mut r = Random(3);
    for ty in [TYPE_INT, TYPE_BOOL] {
        let m = multi::new(&mut w.ctx, ty, 0);
        let mut model = Vec::new();
        for _ in 0..3000 {
            let n = if ty == TYPE_BOOL { r.below(2) } else { r.next() };
            assert!(unsafe { multi::push(&mut w.ctx, m, n, 0) });
            model.push(n as i64);
        }
        model.sort();
        unsafe { multi::sort(&mut w.ctx, m) };
        let sorted: Vec<i64> = unsafe { multi::words(&w.ctx, m) }.iter().map(|&n| n as i64).collect();
        assert_eq!(sorted, model);
        w.release(m);
    }
}
