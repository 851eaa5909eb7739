//! Control flow that leaves from the middle of an expression: `return`, `break`, `continue` and a function that never
//! returns, in every position where a value is expected, with owned values half built around it.

use std::fmt::Write;

use crate::{Tree, assert_status};

const DECLS: &str = r#"
class Pen {
  name: Text
  ink: Int = 0
  fn with(other: Pen, n: Int) -> Int { return self.ink + other.ink + n }
}
type Shape = Dot | Box(pen: Pen, n: Int)
class Tell { n: Int }
class Listener {
  fn receive(m: Tell) -> Int { return m.n }
}
fn fail() { trap("left") }
fn add(a: Int, take p: Pen, b: Int) -> Int { return a + p.ink + b }
fn area(take s: Shape) -> Int {
  return switch s {
    case Dot: 0
    case Box(pen, n): pen.ink + n
  }
}
"#;

/// Places for an Int, `@` where it stands.
const PLACES: &[&str] = &[
    "let x = @",
    "let x = 1 + @",
    "let x = @ + 1",
    "let x = -@",
    "let x = one == 1 and @ == 2",
    "let x = one == 2 or @ == 2",
    "let t = \"a ${@} b ${word .. \"!\"}\"",
    "let t = word .. \"${@}\" .. word",
    "let xs = [one, @, 3]",
    "let ps = [Pen { name: word }, Pen { name: \"${@}\" }]",
    "let p = Pen { name: word .. \"x\", ink: @ }",
    "let s = Box(Pen { name: word .. \"x\" }, @)",
    "let n = area(Box(Pen { name: word .. \"x\" }, @))",
    "let n = add(1, Pen { name: word .. \"y\" }, @)",
    "let n = add(@, Pen { name: word .. \"y\" }, 1)",
    "let n = pen.with(Pen { name: word .. \"z\" }, @)",
    "let n = Pen { name: word .. \"q\" }.with(pen, @)",
    "let n = list[@]",
    "list[@] = 4",
    "list[0] = @",
    "list[0] += @",
    "pen.ink = @",
    "pen.ink += @",
    "table[\"${@}\"] = Pen { name: word }",
    "push(list, @)",
    "push(pens, Pen { name: \"${@}\" })",
    "let n = switch @ { case 1: 2; default: 3 }",
    "let n = switch one { case @: 2; default: 3 }",
    "let n = switch one { case 1: @; default: 3 }",
    "let n = switch Box(Pen { name: word .. \"s\" }, 1) { case Dot: 1; case Box(p, k): @ + k }",
    "let n = try @ catch (e) 1",
    "let n = try 1 / zero catch (e) @",
    "let t = \"${try 1 / zero catch (e) { @ }}\"",
    "if @ == 1 { print(\"no\") }",
    "while @ == 1 { print(\"no\") }",
    "for y in [@, 2] { print_int(y) }",
    "for y in split(\"${@} b\", \" \") { print(y) }",
    "do { let z = word } while @ == 1",
    "let a = spawn Listener {}\n      let n = call(a, Tell { n: @ })",
    "send(spawn Listener {}, Tell { n: @ })",
    "assert_eq([one, @], [1, 1])",
    "print(join([word, \"${@}\"], \",\"))",
    "let f = float(@) * 2.0",
    "let b = (@ << 3) | 1",
    "let r = @ / zero",
];

/// What leaves, as an Int by its type, and what the function then gives.
const LEAVES: &[(&str, &str)] = &[
    ("switch one { case 1: return 7; default: 2 }", "7"),
    ("switch one { case 1: break; default: 2 }", "100"),
    ("switch one { case 1: continue; default: 2 }", "100"),
    ("switch one { case 1: fail(); default: 2 }", "-1"),
    ("(try int_of(zero) catch (e) { return 8 })", "8"),
    ("(try int_of(zero) catch (e) { break })", "100"),
    ("switch one { case 1: switch zero { case 0: return 9; default: 1 }; default: 2 }", "9"),
];

#[test]
fn every_place() {
    let mut source = format!("{DECLS}fn int_of(d: Int) -> Int {{ return 1 / d }}\n");
    let mut calls = String::new();
    let mut expected = String::new();
    let mut number = 0;
    for place in PLACES {
        for (leave, value) in LEAVES {
            let statement = place.replace('@', leave);
            // Inside its own `try` a trap goes no further.
            let caught = place.starts_with("let n = try @") && leave.contains("fail()");
            let _ = write!(
                source,
                "fn f{number}(one: Int, zero: Int, word: Text) -> Int {{
  let pen = Pen {{ name: word }}
  let list = [1, 2]
  let pens: multi Pen = []
  let table: map<Text, Pen> = {{}}
  for turn in [1, 2] {{
    if turn > 0 {{
      {statement}
    }}
    return 1000
  }}
  return 100 + len(pens) + count(table) + pen.ink
}}
"
            );
            let _ = writeln!(calls, "  print_int(try f{number}(1, 0, \"w\") catch (e) -1)");
            let _ = writeln!(expected, "{}", if caught { "1000" } else { value });
            number += 1;
        }
    }
    let _ = write!(source, "fn main() {{\n{calls}}}\n");
    let tree = Tree::new(&[("a.wo", source.as_bytes())]);
    for optimize in ["0", "1"] {
        let out = tree.woc_env(&["run", "a.wo"], &[("WO_OPT", optimize), ("WO_STATS", "1")]);
        assert_status(&out, 0);
        let stdout = out.stdout_text();
        let wrong = stdout.lines().zip(expected.lines()).enumerate().find(|(_, (got, want))| got != want);
        if let Some((n, (got, want))) = wrong {
            let (place, leave) = (PLACES[n / LEAVES.len()], LEAVES[n % LEAVES.len()].0);
            panic!("WO_OPT={optimize}: `{leave}` in `{place}` gives {got} instead of {want}");
        }
        assert_eq!(stdout.lines().count(), number);
        assert!(out.stderr_text().contains("objects_live=0"), "{}", out.stderr_text());
    }
}
