//! Encoding and decoding against the tables of section 10.

// SAFETY, for the whole module: every object is made by the test that uses it, as what it is used as, and lives until
// that test gives up its reference; nothing else runs on the test's heap.

use super::memory::{field, node_shapes};
use crate::ctx::Ctx;
use crate::object::{self, Obj};
use crate::testing::{World, add_class, add_type, fixed_shapes};
use crate::{decode, encode, equal, multi, text};
use abi::desc::{
    Default as FieldDefault, Shapes, TYPE_BOOL, TYPE_BYTES, TYPE_FLOAT, TYPE_INT, TYPE_JSON, TYPE_TEXT, TypeDesc,
    TypeIdx, UnionDesc,
};
use abi::trap;
use codec::PIECE;
use std::cell::Cell;

/// Class 0 `In { x: Int, y: Int = 7, tag: ?Text }`, class 1 `All` with a field of every decodable type.
fn shapes() -> (Shapes, TypeIdx, TypeIdx) {
    let mut s = fixed_shapes();
    s.unions.push(UnionDesc { name: "Color".into(), variants: vec!["R".into(), "G".into()], classes: vec![] });
    let tag = add_type(&mut s, TypeDesc::Nullable(TYPE_TEXT));
    let maybe = add_type(&mut s, TypeDesc::Nullable(TYPE_INT));
    let inner = add_type(&mut s, TypeDesc::Object(0));
    let all = add_type(&mut s, TypeDesc::Object(1));
    let color = add_type(&mut s, TypeDesc::Ordinal(0));
    let row = add_type(&mut s, TypeDesc::Row(0));
    let ints = add_type(&mut s, TypeDesc::Multi(TYPE_INT));
    let maybes = add_type(&mut s, TypeDesc::Multi(maybe));
    let map = add_type(&mut s, TypeDesc::Map(TYPE_TEXT, inner));
    let opt = add_type(&mut s, TypeDesc::Nullable(inner));
    let _ = add_class(
        &mut s,
        "In",
        &[("x", TYPE_INT, None), ("y", TYPE_INT, Some(FieldDefault::Int(7))), ("tag", tag, None)],
    );
    let _ = add_class(
        &mut s,
        "All",
        &[
            ("i", TYPE_INT, None),
            ("b", TYPE_BOOL, None),
            ("f", TYPE_FLOAT, None),
            ("t", TYPE_TEXT, None),
            ("by", TYPE_BYTES, None),
            ("j", TYPE_JSON, None),
            ("c", color, None),
            ("r", row, None),
            ("m", ints, None),
            ("mm", maybes, None),
            ("map", map, None),
            ("n", maybe, None),
            ("o", opt, None),
            ("d", ints, Some(FieldDefault::List(vec![FieldDefault::Int(1), FieldDefault::Int(2)]))),
            ("e", inner, Some(FieldDefault::New(0))),
        ],
    );
    (s, inner, all)
}

/// There are no other fibers.
fn alone(_: &mut Ctx) -> bool {
    true
}

fn round(w: &mut World, ty: TypeIdx, document: &str) -> Option<String> {
    let t = w.text(document);
    let value = unsafe { decode::decode(&mut w.ctx, ty, t, alone) };
    w.release(t);
    assert_eq!(w.take_trap(), None);
    if value.is_null() {
        return None;
    }
    let out = unsafe { encode::encode(&mut w.ctx, ty, value as u64, 0) };
    w.release(value);
    assert_eq!(w.take_trap(), None);
    Some(w.take(out))
}

#[test]
fn absent_keys_take_defaults() {
    let (s, inner, all) = shapes();
    let mut w = World::new(s);
    assert_eq!(round(&mut w, inner, "{}").unwrap(), r#"{"x":0,"y":7,"tag":null}"#);
    assert_eq!(round(&mut w, inner, r#"{"x":3,"more":[1,{"a":null}]}"#).unwrap(), r#"{"x":3,"y":7,"tag":null}"#);
    assert_eq!(round(&mut w, inner, r#"{"x":null,"y":null,"tag":null}"#).unwrap(), r#"{"x":0,"y":7,"tag":null}"#);
    assert_eq!(
        round(&mut w, all, "{}").unwrap(),
        concat!(
            r#"{"i":0,"b":false,"f":0.0,"t":"","by":"","j":null,"c":0,"r":0,"m":[],"mm":[],"map":{},"n":null,"o":null,"#,
            r#""d":[1,2],"e":{"x":0,"y":7,"tag":null}}"#
        )
    );
}

#[test]
fn every_type_round_trips() {
    let (s, _, all) = shapes();
    let mut w = World::new(s);
    let document = concat!(
        r#"{"i":-9223372036854775808,"b":true,"f":1.5e-07,"t":"a\"\\\n\r\t\b\f\u0001\u001fé","by":"AAEC/w==","#,
        r#""j":{"raw" : [1, 2]},"c":1,"r":42,"m":[1,2,3],"mm":[1,null,3],"map":{"a":{"x":1,"y":2,"tag":"z"},"":{"x":0,"y":0,"tag":null}},"#,
        r#""n":5,"o":{"x":9,"y":9,"tag":null},"d":[],"e":{"x":1,"y":1,"tag":"q"}}"#
    );
    assert_eq!(round(&mut w, all, document).unwrap(), document);
    let spaced = document.replace(':', " : ").replace(',', "\t,\r\n ").replace("{\"raw\" : [1\t,\r\n  2]}", "7");
    assert!(round(&mut w, all, &spaced).is_some());
}

#[test]
fn accepted_forms() {
    let (s, inner, all) = shapes();
    let mut w = World::new(s);
    let mut one = |ty, d: &str| round(&mut w, ty, d);
    assert!(one(inner, r#"{"x":true,"y":false}"#).unwrap().starts_with(r#"{"x":1,"y":0"#));
    assert!(one(inner, r#"{"x":1,"x":2}"#).unwrap().starts_with(r#"{"x":2,"#));
    assert!(one(inner, r#"{"tag":"a","tag":"b"}"#).unwrap().contains(r#""tag":"b""#));
    assert!(one(inner, r#"{"y":1,"y":null}"#).unwrap().contains(r#""y":7"#));
    assert!(one(inner, r#"{"\u0078":5}"#).unwrap().contains(r#""x":5"#));
    assert!(one(inner, r#"{"tag":"\ud83d\ude00\u00e9\/"}"#).unwrap().contains("\u{1f600}\u{e9}/"));
    assert!(one(inner, r#" {"x":-0} "#).unwrap().contains(r#""x":0"#));
    assert!(one(all, r#"{"b":1}"#).unwrap().contains(r#""b":true"#));
    assert!(one(all, r#"{"b":0}"#).unwrap().contains(r#""b":false"#));
    assert!(one(all, r#"{"f":3}"#).unwrap().contains(r#""f":3.0"#));
    assert!(one(all, r#"{"f":1e400}"#).is_none());
    assert!(one(all, r#"{"by":"AA\u003d\u003d"}"#).unwrap().contains(r#""by":"AA==""#));
    assert!(one(all, r#"{"j": null }"#).unwrap().contains(r#""j":null"#));
    assert!(one(all, r#"{"j": "x y" }"#).unwrap().contains(r#""j":"x y""#));
    assert!(one(all, r#"{"map":{"k":{},"k":{"x":4}}}"#).unwrap().contains(r#""map":{"k":{"x":4,"#));
}

#[test]
fn refused_forms() {
    let (s, inner, all) = shapes();
    let mut w = World::new(s);
    for bad in [
        "",
        "null",
        "1",
        "[]",
        "\"\"",
        "{} x",
        "{}{}",
        "{\"x\":1",
        "{\"x\":01}",
        "{\"x\":+1}",
        "{\"x\":.5}",
        "{\"x\":1.0}",
        "{\"x\":1e3}",
        "{\"x\":\"1\"}",
        "{\"x\":9223372036854775808}",
        "{\"x\":[]}",
        "{\"tag\":1}",
        "{\"tag\":\"\t\"}",
        "{\"tag\":\"\\ud800\"}",
        "{\"z\":nul}",
        "{\"z\":[1,]}",
        "{\"x\":1,}",
        "{\"x\":nul}",
        "{\"tag\":\"a",
    ] {
        assert_eq!(round(&mut w, inner, bad), None, "{bad}");
    }
    for bad in [
        r#"{"b":2}"#,
        r#"{"b":"true"}"#,
        r#"{"b":1.0}"#,
        r#"{"f":true}"#,
        r#"{"f":"1"}"#,
        r#"{"t":1}"#,
        r#"{"by":"A"}"#,
        r#"{"by":"AA=A"}"#,
        r#"{"by":[]}"#,
        r#"{"c":2}"#,
        r#"{"c":-1}"#,
        r#"{"c":"R"}"#,
        r#"{"c":true}"#,
        r#"{"m":[null]}"#,
        r#"{"m":{}}"#,
        r#"{"m":[1 2]}"#,
        r#"{"map":{"a":null}}"#,
        r#"{"map":[]}"#,
        r#"{"o":[]}"#,
        r#"{"mm":["a"]}"#,
        r#"{"m":[1,2,"x"]}"#,
        r#"{"map":{"a":{},"b":{"x":"bad"}}}"#,
        r#"{"t":"x","i":"y"}"#,
    ] {
        assert_eq!(round(&mut w, all, bad), None, "{bad}");
    }
    assert!(unsafe { decode::decode(&mut w.ctx, all, std::ptr::null_mut(), alone) }.is_null());
}

#[test]
fn random_documents_neither_leak_nor_crash() {
    let (s, _, all) = shapes();
    let mut w = World::new(s);
    let good = br#"{"i":1,"t":"a\u00e9","by":"AAEC","m":[1,2],"map":{"k":{"tag":"v"}},"o":{"x":1},"j":[{}],"f":1.5}"#;
    let mut r = super::Random(99);
    for _ in 0..30_000 {
        let mut d = good.to_vec();
        for _ in 0..=r.below(3) {
            let at = r.below(d.len().max(1) as u64) as usize;
            if d.is_empty() {
                break;
            }
            match r.below(3) {
                0 => d[at] = b"{}[]\",:\\u0 n1"[r.below(13) as usize],
                1 => {
                    let _ = d.remove(at);
                }
                _ => d.truncate(at.max(1)),
            }
        }
        let t = text::new(&mut w.ctx, &d);
        let value = unsafe { decode::decode(&mut w.ctx, all, t, alone) };
        w.release(t);
        w.release(value);
        assert_eq!(w.live(), (0, 0));
    }
}

#[test]
fn depth_is_bounded_in_both_directions() {
    let mut w = World::new(node_shapes());
    let node_type = 6;
    let nest = |n: usize| format!("{}{}", "{\"next\":".repeat(n - 1) + "{", "}".repeat(n));
    assert!(round(&mut w, node_type, &nest(127)).is_some());
    // The innermost node's empty containers are the 129th level.
    let t = w.text(&nest(128));
    let value = unsafe { decode::decode(&mut w.ctx, node_type, t, alone) };
    assert!(!value.is_null());
    assert!(unsafe { encode::encode(&mut w.ctx, node_type, value as u64, 0) }.is_null());
    assert_eq!(w.take_trap(), Some((6, "json: nesting too deep".into())));
    w.release(value);
    w.release(t);
    assert!(round(&mut w, node_type, &nest(129)).is_none());
    assert!(round(&mut w, TYPE_JSON, &"[".repeat(129)).is_none());

    // A cycle ends there too.
    let node = object::new(&mut w.ctx, 0);
    unsafe {
        *field(node, 1) = node as u64;
        assert!(encode::encode(&mut w.ctx, node_type, node as u64, 0).is_null());
        assert_eq!(w.take_trap().unwrap().0, 6);
        *field(node, 1) = 0;
    }
    w.release(node);
}

#[test]
fn encodes_scalars_and_odd_keys() {
    let mut s = fixed_shapes();
    let floats = add_type(&mut s, TypeDesc::Map(TYPE_FLOAT, TYPE_BOOL));
    let bools = add_type(&mut s, TypeDesc::Map(TYPE_BOOL, TYPE_FLOAT));
    let bytes = add_type(&mut s, TypeDesc::Map(TYPE_BYTES, TYPE_INT));
    let maybe = add_type(&mut s, TypeDesc::Nullable(TYPE_BOOL));
    let row = add_type(&mut s, TypeDesc::Row(0));
    let mut w = World::new(s);
    let enc = |w: &mut World, ty, a: u64, b: u64| {
        let t = unsafe { encode::encode(&mut w.ctx, ty, a, b) };
        w.take(t)
    };
    assert_eq!(enc(&mut w, TYPE_INT, -5i64 as u64, 0), "-5");
    assert_eq!(enc(&mut w, TYPE_BOOL, 1, 0), "true");
    assert_eq!(enc(&mut w, TYPE_FLOAT, f64::NAN.to_bits(), 0), "null");
    assert_eq!(enc(&mut w, TYPE_FLOAT, f64::INFINITY.to_bits(), 0), "null");
    assert_eq!(enc(&mut w, maybe, 0, 0), "null");
    assert_eq!(enc(&mut w, maybe, 1, 0), "false");
    assert_eq!(enc(&mut w, TYPE_TEXT, 0, 0), "null");
    let m = crate::map::new(&mut w.ctx, floats, 0);
    w.release(m);
    let m = crate::map::new(&mut w.ctx, TYPE_FLOAT, TYPE_BOOL);
    unsafe {
        *crate::map::slot(&mut w.ctx, m, 1.5f64.to_bits()) = 1;
        *crate::map::slot(&mut w.ctx, m, f64::NAN.to_bits()) = 0;
    }
    assert_eq!(enc(&mut w, floats, m as u64, 0), r#"{"1.5":true,"nan":false}"#);
    w.release(m);
    let m = crate::map::new(&mut w.ctx, TYPE_BOOL, TYPE_FLOAT);
    unsafe { *crate::map::slot(&mut w.ctx, m, 0) = 2.0f64.to_bits() };
    assert_eq!(enc(&mut w, bools, m as u64, 0), r#"{"false":2.0}"#);
    w.release(m);
    let m = crate::map::new(&mut w.ctx, TYPE_BYTES, TYPE_INT);
    let key = text::new_bytes(&mut w.ctx, b"foob");
    unsafe { *crate::map::slot(&mut w.ctx, m, key as u64) = 2 };
    assert_eq!(enc(&mut w, bytes, m as u64, 0), r#"{"Zm9vYg==":2}"#);
    w.release(key);
    w.release(m);
    assert!(unsafe { encode::encode(&mut w.ctx, row, 1, 0) }.is_null());
    assert_eq!(w.take_trap(), Some((5, "no such row".into())));
}

#[test]
fn long_bytes_are_encoded_in_pieces() {
    let mut w = World::new(fixed_shapes());
    for n in [0usize, 1, 767, 768, 769, 5000] {
        let data: Vec<u8> = (0..n).map(|i| i as u8).collect();
        let b = text::new_bytes(&mut w.ctx, &data);
        let t = unsafe { encode::encode(&mut w.ctx, TYPE_BYTES, b as u64, 0) };
        let coded = w.take(t);
        let back = decode::base64(&mut w.ctx, coded.trim_matches('"').as_bytes(), alone);
        assert!(unsafe { text::eq(back, b) } || n == 0);
        w.release(back);
        w.release(b);
    }
}

thread_local! {
    /// Turns until the fiber is unwound.
    static TURNS: Cell<usize> = const { Cell::new(0) };
}

fn counted(ctx: &mut Ctx) -> bool {
    let left = TURNS.get();
    TURNS.set(left.saturating_sub(1));
    if left == 0 {
        ctx.trap = trap::UNWIND;
    }
    left > 0
}

/// Every kind of value on the way, and every place where a long one is cut short; `World` counts what is left over.
#[test]
fn whoever_is_unwound_in_a_long_decode_releases_everything() {
    let (s, _, all) = shapes();
    let mut w = World::new(s);
    let long = 2 * PIECE;
    let document = format!(
        r#"{{"t":"{}","by":"{}","j":["{}"],"map":{{"a":{{"tag":"{}"}},"{}":{{}}}},"m":[{}0],"o":{{"x":1,"skipped":[{}]}},"i":7}} {}"#,
        r"a\n".repeat(long / 3),
        r"QUJD\/\/\/\/".repeat(long / 12),
        "j".repeat(long),
        "t".repeat(long),
        "k".repeat(long),
        "1,".repeat(long / 2),
        " ".repeat(long),
        " ".repeat(long),
    );
    let t = w.text(&document);
    let mut turns = 0;
    loop {
        TURNS.set(turns);
        let value = unsafe { decode::decode(&mut w.ctx, all, t, counted) };
        w.release(value);
        if w.take_trap().is_none() {
            assert!(!value.is_null());
            break;
        }
        assert!(value.is_null());
        turns += 1;
    }
    // Those of the reader, and of the texts that it has made.
    assert!(turns >= document.len() / PIECE - 1 + 4, "{turns}");
    w.release(t);
}

#[test]
fn equality_goes_through_members() {
    let (s, _, all) = shapes();
    let mut w = World::new(s);
    let mut make = |d: &str| {
        let t = w.text(d);
        let v = unsafe { decode::decode(&mut w.ctx, all, t, alone) };
        w.release(t);
        v
    };
    let a = make(r#"{"m":[1,2],"map":{"a":{"x":1},"b":{}},"o":{},"n":3,"t":"x"}"#);
    let same = make(r#"{"m":[1,2],"map":{"b":{},"a":{"x":1}},"o":{},"n":3,"t":"x"}"#);
    let others: Vec<*mut Obj> = [
        r#"{"m":[1],"map":{"a":{"x":1},"b":{}},"o":{},"n":3,"t":"x"}"#,
        r#"{"m":[1,2],"map":{"a":{"x":2},"b":{}},"o":{},"n":3,"t":"x"}"#,
        r#"{"m":[1,2],"map":{"a":{"x":1},"c":{}},"o":{},"n":3,"t":"x"}"#,
        r#"{"m":[1,2],"map":{"a":{"x":1},"b":{}},"n":3,"t":"x"}"#,
        r#"{"m":[1,2],"map":{"a":{"x":1},"b":{}},"o":{},"t":"x"}"#,
        r#"{"m":[1,2],"map":{"a":{"x":1},"b":{}},"o":{},"n":3,"t":"y"}"#,
    ]
    .iter()
    .map(|d| make(d))
    .collect();
    let eq = |a: *mut Obj, b: *mut Obj| unsafe { equal::equal(&w.ctx, all, [a as u64, 0], [b as u64, 0]) };
    assert!(eq(a, a) && eq(a, same) && !eq(a, std::ptr::null_mut()));
    for &other in &others {
        assert!(!eq(a, other));
    }
    for v in others.into_iter().chain([a, same]) {
        w.release(v);
    }
}

#[test]
fn equality_of_graphs_ends() {
    let mut w = World::new(node_shapes());
    // Chains in which every node is reached along two edges: 2^100 paths.
    let mut chain = || {
        let mut below = std::ptr::null_mut::<Obj>();
        for _ in 0..60 {
            let n = object::new(&mut w.ctx, 0);
            let kids = multi::new(&mut w.ctx, 8, 0);
            unsafe {
                *field(n, 2) = kids as u64;
                *field(n, 4) = text::empty() as u64;
                if !below.is_null() {
                    object::retain(below);
                    assert!(multi::push(&mut w.ctx, kids, below as u64, 0));
                    assert!(multi::push(&mut w.ctx, kids, below as u64, 0));
                }
            }
            below = n;
        }
        below
    };
    let (a, b) = (chain(), chain());
    assert!(unsafe { equal::equal(&w.ctx, 6, [a as u64, 0], [b as u64, 0]) });
    w.release(a);
    w.release(b);
    // Cycles of two different graphs count as different.
    let (a, b) = (object::new(&mut w.ctx, 0), object::new(&mut w.ctx, 0));
    unsafe {
        *field(a, 1) = a as u64;
        *field(b, 1) = b as u64;
        assert!(!equal::equal(&w.ctx, 6, [a as u64, 0], [b as u64, 0]));
        assert!(equal::equal(&w.ctx, 6, [a as u64, 0], [a as u64, 0]));
        *field(a, 1) = 0;
        *field(b, 1) = 0;
    }
    w.release(a);
    w.release(b);
    assert!(!unsafe { equal::equal(&w.ctx, TYPE_FLOAT, [f64::NAN.to_bits(), 0], [f64::NAN.to_bits(), 0]) });
    assert!(unsafe { equal::equal(&w.ctx, TYPE_FLOAT, [0.0f64.to_bits(), 0], [(-0.0f64).to_bits(), 0]) });
}

#[test]
fn deep_values_need_little_stack() {
    // A fiber leaves the runtime 32 KiB; the debug build of this test gets twice that.
    let deep = || {
        let mut w = World::new(node_shapes());
        let t = w.text(&format!("{}{}", "{\"next\":".repeat(126) + "{", "}".repeat(127)));
        unsafe {
            let a = decode::decode(&mut w.ctx, 6, t, alone);
            let b = decode::decode(&mut w.ctx, 6, t, alone);
            assert!(equal::equal(&w.ctx, 6, [a as u64, 0], [b as u64, 0]));
            let c = crate::copy::deep_copy(&mut w.ctx, b);
            let out = encode::encode(&mut w.ctx, 6, c as u64, 0);
            assert!(!out.is_null());
            for obj in [t, a, b, c, out] {
                w.release(obj);
            }
        }
    };
    std::thread::Builder::new().stack_size(64 << 10).spawn(deep).unwrap().join().unwrap();
}
