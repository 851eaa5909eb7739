//! Names, operators, calls, construction, unions, builtins.

use super::{check_modules, expect};

#[test]
fn operators() {
    expect(
        r#"
fn main() {
  if 1 { }                          --! E201
  print_int(true)
  let b: Bool = 1                   --! E201
  let c = 1 + 1.0                   --! E201
  let d = "a" + "b"                 --! E201
  let e = "n" .. 1                  --! E201
  let f = 1 < 2 < 3                 --! E201
  let g = not 1                     --! E201
  let h = 1 << 64                   --! E223
  let i = 1 << 63
  let j = 5 % 2.0                   --! E201
  let k = "a" < "b" and "b" == "b"
  let l = 1 == "a"                  --! E201
  let m = -"a"                      --! E201
  let n = "${1} ${1.5} ${true} ${"x"}"
  let o = "${[1]}"                  --! E403
  let p = 1.5 * 2.0 - 1.0 / 3.0
  let q = nil == 1
}
"#,
    );
}

#[test]
fn names() {
    expect(
        r#"
const LIMIT = 10
fn take_one(n: Int) -> Int { return n }
fn main() {
  let i = 3
  print_int(i-1)                    --! E403
  print_int(ii)                     --! E403
  print_int(LIMIT)
  LIMIT = 3                         --! E403
  print_itn(1)                      --! E403
  let f = take_one                  --! E403
  take_one(1, 2)                    --! E403
  take_one("a")                     --! E201
  take_one(1) = 2                   --! E403
  i = "a"                           --! E201
  i += 1
  i += "a"                          --! E201
  let i = "shadow"
  print(i)
  nothing = 1                       --! E403
}
"#,
    );
}

#[test]
fn modules() {
    let out = check_modules(&[
        (
            "",
            "use a\nuse time\nfn main() { print_int(pub_one()); print_int(a.pub_one()); hidden(); a.hidden(); a.none(); other(); print_int(time.now()); env.get(\"x\"); time.nothing() }",
        ),
        ("a", "pub fn pub_one() -> Int { return 1 }\nfn hidden() {}"),
        ("b", "pub fn other() {}"),
    ]);
    let codes: Vec<String> = out.diagnostics.iter().map(|d| d.code.to_string()).collect();
    assert_eq!(codes, ["WO-E217", "WO-E217", "WO-E403", "WO-E210", "WO-E403", "WO-E406"], "{:#?}", out.diagnostics);
}

#[test]
fn extensions() {
    let out = check_modules(&[
        (
            "",
            "using textkit\nclass C { n: Int\n fn twice() -> Int { return 1 } }\nfn main() { print(\"x\".quoted()); let c = C { n: 1 }\n c.twice() }",
        ),
        (
            "textkit",
            "pub fn quoted(t: Text) -> Text { return \"<\" .. t .. \">\" }\npub fn twice(c: C) -> Int { return 2 }",
        ),
    ]);
    let codes: Vec<String> = out.diagnostics.iter().map(|d| d.code.to_string()).collect();
    assert_eq!(codes, ["WO-E220"], "{:#?}", out.diagnostics);
}

#[test]
fn construction() {
    expect(
        r#"
class Pen { ink: Int
  name: Text = "pen"
  cap: ?Int
  pub(read) seal: Int = 1
  static const MAX = 9
  static fn make() -> Pen { return Pen { ink: Pen.MAX } }
  fn fill(n: Int) { self.ink += n }
}
@table(name: "rows")
class Entry { n: Int }
fn main() {
  let a = Pen { ink: 1 }
  let b = Pen { }                   --! E206
  let c = Pen { ink: 1, inq: 2 }    --! E202
  let d = Pne { ink: 1 }            --! E207
  let e = Pen { ink: "a" }          --! E201
  let f = Pen { ink: nil }          --! E212
  let g = Pen.make()
  let h = Pen.fill(1)               --! E403
  let i = a.make()                  --! E403
  a.fill(2)
  a.empty()                         --! E403
  a.seal = 2                        --! E219
  a.ink = 2
  a.ikn = 2                         --! E202
  print_int(a.ikn)                  --! E202
  let j = Entry { n: 1 }            --! E250
  let k = insert Entry { n: 1 }
  let l = Pen { ink: 1, ink: 2 }
  let m = 1
  m.x = 2                           --! E403
  print_int(Pen.MAX + g.ink)
}
"#,
    );
}

#[test]
fn unions() {
    expect(
        r#"
type Light = Red | Green
type Move = Stay | Step(n: Int) | Jump(dx: Int, dy: Int)
fn cost(m: Move) -> Int {
  return switch m {
    case Stay: 0
    case Step(n): n
    case Jump(dx, dy): 2 * (dx + dy)
  }
}
fn partial(m: Move, l: Light) -> Int {
  switch m { case Stay: print("a") }        --! E208
  switch m { case Step(a, b): print("a")    --! E203
    default: print("x") }
  switch m { case Step(1): print("a")       --! E203
    default: print("x") }
  switch m { case Red: print("a")           --! E201
    default: print("x") }
  switch l {
    default: print("a")                     --! W203
    case Red: print("b")
  }
  switch 3 { case 1: print("x") }           --! E208
  switch 3 { case "a": print("x")           --! E201
    default: print("y") }
  let j = Jump(1)                           --! E203
  let k = l == m                            --! E201
  let n: Move = l                           --! E201
  if l == Red { return 1 }
  let o = switch l { case Red: 1            --! W999
    case Green: "a" }
  return switch l == Red { case true: 1
    case false: 2 }
}
fn opt(m: ?Light) -> Int {
  return switch m { case Red: 1             --! E201
    default: 2 }
}
fn main() { print_int(cost(Jump(1, 2))); cost(Stay) }
"#
        .replace("        --! W999\n", "\n")
        .replace("case Green: \"a\" }", "case Green: \"a\" } --! E201")
        .as_str(),
    );
}

#[test]
fn interfaces() {
    expect(
        r#"
interface Shape {
  fn area() -> Int
}
interface Named { fn name() -> Text }
class Square { side: Int
  fn area() -> Int { return self.side * self.side } }
class Rect { w: Int
  fn area(k: Int) -> Int { return self.w * k } }
class Holder { shape: Shape }
fn total(shapes: multi Shape) -> Int {
  let sum = 0
  for s in shapes { sum += s.area() }
  return sum
}
fn pick() -> Shape { return Rect { w: 1 } }     --! E205
fn main() {
  let s = Square { side: 2 }
  print_int(total([s, Square { side: 1 }]))
  let h = Holder { shape: s }
  h.shape.area(1)                               --! E403
  h.shape.aera()                                --! E403
  let n: Named = h.shape                        --! E205
  let list: multi Shape = [Rect { w: 1 }]       --! E205
  let bad: multi Shape = [s]
  let squares = [s]
  total(squares)                                --! E201
}
"#,
    );
}

#[test]
fn builtins() {
    expect(
        r#"
use json
use time
use net
typedef Spot = { x: Int, tag: ?Text }
interface I { fn f() }
class Bad { i: I }
fn dest() -> multi Int { let xs = []
  push(xs, 1)
  return xs }
fn main() {
  let xs = [1, 2, 3]
  push(xs, "a")                     --! E209
  push(xs)                          --! E209
  push(xs, nil)                     --! E212
  print_int(len(xs) + len("abc") + len({}))   --! E403
  print_int(len(1))                 --! E209
  let m: map<Text, Int> = {}
  set(m, "a", 1)
  set(m, 1, 1)                      --! E209
  m["b"] = 2
  m["b"] = "x"                      --! E201
  m["c"] += 1
  print_int(m["a"])
  print_int(get(m, "a") + get(xs, 0))
  sort(xs)
  sort([dest])                      --! E403
  sort([Bad { i: nil }])            --! E209 E212
  let ys = []                       --! E403
  let zs: multi Text = []
  print(join(zs, ","))
  print(join(["a", nil], ","))
  let spot = json.decode("{}") as Spot
  if spot != nil { print(json.encode(spot)); print_int(spot.x) }
  let bad = json.decode("{}") as Bad          --! E403
  let raw = json.decode("{}")                 --! E403
  print(json.encode(nil) .. json.encode([1]))
  assert(1 == 1)
  assert_eq([1], [1])
  assert_eq(1, "a")                 --! E209
  let p = net.connect_tls("h", 1)   --! E406
  let q = class_name(spot)          --! W204
  let t = time.utc(0)
  print_int(t.year)
  for x in xs { print_int(x) }
  for k, v in m { print("${k}${v}") }
  for x in m { }                    --! E403
  for a, b in xs { }                --! E403
  break                             --! E403
}
"#,
    );
}

#[test]
fn actors() {
    expect(
        r#"
use time
class Add { n: Int }
class Sub { n: Int }
class Sum { total: Int = 0
  fn receive(msg: Add) -> Int { self.total += msg.n; return self.total } }
class A { x: Int = 0
  fn receive(msg: Sub) { } }
class B { x: Int = 0
  fn receive(msg: Sub) -> Int { return 1 } }
class None { x: Int = 0 }
fn main() -> Int {
  let s = spawn Sum {}
  send(s, Add { n: 2 })
  send(s, Sub { n: 2 })             --! E201
  send(s)                           --! E203
  send(1, Add { n: 1 })             --! E201
  print_int(call(s, Add { n: 3 }))
  print_int(call_dl(s, Add { n: 3 }, 10))  --! W204
  let a = spawn A {}
  call(a, Sub { n: 1 })             --! E226
  send(a, Sub { n: 1 })
  let n = spawn None {}             --! E221
  time.after(10, s, Add { n: 1 })
  monitor(a, s, Add { n: 1 })
  let m: actor Add = s
  return m == s
}
"#,
    );
}

#[test]
fn traced_state() {
    expect(
        r#"
class Node { next: ?Node }
class Tick { n: Int }
class Load { nodes: multi Node }
type Wire = Ping | Data(load: Load)
class Worker { list: map<Text, Node> = {}
  fn receive(msg: Tick) { } }
class Sink { n: Int = 0
  fn receive(msg: Wire) { } }
class Good { n: Int = 0
  fn receive(msg: Tick) { } }
fn main() {
  let a = spawn Worker {}           --! E222
  let b = spawn Sink {}             --! E222
  let c = spawn Good {}
}
"#,
    );
}

#[test]
fn repeated_keys() {
    let text = super::hir_of(
        "class P { a: Int\n b: Int }\nfn f(n: Int) -> Int { return n }\nfn main() { let p = P { a: f(1), b: f(2), a: f(3) } }\n",
        "main",
    );
    assert_eq!(text.matches("f[f0](").count(), 3, "{text}");
    assert_eq!(text.matches("a: ").count(), 1, "{text}");
}

#[test]
fn record_aliases_have_their_own_defaults() {
    let text = super::hir_of(
        "typedef A = { n: Int = 1, t: Text }\ntypedef B = { n: Int = 2, t: Text }\nfn main() { let a = A { t: \"\" }\n let b = B { t: \"\" }\n b = a }\n",
        "main",
    );
    assert!(text.contains("n: 2"), "{text}");
}

#[test]
fn broken_uses_raise_no_follow_ups() {
    let out = check_modules(&[("", "use nowhere/x\nfn main() { helper()\n x.f()\n print_int(x.LIMIT) }")]);
    let codes: Vec<String> = out.diagnostics.iter().map(|d| d.code.to_string()).collect();
    assert_eq!(codes, ["WO-E216"], "{:#?}", out.diagnostics);
}

#[test]
fn values_and_statements() {
    expect(
        r#"
fn nothing() { }
fn main() {
  let a = nothing()
  print_int(a + 1)
  print_int(nothing())
  let b = switch 1 { case 1: nothing()
    default: 2 }
  let c: Text = nothing()           --! E201
  switch 1 { case 1: 5
    default: "x" }
  let d = switch 1 { case 1: { }
    default: 2 }                    --! E201
  let e = switch 1 { case 1: let z = 1      --! E201
    default: 2 }
  let f = true
  let g = switch f { case true: 1
    case false: true }
  print_int(g)
  for i in [1, 2] {
    switch i { case 1: continue
      default: break }
  }
  let h: multi ?Int = [1, nil]
  let i = [1, nil, true]
  let j = ["a", 1]                  --! E201
  let k: map<Text, multi Int> = {}
  k["a"] = [1]
  let l = k["a"]
  if l != nil { push(l, 2) }
  print_int(k["a"][0])
  let m = [[1], []]
  let n = 3 == nothing()
  let o = "a".b                     --! E403
  let p = nil                       --! E403
  return 3
}
"#,
    );
}

#[test]
fn wording() {
    let cases = [
        ("fn main() { let i = 1\n print_int(i-1) }", "`i-1`", "`i - 1`"),
        ("fn main() { let total = 1\n print_int(totl) }", "`totl`", "`total`"),
        ("fn main() { pritn(\"a\") }", "`pritn`", "`print`"),
        ("fn main() { let a = \"x\" + \"y\" }", "`+` between `Text` and `Text`", "`..`"),
        ("class Pen { ink: Int\n w: Int }\nfn main() { let p = Pen { } }", "lacks `ink`, `w`", "`ink: …`"),
        ("class Pen { ink: Int }\nfn main() { let p = Pen { ikn: 1 } }", "`Pen` has no field `ikn`", "`ink`"),
        ("class Pen { ink: Int }\nfn main() { let p = Pem { } }", "unknown class `Pem`", "`Pen`"),
        ("fn main() { let x = time.now() }", "without `use time`", "`use time`"),
        ("use net\nfn main() { net.lisen(\"\", 1) }", "`lisen`", "`net.listen`"),
        (
            "type L = Red | Green | Blue\nfn f(l: L) { switch l { case Red: print(\"\") } }\nfn main() {}",
            "`Green`, `Blue`",
            "`default:`",
        ),
        ("fn f(t: ?Text) -> Text { return t }\nfn main() {}", "`t` is `?Text`", "`if t != nil"),
        (
            "fn f(x: Int) -> Int { if x == 1 { return 1 } }\nfn main() {}",
            "`f` can end without a value of type `Int`",
            "?Int",
        ),
        ("fn main() { let x: Text = 1 }", "local `x` must be `Text`, found `Int`", "${"),
        ("fn main() { let xs = [] }", "`[]` has no type here", "let x: multi Int"),
        ("fn f(a: Int) {}\nfn main() { f(1, 2) }", "`f` takes 1 argument, given 2", "`f(a)`"),
        ("fn main() { print(`{{ 1 }}`) }", "`esc`", "`use view`"),
    ];
    for (source, title, help) in cases {
        let out = super::check(source);
        let [report] = out.diagnostics.as_slice() else { panic!("{source}: {:#?}", out.diagnostics) };
        assert!(report.title.contains(title), "{source}: {}", report.title);
        assert!(report.help.as_ref().is_some_and(|h| h.contains(help)), "{source}: {:?}", report.help);
    }
}
