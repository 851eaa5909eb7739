//! Texts: concatenation, appending in place, comparison.

// SAFETY, for the whole module: every object is made by the test that uses it, as what it is used as, and lives until
// that test gives up its reference; nothing else runs on the test's heap.

use crate::object;
use crate::testing::{World, fixed_shapes};
use crate::text::{self, Builder, Part};
use abi::layout::KIND_TEXT;
use abi::symbols::{PART_BOOL, PART_FLOAT, PART_INT, PART_TEXT};
use codec::Sink;

fn part(kind: i64, word: u64) -> Part {
    Part { kind, word }
}

#[test]
fn concatenates_every_kind() {
    let mut w = World::new(fixed_shapes());
    let t = w.text("x=");
    let parts = [
        part(PART_TEXT, t as u64),
        part(PART_INT, i64::MIN as u64),
        part(PART_BOOL, 1),
        part(PART_BOOL, 0),
        part(PART_FLOAT, (-1.7976931348623157e308f64).to_bits()),
        part(PART_TEXT, 0),
        part(PART_FLOAT, (-123456789012345680000.0f64).to_bits()),
    ];
    let r = unsafe { text::concat(&mut w.ctx, &parts) };
    assert_eq!(w.take(r), "x=-9223372036854775808truefalse-1.7976931348623157e+308-123456789012345683968.0");
    let r = unsafe { text::concat(&mut w.ctx, &[part(PART_INT, 7)]) };
    assert_eq!(w.take(r), "7");
    let r = unsafe { text::concat(&mut w.ctx, &[]) };
    assert_eq!(w.take(r), "");
    w.release(t);
}

#[test]
fn appends_in_place_or_to_a_copy() {
    let mut w = World::new(fixed_shapes());
    let mut s = text::empty();
    let mut model = String::new();
    for i in 0..10_000i64 {
        s = unsafe { text::append(&mut w.ctx, s, &[part(PART_INT, i as u64), part(PART_BOOL, (i % 2) as u64)]) };
        model += &format!("{i}{}", i % 2 == 1);
    }
    assert_eq!(w.read(s), model);
    // A second reference keeps its content.
    unsafe { object::retain(s) };
    let t = unsafe { text::append(&mut w.ctx, s, &[part(PART_INT, 1)]) };
    assert_eq!(w.take(t), model.clone() + "1");
    assert_eq!(w.take(s), model);
}

#[test]
fn appends_itself() {
    let mut w = World::new(fixed_shapes());
    let mut s = w.text("ab");
    for _ in 0..5 {
        s = unsafe {
            text::append(&mut w.ctx, s, &[part(PART_TEXT, s as u64), part(PART_INT, 1), part(PART_TEXT, s as u64)])
        };
    }
    let mut model = "ab".to_string();
    for _ in 0..5 {
        model = format!("{model}{model}1{model}");
    }
    assert_eq!(w.take(s), model);
    // The same while shared.
    let s = w.text("cd");
    unsafe { object::retain(s) };
    let t = unsafe { text::append(&mut w.ctx, s, &[part(PART_TEXT, s as u64)]) };
    assert_eq!(w.take(t), "cdcd");
    w.release(s);
}

#[test]
fn appending_nothing_keeps_the_text() {
    let mut w = World::new(fixed_shapes());
    let s = w.text("ab");
    assert_eq!(unsafe { text::append(&mut w.ctx, s, &[part(PART_TEXT, text::empty() as u64)]) }, s);
    w.release(s);
}

#[test]
fn hash_follows_the_content() {
    let mut w = World::new(fixed_shapes());
    let mut s = w.text("ab");
    let before = unsafe { text::hash(s) };
    s = unsafe { text::append(&mut w.ctx, s, &[part(PART_INT, 1)]) };
    let other = w.text("ab1");
    unsafe {
        assert_eq!(text::hash(s), text::hash(other));
        assert_ne!(text::hash(s), before);
        assert!(text::eq(s, other) && !text::eq(s, text::empty()));
        assert_eq!(text::hash(text::of_byte(b'a')), {
            let a = w.text("a");
            let h = text::hash(a);
            w.release(a);
            h
        });
    }
    w.release(s);
    w.release(other);
}

#[test]
fn builder_gives_back_spare_room() {
    let mut w = World::new(fixed_shapes());
    let mut out = Builder::new(&mut w.ctx, KIND_TEXT, 10_000);
    out.put(b"abc");
    let t = out.finish();
    assert!(w.live().1 < 100);
    assert_eq!(w.take(t), "abc");
    let mut out = Builder::new(&mut w.ctx, KIND_TEXT, 0);
    for _ in 0..1000 {
        out.put(b"abcdefg");
    }
    let t = out.finish();
    assert_eq!(w.take(t), "abcdefg".repeat(1000));
    drop(Builder::new(&mut w.ctx, KIND_TEXT, 0));
}
