//! Independent mistakes do not hide or repeat each other (12.1): forty in one program are forty reports.

use corpus::reports;

use crate::{Tree, assert_status};

/// What the mistakes are about.
const SHARED: &str = "use time
class Dog { name: Text, kids: multi Dog = [] }
class Pen { ink: Int }
class Case { pen: Pen, l: multi Pen = [] }
interface Bark { fn bark() -> Int }
type Shape = Dot | Line(n: Int)
class Secret { pub(read) code: Int = 0 }
fn keep(take p: Pen) {}
fn two(mut a: Pen, b: Pen) {}
";

/// A code, the line of the report within the declarations, and these.
const MISTAKES: [(&str, usize, &str); 40] = [
    ("WO-E216", 1, "use nowhere/at/all"),
    ("WO-E102", 1, "@table(name: \"a\", name: \"b\")\nclass Twice { n: Int }"),
    ("WO-E104", 1, "@gc\nclass Kept { n: Int }"),
    ("WO-E103", 1, "inline fn quick() {}"),
    ("WO-E105", 1, "class Old extends Kept { n: Int }"),
    ("WO-E225", 1, "class Missing { x: Wat }"),
    ("WO-E215", 2, "fn same() {}\nfn same() {}"),
    ("WO-E201", 1, "fn local() { let n: Int = \"text\" }"),
    ("WO-E202", 1, "fn field(p: Pen) { print_int(p.inc) }"),
    ("WO-E203", 1, "fn variant() { let s = Line(1, 2) }"),
    ("WO-E205", 1, "fn adapt(p: Pen) -> Bark { return p }"),
    ("WO-E206", 1, "fn lacking() { let p = Pen {} }"),
    ("WO-E207", 1, "fn unknown() { let p = Pan { ink: 1 } }"),
    ("WO-E208", 1, "fn cover(s: Shape) { switch s { case Dot: print(\"dot\") } }"),
    ("WO-E209", 1, "fn builtin() { print(1) }"),
    ("WO-E211", 1, "fn operand(n: ?Int) -> Int { return n + 1 }"),
    ("WO-E212", 1, "fn slot() { let n: Int = nil }"),
    ("WO-E213", 1, "fn reach(p: ?Pen) { print_int(p.ink) }"),
    ("WO-E219", 1, "fn write(s: Secret) { s.code = 1 }"),
    ("WO-E221", 1, "fn spawned() { let a = spawn Pen { ink: 1 } }"),
    ("WO-E223", 1, "fn shift_far() -> Int { return 1 << 64 }"),
    ("WO-E227", 1, "fn ends(c: Bool) -> Int { if c { return 1 } }"),
    ("WO-E250", 1, "fn deleted(n: Int) { delete n }"),
    ("WO-E301", 4, "fn moved() {\n  let p = Pen { ink: 1 }\n  keep(p)\n  print_int(p.ink)\n}"),
    ("WO-E302", 3, "fn lent(take c: Case) {\n  let p = c.pen\n  let d = c\n  print_int(p.ink)\n}"),
    ("WO-E303", 3, "fn twice() {\n  let p = Pen { ink: 1 }\n  two(p, p)\n}"),
    ("WO-E304", 1, "fn escape(xs: multi Int) -> multi Int { return xs }"),
    ("WO-E305", 3, "fn torn() {\n  let xs = [Pen { ink: 1 }]\n  keep(xs[0])\n}"),
    ("WO-E403", 1, "fn name() { print(missing) }"),
    ("WO-E403", 1, "fn method(p: Pen) { p.write() }"),
    ("WO-E406", 1, "fn member() { time.never() }"),
    ("WO-E006", 1, "fn literal() { let n = 9223372036854775809 }"),
    ("WO-E001", 1, "fn token() { let n = 1 ~ }"),
    ("WO-E101", 1, "fn syntax() { let = 4 }"),
    ("WO-E105", 1, "fn word() { let n = cast(1) }"),
    ("WO-E201", 1, "fn condition() { if 1 { print(\"one\") } }"),
    ("WO-E201", 1, "fn equal() -> Bool { return \"a\" == 1 }"),
    ("WO-E201", 1, "fn sum() -> Int { return \"a\" + 1 }"),
    ("WO-E005", 2, "fn open() {\n  print(\"open)\n}"),
    ("WO-E405", 1, "fn main() -> Text { return \"x\" }"),
];

/// In any order of the declarations.
#[test]
fn forty_mistakes_are_forty_reports() {
    // Each stride has no factor in common with forty.
    for (start, stride) in [(0, 1), (39, 39), (7, 3), (13, 7), (21, 11), (30, 17)] {
        let mut source = SHARED.to_owned();
        let mut wanted = Vec::new();
        for step in 0..MISTAKES.len() {
            let (code, line, text) = MISTAKES[(start + step * stride) % MISTAKES.len()];
            wanted.push((source.lines().count() + line, code));
            source.push_str(text);
            source.push('\n');
        }
        let out = Tree::new(&[("p.wo", source.as_bytes())]).woc(&["check", "--format", "short", "p.wo"]);
        assert_status(&out, 1);
        let found = reports(&out.stderr_text());
        let found: Vec<(usize, &str)> = found.iter().map(|r| (r.line as usize, r.code.as_str())).collect();
        assert_eq!(found, wanted, "{source}\n{}", out.stderr_text());
    }
}
