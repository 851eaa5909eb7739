//! Nil: sites, narrowing, loops, `try`, reachability.

use super::{expect, hir_of};

#[test]
fn sites() {
    expect(
        r#"
use env
class Node { next: ?Node
  text: ?Text
  n: Int = 0 }
fn need(t: Text) -> Text { return t }
fn f(s: ?Text, n: ?Int, node: ?Node, xs: ?multi Int) -> Text {
  let a = s .. "x"                  --! W204
  let b = n + 1                     --! E211
  let c = "${s}"                    --! E211
  let d = node.n                    --! E213
  let e = xs[0]                     --! E213
  need(s)                           --! E211
  for x in xs { }                   --! E211
  let g: Text = s                   --! E212
  let h = Node { n: n }             --! E212
  h.n = n                           --! E212
  print(h.text)                     --! W204
  print(s)                          --! W204
  print(nil)                        --! E212
  let i = parse_int("1") + 1        --! W204
  print(env.get("NO"))              --! W204
  if n { }                          --! E211
  if n == 0 { }
  if nil != n { }
  return s                          --! E211
}
fn g() -> Int { return nil }        --! E211
fn main() { f("a", 1, nil, nil) }
"#,
    );
}

#[test]
fn narrowing() {
    expect(
        r#"
class Node { next: ?Node
  n: Int = 0 }
fn width(s: ?Text, pad: ?Int) -> Int {
  if s == nil or pad == nil { return 0 }
  return len(s) + pad
}
fn port_of(args: map<Text, Text>) -> Int {
  let raw = args["port"]
  if raw == nil { return 8080 }
  let n = parse_int(raw)
  if n == nil { return 8080 }
  return n
}
fn sum(head: ?Node) -> Int {
  let cur = head
  let total = 0
  while cur != nil {
    total += cur.n
    cur = cur.next
  }
  return total
}
fn both(x: ?Int) -> Int {
  if x == nil { print("no") } else { print_int(x) }
  return x                          --! W204
}
fn one(x: ?Int) -> Int {
  if x != nil and x > 1 { return x }
  if not (x == nil) { return x }
  if x == nil { x = 3 }
  return x
}
fn fields(n: Node) -> Int {
  if n.next != nil { return n.next.n }   --! E213
  return 0
}
fn reset(x: ?Int) -> Int {
  if x == nil { return 0 }
  let i = 0
  while i < 3 {
    print_int(x)                    --! W204
    x = nil
    i += 1
  }
  return x                          --! W204
}
fn quiet() -> Int {
  let m: map<Text, Int> = {}
  let v = m["a"]
  if v == nil { return 1 }
  return v + m["b"]
}
fn after_loop(x: ?Int) -> Int {
  while x == nil { x = 1 }
  return x
}
fn strict_loop(x: ?Int) -> Int {
  while true { if x != nil { break } }
  return x
}
fn join_strict(x: ?Int, c: Bool) -> Int {
  if c { x = 1 }
  return x                          --! E211
}
fn main() { width(nil, nil) }
"#,
    );
}

#[test]
fn tries() {
    expect(
        r#"
fn half(a: Int, b: Int) -> Int { return a / b }
fn main() -> Int {
  let q = try half(0, 4) catch (e) nil
  if q == nil { print("trap") } else { print("${q}") }
  let r = try half(1, 0) catch (e) {
    print(e.msg)
    -1
  }
  let n: Int = try half(1, 0) catch (e) nil      --! W204
  let t = try half(1, 0) catch (e) "x"           --! E201
  try half(1, 0) catch (e) print(e.msg)
  let u = try half(1, 0) catch (e) { return e.code }
  let v = try half(1, 0) catch (e) { }
  if v != nil { print_int(v) }
  return r + 1 + u
}
fn loses(x: ?Int) -> Int {
  if x == nil { return 0 }
  let y = try switch x { case 1: { x = nil
    1 }
    default: 2 } catch (e) { x }
  return 1
}
"#
        .replace("case 1: { x = nil\n    1 }", "case 1: x = nil\n    1")
        .replace("catch (e) { x }", "catch (e) { print_int(x); 0 } --! W204")
        .as_str(),
    );
}

#[test]
fn reachability() {
    expect(
        r#"
fn a() -> Int { }                   --! E227
fn b(x: Bool) -> Int { if x { return 1 } }  --! E227
fn c(x: Bool) -> Int { if x { return 1 } else { return 2 } }
fn d() -> Int { while true { } }
fn e() -> Int { while true { break } }      --! E227
fn f() -> Int { trap("x") }
fn g() -> ?Int { }
fn h() -> Int { fail("x") }
fn i() -> Int { return }            --! E227
fn fail(t: Text) { fail2(t) }
fn fail2(t: Text) { print(t); trap(t) }
fn j(x: ?Int) -> Int {
  if x == nil { fail("no") }
  return x
}
fn k() -> Int { return 1
  print_int("a")                    --! E209
}
fn l() -> Int { do { return 1 } while true }
fn m() -> Int { l2() }              --! E227
fn l2() { l2() }
fn n(x: Int) -> Int { switch x { case 1: return 1
    default: trap("b") } }
fn o() -> Int { try trap("x") catch (e) { return 2 } }
fn main() { a() }
"#,
    );
}

#[test]
fn shapes() {
    let text = hir_of("fn f(x: ?Int) -> Int {\n  if x == nil { return 0 }\n  return x + 1\n}\nfn main() {}\n", "f");
    assert!(text.contains("unwrap[Proved](x#0) IntAdd 1"), "{text}");
}

#[test]
fn annotated_locals_are_strict() {
    expect(
        r#"
fn f() -> Int {
  let a: ?Int = 5
  print_int(a + 1)                  --! E211
  a = 6
  print_int(a + 1)
  a = parse_int("7")
  print_int(a + 1)                  --! W204
  a = nil
  return a                          --! E211
}
fn loops(xs: multi ?Text) -> Int {
  let best: ?Text = nil
  for x in xs {
    print("${x}")                   --! E211
    if x == nil { continue }
    best = x
    print(x)
  }
  if best == nil { return 0 }
  do { best = nil } while best != nil
  print_int(len(best))              --! W204
  return len(xs[0])                 --! W204
}
fn nested(x: ?Int) -> Int {
  if x == nil { return 0 }
  while true {
    while x > 1 { x = nil }         --! W204
    if x == nil { return 1 }
  }
}
fn switches(x: ?Int, c: Bool) -> Int {
  if x == nil { return 0 }
  switch c {
    case true: x = nil
    case false: x = 2
  }
  let y = switch c { case true: nil
    case false: 1 }
  print_int(y)                      --! W204
  let m: map<Text, ?Int> = {}
  print_int(m["a"] + 1)             --! E211
  print_int(get(m, "a") + 1)        --! E211
  return x                          --! E211
}
fn shadow(x: ?Int) -> Int {
  if x == nil { return 0 }
  let y = x
  let x = "text"
  print(x)
  return y
}
fn conds(a: ?Text, b: ?Text) -> Bool {
  let both = a != nil and b != nil and len(a) == len(b)
  let none = a == nil or b == nil or a == b
  let bad = a != nil or len(a) == 1          --! W204
  return both and none
}
fn main() { }
"#,
    );
}

#[test]
fn never_returning_is_a_fixed_point() {
    expect(
        r#"
class Log {
  fn die(t: Text) { stop(t) }
}
fn late(x: ?Int, log: Log) -> Int {
  if x == nil { log.die("no") }
  return x
}
fn stop(t: Text) { while true { trap(t) } }
fn text(x: Int) -> Text { stop("a") }
fn main() {
  let n = try text(1) catch (e) 1
  print_int(n)
  let x = trap("end")
  print(x + 1)
}
"#,
    );
}
