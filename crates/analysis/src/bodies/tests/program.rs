//! Larger programs that must be free of reports.

use super::{check, expect};

#[test]
fn realistic() {
    expect(include_str!("bookshop.wo"));
}

#[test]
fn long_chains() {
    let mut source = String::from("fn main() {\n  let x = 1\n  let n = 0");
    for _ in 0..100_000 {
        source.push_str(" + x");
    }
    source.push_str("\n  let b = true");
    for _ in 0..20_000 {
        source.push_str(" and x == 1");
    }
    source.push_str("\n}\n");
    let worker = std::thread::Builder::new().stack_size(1 << 30);
    let handle = worker.spawn(move || check(&source).diagnostics.len()).unwrap();
    assert_eq!(handle.join().unwrap(), 0);
}

#[test]
fn chains_of_demotions_end() {
    let mut source = String::from("fn f(c: Bool) {\n");
    for i in 0..2000 {
        source.push_str(&format!("  let x{i}: ?Int = 0\n  x{i} = 1\n"));
    }
    source.push_str("  while c {\n");
    for i in (1..2000).rev() {
        source.push_str(&format!("    x{i} = x{}\n", i - 1));
    }
    source.push_str("    x0 = nil\n  }\n  let y: Int = x1999\n}\nfn main() {}\n");
    let output = check(&source);
    assert!(output.diagnostics.iter().all(|d| !d.is_error()), "{:?}", output.diagnostics.first());
    let mut deep = String::from("fn f(c: Bool) {\n");
    for i in 0..200 {
        deep.push_str(&format!("let x{i}: ?Int = 0\n x{i} = 1\n while c {{\n"));
    }
    for i in 0..200 {
        deep.push_str(&format!("x{i} = nil\n"));
    }
    deep.push_str(&"}\n".repeat(201));
    deep.push_str("fn main() {}\n");
    assert!(check(&deep).program.is_some());
}

#[test]
fn nested_loops_are_walked_few_times() {
    let mut source = String::from("fn main() {\n  let x: ?Int = 1\n");
    for _ in 0..100 {
        source.push_str("  while true { x = 1\n");
    }
    source.push_str("x = nil\n");
    for _ in 0..100 {
        source.push_str("print_int(1) }\n");
    }
    source.push_str("}\n");
    let started = std::time::Instant::now();
    let _ = check(&source);
    assert!(started.elapsed().as_secs() < 5);
}

/// Programs with a word or a line lost or doubled: whatever they mean, the checker ends, and HIR keeps its promises.
#[test]
fn mutants() {
    let source = include_str!("bookshop.wo");
    let words: Vec<&str> = source.split_inclusive(|c: char| !c.is_alphanumeric()).collect();
    let mut accepted = 0;
    for at in 0..words.len() {
        for change in 0..3 {
            // Some places for each kind of change: all of them take minutes.
            if (at + change) % 17 != 0 {
                continue;
            }
            let mut mutant = words.clone();
            match change {
                0 => drop(mutant.remove(at)),
                1 => mutant.insert(at, words[at]),
                _ => mutant[at] = words[(at * 7 + 3) % words.len()],
            }
            let text = mutant.concat();
            let parsed = syntax::parse(diagnostics::span::FileId(0), text.as_bytes(), &[]);
            if parsed.diagnostics.is_empty() {
                accepted += usize::from(check(&text).program.is_some());
            }
        }
    }
    assert!(accepted > 5, "{accepted}");
}

#[test]
fn conversions() {
    expect(
        r#"
use json
interface Shape { fn area() -> Int }
interface Solid { fn area() -> Int
  fn name() -> Text }
class Square { side: Int
  fn area() -> Int { return self.side }
  fn name() -> Text { return "square" } }
class Dot { x: Int = 0
  fn area() -> Int { return 0 } }
class Box { shape: Shape
  spare: ?Shape
  flag: Int = 0
  raw: json.Value = "null"
  at: ?Float }
type Light = Red | Green
type Tree = Leaf | Pair(a: Int, b: ?Text)
fn bit(n: Int) -> Int { return n }
fn maybe(n: ?Int) -> ?Int { return n }
fn shape(s: ?Shape) -> ?Shape { return s }
fn find(n: Int) -> ?Square { if n == 0 { return nil }
  return Square { side: n } }
fn pick(n: Int) -> Shape {
  return switch n {
    case 0: Dot {}
    case 1: Square { side: 1 }
    default: trap("none")
  }
}
fn tried(n: Int) -> Shape {
  return try Square { side: 1 / n } catch (e) Dot {}
}
fn solid(s: Solid) -> Shape { return s }
fn lights(l: Light, m: ?Light) -> Bool { return l == m or m == Green or m == nil }
fn floats(a: Float, b: ?Float) -> Bool { return a == b }
fn raws(j: json.Value) -> Text { return j }
fn trees(t: Tree) -> Int {
  return switch t {
    case Leaf: 0
    case Pair(a, b): switch b { case nil: a
      case "x": 1
      default: true }
  }
}
fn early(xs: multi Text) -> Int {
  for x in xs {
    let n = switch x { case "stop": break
      case "skip": continue
      case "end": return 7
      default: len(x) }
    print_int(n)
  }
  return 0
}
fn nothing() { }
fn void_value() -> Int { return nothing() }
fn discard() { return 1 + 1 }
fn main() {
  print_int(bit(true))
  print_int(bit(1 < 2))
  let a = maybe(true)
  a = 3
  a = nil
  a = maybe(1)
  if a != nil { a += 1 }
  let b: ?Int = maybe(2)
  b = true
  b += 1
  let c: Shape = Square { side: 1 }
  let d: ?Shape = Square { side: 1 }
  d = find(1)
  let e = shape(find(2))
  let f: ?Shape = try find(1) catch (x) nil
  let box = Box { shape: c, spare: find(3), flag: true, raw: "[]", at: 1.5 }
  box.spare = find(1)
  box.raw = "x" .. box.raw
  box.flag = false
  box.at = nil
  let shapes: multi Shape = [Square { side: 1 }, c, Dot {}]
  let more = [c, Square { side: 2 }]
  push(more, Dot {})
  shapes[0] = Dot {}
  let m: map<Text, Shape> = {}
  m["a"] = Square { side: 1 }
  set(m, "b", Dot {})
  let n: map<Int, ?Int> = {}
  n[1] = true
  n[2] = nil
  n[true] = maybe(1)
  let o = n[1]
  if o != nil { print_int(o) }
  let p: map<Text, Int> = {}
  p["x"] += 1
  let q: ?Int = p["x"]
  let r = p["y"]
  r = 3
  r = p["z"]
  print_int(bit(r) + p["x"])
  print("${p["x"]} ${raws("1")} ${r == 3} ${nil == q}")
  print(raws("[]") .. "x")
  let s = [maybe(1), 2, nil]
  let t = [Red, Green]
  sort(t)
  let u = solid(Square { side: 3 })
  print(class_name(u) .. class_name(box))
  assert_eq(maybe(1), 2)
  print(json.encode(maybe(1)) .. json.encode(box))
  let v = try bit(1) catch (x) true
  let w = try nothing() catch (x) { 5 }
  let y = switch lights(Red, nil) { case true: nil
    case false: Square { side: 1 } }
  let z = y == find(1)
  let spot = try json.decode("{}") as Box2 catch (x) nil
  if spot != nil { print_int(spot.n) }
  try early(["a"]) catch (x) { return x.code }
  let deep: multi multi ?Shape = [[find(1), nil], []]
  while not (a == nil) { a = nil }
  do { let k = 1
    if k == 1 { continue } } while false
  let maps = map_new()              --! E403
}
typedef Box2 = { n: Int, m: multi Int }
"#
        .replace("  let maps = map_new()              --! E403\n", "")
        .as_str(),
    );
}
