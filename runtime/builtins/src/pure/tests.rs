//! Each builtin as generated code calls it, with the clamps, nil cases and traps of the language specification.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use super::{Pair, bytes, containers, json, memory, numbers, text, traps};
use abi::desc::{TYPE_INT, TYPE_TEXT, TypeDesc};
use std::ptr::null_mut;
use values::ctx::{Ctx, Site};
use values::multi;
use values::object::Obj;
use values::testing::{World, add_class, add_type, fixed_shapes};
use values::text::Part;

struct T {
    w: World,
}

impl T {
    fn new() -> T {
        T { w: World::new(fixed_shapes()) }
    }

    fn ctx(&mut self) -> *mut Ctx {
        &raw mut *self.w.ctx
    }

    /// Calls `f` with texts of these contents, which it borrows.
    fn with<const N: usize, R>(&mut self, texts: [&[u8]; N], f: impl FnOnce(*mut Ctx, [*mut Obj; N]) -> R) -> R {
        let objs = texts.map(|t| values::text::new(&mut self.w.ctx, t));
        let result = f(self.ctx(), objs);
        for o in objs {
            self.w.release(o);
        }
        result
    }

    fn text<const N: usize>(
        &mut self,
        texts: [&str; N],
        f: impl FnOnce(*mut Ctx, [*mut Obj; N]) -> *mut Obj,
    ) -> String {
        let result = self.with(texts.map(str::as_bytes), f);
        assert!(!result.is_null());
        self.w.take(result)
    }

    fn list(&mut self, list: *mut Obj) -> Vec<String> {
        // SAFETY: the test's world owns the context, and the object is alive until the test releases it.
        let all = unsafe { multi::words(&self.w.ctx, list) }.iter().map(|&t| self.w.read(t as *mut Obj)).collect();
        self.w.release(list);
        all
    }

    fn trap(&mut self) -> (i64, String) {
        self.w.take_trap().unwrap()
    }
}

#[test]
fn byte_at_and_substr() {
    let mut t = T::new();
    assert_eq!(t.with([b"a\xff\0"], |c, [a]| [0, 1, 2].map(|i| text::byte_at(c, a, i))), [97, 255, 0]);
    for i in [-1, 3, i64::MIN, i64::MAX] {
        let _ = t.with([b"a\xff\0"], |c, [a]| text::byte_at(c, a, i));
        assert_eq!(t.trap(), (6, "byte index out of range".into()));
    }
    for (start, n, expected) in [
        (0, 5, "hello"),
        (1, 3, "ell"),
        (-2, 2, "he"),
        (3, 99, "lo"),
        (5, 1, ""),
        (9, 9, ""),
        (2, -1, ""),
        (2, 0, ""),
        (i64::MIN, i64::MAX, "hello"),
        (i64::MAX, i64::MAX, ""),
        (4, 1, "o"),
    ] {
        assert_eq!(t.text(["hello"], |c, [a]| text::substr(c, a, start, n)), expected, "{start} {n}");
    }
    assert_eq!(t.text([""], |c, [a]| text::substr(c, a, 0, 1)), "");
}

#[test]
fn searching() {
    let mut t = T::new();
    let mut find = |a: &str, b: &str| {
        t.with([a.as_bytes(), b.as_bytes()], |c, [a, b]| {
            (
                text::index_of(c, a, b),
                text::last_index_of(c, a, b),
                text::starts_with(c, a, b),
                text::ends_with(c, a, b),
            )
        })
    };
    assert_eq!(find("abcabc", "bc"), (1, 4, 0, 1));
    assert_eq!(find("abcabc", ""), (0, 6, 1, 1));
    assert_eq!(find("", ""), (0, 0, 1, 1));
    assert_eq!(find("abc", "abcd"), (-1, -1, 0, 0));
    assert_eq!(find("aaa", "aa"), (0, 1, 1, 1));
    assert_eq!(find("a\0b", "\0"), (1, 1, 0, 0));
}

#[test]
fn trimming_case_and_words() {
    let mut t = T::new();
    for (a, b) in
        [(" \t\r\n x y \n", "x y"), ("", ""), ("  ", ""), ("x", "x"), ("\u{b}x\u{a0}", "\u{b}x\u{a0}"), (" ab", "ab")]
    {
        assert_eq!(t.text([a], |c, [a]| text::trim(c, a)), b);
    }
    assert_eq!(t.text(["ABC\u{c4}xyz[]"], |c, [a]| text::to_lower(c, a)), "abc\u{c4}xyz[]");
    assert_eq!(t.text(["abc"], |c, [a]| text::to_lower(c, a)), "abc");
    assert_eq!(t.text([], |c, []| text::char_of(c, 65 + 256)), "A");
    let b = t.with([], |c, []| text::char_of(c, -1));
    // SAFETY: the test's world owns the context, and the object is alive until the test releases it.
    assert_eq!(unsafe { values::text::bytes(b) }, [255]);
    for (a, n) in [("", 0), ("  ", 0), ("a", 1), (" a  b\tc\n", 3)] {
        assert_eq!(t.with([a.as_bytes()], |c, [a]| text::words(c, a)), n);
        let list = t.with([a.as_bytes()], |c, [a]| text::split_ws(c, a));
        assert_eq!(t.list(list), a.split_whitespace().collect::<Vec<_>>());
    }
}

#[test]
fn splitting_and_joining() {
    let mut t = T::new();
    for (a, sep) in [("a,b,,c,", ","), ("", ","), (",", ","), ("aXXbXXX", "XX"), ("abc", "abcd"), ("aaa", "a")] {
        let list = t.with([a.as_bytes(), sep.as_bytes()], |c, [a, s]| text::split(c, a, s));
        // SAFETY: the test's world owns the context, and the object is alive until the test releases it.
        unsafe { values::object::retain(list) };
        let joined = t.with([sep.as_bytes()], |c, [s]| text::join(c, list, s));
        assert_eq!(t.w.take(joined), a);
        assert_eq!(t.list(list), a.split(sep).collect::<Vec<_>>());
        t.w.release(list);
    }
    assert!(t.with([b"a", b""], |c, [a, s]| text::split(c, a, s)).is_null());
    assert_eq!(t.trap(), (6, "`split` needs a non-empty separator".into()));

    let mut shapes = fixed_shapes();
    let maybe = add_type(&mut shapes, TypeDesc::Nullable(TYPE_TEXT));
    let mut t = T { w: World::new(shapes) };
    let list = multi::new(&mut t.w.ctx, maybe, 0);
    assert_eq!(t.text(["-"], |c, [s]| text::join(c, list, s)), "");
    for word in [0, values::text::of_byte(b'x') as u64, 0] {
        containers::multi_push(t.ctx(), list, word, 0);
    }
    assert_eq!(t.text(["-"], |c, [s]| text::join(c, list, s)), "-x-");
    t.w.release(list);
}

#[test]
fn texts_of_numbers_and_back() {
    let mut t = T::new();
    for n in [0, -1, i64::MAX, i64::MIN] {
        assert_eq!(t.text([], |c, []| text::int_to_text(c, n)), n.to_string());
    }
    for (a, expected) in [(" +12ab", Some(12)), ("-0", Some(0)), ("", None), ("x", None), ("9223372036854775808", None)]
    {
        let Pair(tag, n) = t.with([a.as_bytes()], |c, [a]| text::parse_int(c, a));
        assert_eq!((tag == 1).then_some(n as i64), expected);
    }
    for (a, expected) in [
        (&b""[..], 0),
        (b"a\xc3\xa9", 0),
        (b"a\xc3", 1),
        (b"\xf0\x9f\x98", 1),
        (b"\xff", 2),
        (b"\xc3a", 2),
        (b"\xed\xa0\x80", 2),
        (b"\xc0\x80", 2),
        (b"\xf4\x90", 2),
        (b"\xf0\x9f\x98\x80", 0),
    ] {
        assert_eq!(t.with([a], |c, [a]| text::utf8_check(c, a)), expected, "{a:?}");
    }
    assert_eq!(t.text([], |c, []| text::bool_to_text(c, 1)), "true");
    assert_eq!(t.text([], |c, []| text::bool_to_text(c, 0)), "false");
    assert_eq!(t.text([], |c, []| numbers::float_to_text(c, 1.5e-7)), "1.5e-07");
    assert_eq!(t.with([b" 2.5"], |c, [a]| numbers::parse_float(c, a)), 2.5);
    assert!(t.with([b"2.5 "], |c, [a]| numbers::parse_float(c, a)).is_nan());
}

#[test]
fn floats() {
    let mut t = T::new();
    let c = t.ctx();
    assert_eq!(numbers::float(c, i64::MAX), 9_223_372_036_854_775_808.0);
    assert_eq!(numbers::trunc(c, -9_223_372_036_854_775_808.0), i64::MIN);
    assert_eq!([2.9, -2.9, 0.0].map(|f| numbers::trunc(c, f)), [2, -2, 0]);
    for f in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 9_223_372_036_854_775_808.0, -9.3e18] {
        assert_eq!(numbers::trunc(c, f), 0);
        assert_eq!(t.trap(), (6, "trunc: float has no integer value".into()));
    }
    assert_eq!(numbers::float_cmp(c, f64::NAN, f64::INFINITY), 1);
    assert_eq!(numbers::float_cmp(c, -0.0, 0.0), 0);
    assert_eq!(numbers::float_cmp(c, 1.0, 2.0), -1);
}

#[test]
fn concat_append_compare() {
    let mut t = T::new();
    let parts = [Part { kind: 1, word: 12 }, Part { kind: 2, word: 0.1f64.to_bits() }, Part { kind: 3, word: 1 }];
    assert_eq!(t.text([], |c, []| text::concat(c, parts.as_ptr(), 3)), "120.1true");
    assert_eq!(t.text([], |c, []| text::concat(c, std::ptr::null(), 0)), "");
    let s = t.w.text("s");
    let s = text::append(t.ctx(), s, parts.as_ptr(), 3);
    let s = text::append(t.ctx(), s, parts.as_ptr(), 1);
    assert_eq!(t.w.take(s), "s120.1true12");
    let mut cmp = |a: &[u8], b: &[u8]| t.with([a, b], |c, [a, b]| (text::cmp(c, a, b), text::eq(c, a, b)));
    assert_eq!(cmp(b"a", b"b"), (-1, 0));
    assert_eq!(cmp(b"aa", b"a"), (1, 0));
    assert_eq!(cmp(b"\x80", b"\x7f"), (1, 0));
    assert_eq!(cmp(b"a\0b", b"a\0b"), (0, 1));
    assert_eq!(text::eq(t.ctx(), null_mut(), values::text::empty()), 0);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn digests() {
    let mut t = T::new();
    let mut digest = |f: extern "C" fn(*mut Ctx, *mut Obj) -> *mut Obj, data: &[u8]| {
        let d = t.with([data], |c, [a]| f(c, a));
        // SAFETY: the test's world owns the context, and the object is alive until the test releases it.
        let text = hex(unsafe { values::text::bytes(d) });
        t.w.release(d);
        text
    };
    assert_eq!(digest(bytes::sha1, b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
    assert_eq!(digest(bytes::sha1, b""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    assert_eq!(digest(bytes::sha256, b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    let mut hmac = |key: &[u8], data: &[u8]| {
        let d = t.with([key, data], |c, [k, a]| bytes::hmac_sha256(c, k, a));
        // SAFETY: the test's world owns the context, and the object is alive until the test releases it.
        let text = hex(unsafe { values::text::bytes(d) });
        t.w.release(d);
        text
    };
    assert_eq!(hmac(&[0x0b; 20], b"Hi There"), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    assert_eq!(
        hmac(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First"),
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
    );
    assert_eq!(t.with([b"123456789"], |c, [a]| bytes::crc32(c, a)), 0xCBF4_3926);
    let first = t.with([b"1234"], |c, [a]| bytes::crc32(c, a));
    assert_eq!(t.with([b"56789"], |c, [a]| bytes::crc32_update(c, first | 7 << 32, a)), 0xCBF4_3926);
}

#[test]
fn byte_strings() {
    let mut t = T::new();
    assert_eq!(t.text(["foob"], |c, [a]| bytes::base64_encode(c, a)), "Zm9vYg==");
    assert_eq!(t.text([""], |c, [a]| bytes::base64_encode(c, a)), "");
    let decoded = |t: &mut T, a: &str| {
        let b = t.with([a.as_bytes()], |c, [a]| bytes::base64_decode(c, a));
        if b.is_null() { None } else { Some(t.w.take(b)) }
    };
    assert_eq!(decoded(&mut t, "Zm9vYg==").unwrap(), "foob");
    assert_eq!(decoded(&mut t, "").unwrap(), "");
    for bad in ["Zg", "Zg=", "====", "Zm9v ", "Zm9_", "Z===", "=AAA", "AA=A", "AA==AAAA", "\n"] {
        assert_eq!(decoded(&mut t, bad), None, "{bad}");
    }
    assert_eq!(t.text(["ab", "cd"], |c, [a, b]| bytes::bytes_concat(c, a, b)), "abcd");
    assert_eq!(t.text(["", ""], |c, [a, b]| bytes::bytes_concat(c, a, b)), "");
    assert_eq!(t.text(["hello"], |c, [a]| bytes::bytes_slice(c, a, -1, 3)), "hel");
    assert_eq!(t.text(["hello"], |c, [a]| bytes::bytes_slice(c, a, 3, 9)), "lo");
    assert_eq!(t.text(["hello"], |c, [a]| bytes::bytes_of_text(c, a)), "hello");
    assert_eq!(t.text(["hello"], |c, [a]| bytes::text_of_bytes(c, a)), "hello");
    assert_eq!(t.with([b"abc"], |c, [a]| (bytes::bytes_len(c, a), bytes::bytes_at(c, a, 2))), (3, 99));
    for i in [-1, 3] {
        let _ = t.with([b"abc"], |c, [a]| bytes::bytes_at(c, a, i));
        assert_eq!(t.trap(), (6, "bytes index out of range".into()));
    }
    let mut eq = |a: &[u8], b: &[u8]| t.with([a, b], |c, [a, b]| bytes::bytes_eq(c, a, b));
    assert_eq!([eq(b"", b""), eq(b"ab", b"ab"), eq(b"ab", b"aB"), eq(b"a", b"ab")], [1, 1, 0, 0]);
}

#[test]
fn container_traps() {
    let mut t = T::new();
    let c = t.ctx();
    let m = containers::multi_new(c, u64::from(TYPE_INT), 4);
    containers::multi_push(c, m, 7, 0);
    containers::multi_push(c, m, 8, 0);
    assert_eq!(containers::multi_shift(c, m), Pair(7, 0));
    assert_eq!(containers::multi_pop(c, m), Pair(8, 0));
    let _ = containers::multi_pop(c, m);
    assert_eq!(t.trap(), (6, "`pop` on an empty multi".into()));
    let _ = containers::multi_shift(c, m);
    assert_eq!(t.trap(), (6, "`shift` on an empty multi".into()));
    for n in [3u64, 1, 2] {
        containers::multi_push(c, m, n, 0);
    }
    containers::multi_sort(c, m);
    containers::multi_reverse(c, m);
    let s = containers::multi_slice(c, m, 0, 2);
    // SAFETY: the test's world owns the context, and the object is alive until the test releases it.
    assert_eq!(unsafe { multi::words(&t.w.ctx, s) }, &[3, 2]);
    t.w.release(s);
    t.w.release(m);
    let _ = containers::multi_pop(c, null_mut());
    assert_eq!(t.trap(), (6, "null receiver".into()));

    let m = containers::map_new(c, u64::from(TYPE_INT), u64::from(TYPE_INT));
    // SAFETY: the test's world owns the context, and the object is alive until the test releases it.
    unsafe { *containers::map_slot(c, m, 5) = 50 };
    // SAFETY: the test's world owns the context, and the object is alive until the test releases it.
    assert_eq!(unsafe { *containers::map_find(c, m, 5) }, 50);
    assert!(containers::map_find(c, m, 6).is_null());
    let e = containers::map_entry(c, m, 0);
    // SAFETY: the test's world owns the context, and the object is alive until the test releases it.
    assert_eq!(unsafe { (*e, *e.add(1)) }, (5, 50));
    for i in [-1, 1] {
        assert!(containers::map_entry(c, m, i).is_null());
        assert_eq!(t.trap(), (6, "map slot out of range".into()));
    }
    assert_eq!((containers::map_remove(c, m, 5), containers::map_remove(c, m, 5)), (1, 0));
    t.w.release(m);
}

#[test]
fn assertions_and_json() {
    let mut shapes = fixed_shapes();
    let list = add_type(&mut shapes, TypeDesc::Multi(TYPE_INT));
    let maybe = add_type(&mut shapes, TypeDesc::Nullable(TYPE_INT));
    let class = add_class(&mut shapes, "Spot", &[("x", TYPE_INT, None), ("tag", maybe, None)]);
    let spot = add_type(&mut shapes, TypeDesc::Object(class));
    let mut t = T { w: World::new(shapes) };
    let c = t.ctx();
    json::assert_eq(c, u64::from(TYPE_INT), 1, 0, 1, 0);
    json::assert_eq(c, u64::from(maybe), 0, 5, 0, 6);
    assert!(t.w.take_trap().is_none());
    json::assert_eq(c, u64::from(TYPE_INT), 1, 0, 2, 0);
    assert_eq!(t.trap(), (8, "assertion failed: 1 != 2".into()));
    json::assert_eq(c, u64::from(maybe), 0, 0, 1, 6);
    assert_eq!(t.trap(), (8, "assertion failed: null != 6".into()));

    let m = containers::multi_new(c, u64::from(TYPE_INT), 0);
    containers::multi_push(c, m, 9, 0);
    json::assert_eq(c, u64::from(list), m as u64, 0, 0, 0);
    assert_eq!(t.trap(), (8, "assertion failed: [9] != null".into()));
    t.w.release(m);

    let o = t.with([br#"{"x":3,"more":[1]}"#], |c, [a]| json::json_decode(c, u64::from(spot), a));
    assert_eq!(t.text([], |c, []| json::json_encode(c, u64::from(spot), o as u64, 0)), r#"{"x":3,"tag":null}"#);
    assert_eq!(t.text([], |c, []| json::class_name(c, o)), "Spot");
    t.w.release(o);
    assert!(json::json_decode(c, u64::from(spot), null_mut()).is_null());
    assert_eq!(t.text([], |c, []| json::json_encode(c, u64::from(maybe), 0, 0)), "null");
    let o = memory::new(c, u64::from(class));
    assert_eq!(t.text([], |c, []| json::json_encode(c, u64::from(spot), o as u64, 0)), r#"{"x":0,"tag":null}"#);
    // SAFETY: the test's world owns the context, and the object is alive until the test releases it.
    unsafe { (*o).count.store(0, std::sync::atomic::Ordering::Relaxed) };
    memory::released(c, o);
}

#[test]
fn catching() {
    let mut t = T::new();
    t.w.image().sites = vec![Site { offset: 100, func: 0, line: 6 }, Site { offset: 300, func: 1, line: 3 }];
    let c = t.ctx();
    assert_eq!(t.text([], |c, []| traps::stack(c)), "");
    assert_eq!(traps::catchable(c), 0);
    t.with([b"no luck"], |c, [m]| traps::raise(c, 8, m));
    t.with([b"second"], |c, [m]| traps::raise(c, 9, m));
    let words = [0u64, 100];
    t.w.ctx.stack_base = words.as_ptr_range().end as u64;
    traps::site(c, 300, words.as_ptr() as u64);
    assert_eq!((traps::catchable(c), traps::code(c), traps::line(c)), (1, 8, 3));
    assert_eq!(t.text([], |c, []| traps::method(c)), "each");
    assert_eq!(t.text([], |c, []| traps::msg(c)), "no luck");
    let kept = traps::msg(c);
    traps::clear(c);
    assert_eq!(t.w.take(kept), "no luck");
    assert_eq!((traps::catchable(c), traps::code(c)), (0, 0));
    assert_eq!(t.text([], |c, []| traps::stack(c)), "  at Order.each (order.wo:3)\n  at main (main.wo:6)");
    t.w.ctx.trap = abi::trap::UNWIND;
    assert_eq!(traps::catchable(c), 0);
    t.w.ctx.trap = 0;
}
