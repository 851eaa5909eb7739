//! `woc dump gc` (7.2), byte for byte; what porch promises about its classes; the labels of ownership reports (12.2).

use std::path::Path;

use crate::json::{Json, parse};
use crate::{Tree, assert_status};

/// The output of `woc dump gc` for a program.
#[track_caller]
fn gc(source: &str) -> String {
    let out = Tree::new(&[("p.wo", source.as_bytes())]).woc(&["dump", "gc", "p.wo"]);
    assert_status(&out, 0);
    out.stdout_text()
}

#[test]
fn the_example_of_the_specification() {
    let text = gc("class Leaf { n: Int }
class Tree {
  top: Leaf
  kids: multi Tree = []
  fn peak() -> Leaf { return self.top }
}
fn main() {}
");
    let wanted = "Leaf       gc     (alias escape (demand))\nTree       gc     (cycle Tree -> Tree)\n";
    assert_eq!(text, wanted);
}

#[test]
fn cycles_demands_and_owned_classes() {
    let text = gc("class A { b: ?B = nil }
class B { c: map<Text, multi C> = {} }
class C { a: ?A = nil, s: ?C = nil }
typedef Point = { x: Int, y: Int }
class VeryLongClassName { p: Point }
class Kept { n: Int }
class Box { kept: multi Kept = [], via: ?Holder = nil }
interface Holder { fn hold() }
fn keep(mut b: Box, k: Kept) { push(b.kept, k) }
fn main() {}
");
    let wanted = "A          gc     (cycle A -> B -> C -> A)
B          gc     (cycle B -> C -> A -> B)
Box        owned
C          gc     (cycle C -> C)
Kept       gc     (alias escape (demand))
Point      owned
VeryLongClassName owned
";
    assert_eq!(text, wanted);
}

/// Every way in which a borrowed object escapes makes its class traced.
#[test]
fn every_escape_is_a_demand() {
    let escapes = [
        "fn f(k: K) -> K { return k }",
        "fn f(k: K) -> ?K { return k }",
        "fn f(k: K) -> H { return H { k: k } }",
        "fn f(k: K) -> U { return Some(k) }",
        "fn f(k: K) -> multi K { return [k] }",
        "fn f(k: K, mut h: H) { h.k = k }",
        "fn f(k: K, mut xs: multi K) { xs[0] = k }",
        "fn f(k: K, mut m: map<Text, K>) { m[\"a\"] = k }",
        "fn f(k: K, mut m: map<Text, K>) { set(m, \"a\", k) }",
        "fn f(k: K, mut xs: multi K) { push(xs, k) }",
        "fn f(k: K) {\n  let mine = K { n: 1 }\n  mine = k\n}",
        "fn g(take k: K) {}\nfn f(k: K) { g(k) }",
        "fn g(take i: I) {}\nfn f(k: K) { g(k) }",
        "fn f(k: K) -> I { return k }",
        "fn f(k: K, c: Int) -> K {\n  return switch c {\n    case 0: K { n: 1 }\n    default: k\n  }\n}",
        "fn f(k: K) -> K { return try check(k) catch (e) k }\nfn check(k: K) -> K { return K { n: 1 } }",
        "fn f(xs: multi K) -> K {\n  let a = xs[0]\n  let b = a\n  return b\n}",
        "fn f(xs: multi K) -> K { return get(xs, 0) }",
        "fn f(xs: multi K) -> K { return latest(xs) }",
        "fn f(m: map<Text, K>) -> K { return val_at(m, 0) }",
        "fn f(xs: multi K, mut ys: multi K) {\n  for k in xs { push(ys, k) }\n}",
        "fn f(m: map<Text, K>, mut ys: multi K) {\n  for t, k in m { push(ys, k) }\n}",
        "fn f(u: U) -> K {\n  switch u {\n    case Some(k): return k\n    case None: return K { n: 1 }\n  }\n}",
    ];
    for escape in escapes {
        let text = gc(&format!(
            "class K {{\n  n: Int\n  fn go() {{}}\n}}\nclass H {{ k: K }}\ntype U = None | Some(k: K)\n\
             interface I {{ fn go() }}\n{escape}\nfn main() {{}}\n"
        ));
        assert!(text.contains("K          gc     (alias escape (demand))\n"), "{escape}\n{text}");
        assert!(text.contains("H          owned\n"), "{escape}\n{text}");
    }
}

/// What is no escape of a borrow leaves its class owned.
#[test]
fn moves_and_borrows_are_no_demands() {
    let harmless = [
        "fn f(take k: K) -> K { return k }",
        "fn f(k: K) {\n  let a = k\n  a.n = 1\n}",
        "fn f(k: K) -> Int { return g(k) }\nfn g(k: K) -> Int { return k.n }",
        "fn f(mut xs: multi K) -> K { return pop(xs) }",
        "fn f(take u: U) -> K {\n  return switch u {\n    case Some(k): k\n    case None: K { n: 1 }\n  }\n}",
        "fn show(i: I) { i.go() }\nfn f(k: K) { show(k) }",
        "fn f() -> K { return H { k: K { n: 1 } }.k }",
        "fn f(xs: multi K) -> Int {\n  let sum = 0\n  for k in xs { sum += k.n }\n  return sum\n}",
    ];
    for source in harmless {
        let text = gc(&format!(
            "class K {{\n  n: Int\n  fn go() {{}}\n}}\nclass H {{ k: K }}\ntype U = None | Some(k: K)\n\
             interface I {{ fn go() }}\n{source}\nfn main() {{}}\n"
        ));
        assert_eq!(text, "H          owned\nK          owned\n", "{source}");
    }
}

/// porch, for the library alone and for every example that uses it: every class and record is owned, except `Pool`, which keeps its
/// argument.
#[test]
fn porch_owns_its_objects() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples").canonicalize().unwrap();
    let mut seen = 0;
    for entry in std::fs::read_dir(examples).unwrap() {
        let path = entry.unwrap().path();
        // Others than porch and its examples have nothing of it.
        if !std::fs::read_to_string(path.join("wo.toml")).is_ok_and(|manifest| manifest.contains("porch")) {
            continue;
        }
        let out = Tree::new(&[]).woc(&["dump", "gc", path.to_str().unwrap()]);
        assert_status(&out, 0);
        let text = out.stdout_text();
        for line in text.lines().filter(|l| !l.starts_with("Pool ")) {
            assert!(line.ends_with(" owned"), "{}: {line}", path.display());
        }
        assert!(text.contains("App        owned\n"), "{text}");
        seen += 1;
    }
    assert!(seen >= 2);
}

/// The one report of a program: code, title, and the texts of its related labels with their lines.
#[track_caller]
fn report(source: &str) -> (String, String, Vec<(i64, String)>) {
    let out = Tree::new(&[("p.wo", source.as_bytes())]).woc(&["check", "--format", "json", "p.wo"]);
    assert_status(&out, 1);
    let text = out.stderr_text();
    assert_eq!(text.lines().count(), 1, "{text}");
    let value = parse(text.trim_end());
    let Json::List(labels) = value.get("labels") else { panic!("{text}") };
    let labels = labels.iter().map(|l| match l.get("line") {
        Json::Number(line) => (*line, l.get("text").text().to_owned()),
        other => panic!("{other:?}"),
    });
    for key in ["notes", "help"] {
        assert!(!matches!(value.get(key), Json::Null), "{text}");
    }
    (value.get("code").text().to_owned(), value.get("title").text().to_owned(), labels.collect())
}

#[track_caller]
fn has(labels: &[(i64, String)], line: i64, part: &str) {
    assert!(labels.iter().any(|(at, text)| *at == line && text.contains(part)), "{line} {part}: {labels:?}");
}

const PEN: &str = "class Pen { ink: Int }\nclass Case { pen: Pen }\nfn keep(take p: Pen) {}\n";

#[test]
fn send_1_use_after_send_names_the_send() {
    let (code, title, labels) = report(
        "class Add { n: Int }\nclass Sum { fn receive(m: Add) {} }\nfn main() {\n  let s = spawn Sum {}\n  \
         let a = Add { n: 1 }\n  send(s, a)\n  print_int(a.n)\n}\n",
    );
    assert_eq!(code, "WO-E301");
    assert!(title.contains("`a`"), "{title}");
    has(&labels, 6, "moved here");
    has(&labels, 7, "");
}

#[test]
fn use_after_move_names_the_move() {
    let (code, title, labels) =
        report(&format!("{PEN}fn main() {{\n  let p = Pen {{ ink: 1 }}\n  keep(p)\n  print_int(p.ink)\n}}\n"));
    assert_eq!(code, "WO-E301");
    assert!(title.contains("`p`"), "{title}");
    has(&labels, 6, "moved here");
    let (_, _, labels) = report(&format!(
        "{PEN}fn main() {{\n  let p = Pen {{ ink: 1 }}\n  for n in [1, 2] {{\n    p.ink = n\n    keep(p)\n  }}\n}}\n"
    ));
    has(&labels, 8, "on the previous iteration");
    // A move on the right of a store into the moved local stands behind its use, but is no earlier iteration.
    for head in ["if true", "while true"] {
        let (code, _, labels) = report(&format!(
            "interface I {{ fn go() }}\nclass W {{\n  me: ?I = nil\n  fn go() {{}}\n}}\n\
             fn main() {{\n  {head} {{\n    let w = W {{}}\n    w.me = w\n  }}\n}}\n"
        ));
        assert_eq!(code, "WO-E301");
        has(&labels, 9, "moved here");
        assert!(!labels.iter().any(|(_, text)| text.contains("previous")), "{labels:?}");
    }
}

#[test]
fn borrow_conflicts_name_both_places() {
    let (code, title, labels) = report(&format!(
        "{PEN}fn main() {{\n  let c = Case {{ pen: Pen {{ ink: 1 }} }}\n  let p = c.pen\n  let d = c\n  \
         print_int(p.ink + d.pen.ink)\n}}\n"
    ));
    assert_eq!(code, "WO-E302");
    assert!(title.contains("`c`") && title.contains("`p`"), "{title}");
    has(&labels, 6, "borrows here");
    has(&labels, 8, "used here");
    let (code, title, labels) = report(&format!(
        "{PEN}fn fill(mut c: Case, p: Pen) {{}}\nfn main() {{\n  let c = Case {{ pen: Pen {{ ink: 1 }} }}\n  \
         fill(c, c.pen)\n}}\n"
    ));
    assert_eq!(code, "WO-E303");
    assert!(title.contains("`c`") && title.contains("`c.pen`"), "{title}");
    has(&labels, 7, "exclusively borrowed");
}

#[test]
fn escapes_name_where_the_borrow_comes_from_and_goes() {
    let (code, title, labels) =
        report("class Box { xs: multi Int }\nfn f(b: Box) -> multi Int { return b.xs }\nfn main() {}\n");
    assert_eq!(code, "WO-E304");
    assert!(title.contains("`b.xs`") && title.contains("the result of `f`"), "{title}");
    has(&labels, 2, "`b` is borrowed here");
    let (code, title, _) = report(&format!(
        "{PEN}fn f() -> Pen {{\n  let c = Case {{ pen: Pen {{ ink: 1 }} }}\n  return c.pen\n}}\nfn main() {{}}\n"
    ));
    assert_eq!(code, "WO-E305");
    assert!(title.contains("`c.pen`") && title.contains("`c`"), "{title}");
}

#[test]
fn traced_messages_say_why() {
    let actor = "class Sink { fn receive(msg: Batch) {} }\nfn main() { send(spawn Sink {}, Batch { items: [] }) }\n";
    let (code, title, _) =
        report(&format!("class Node {{ next: ?Node = nil }}\nclass Batch {{ items: multi Node }}\n{actor}"));
    assert_eq!(code, "WO-E222");
    assert!(title.contains("message") && title.contains("`Batch.items`") && title.contains("`Node`"), "{title}");
    let (_, title, labels) = report(&format!(
        "class Node {{ n: Int }}\nclass Batch {{ items: multi Node }}\nfn same(n: Node) -> Node {{ return n }}\n{actor}"
    ));
    assert!(title.contains("`Batch.items`"), "{title}");
    has(&labels, 3, "escapes here");
}
