//! Independent mistakes do not hide or repeat each other (12.1): forty in one program are forty reports.

use std::fs;

use corpus::{reports, root};

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

/// Words, numbers, texts, runs of blanks, comments, and other characters one by one.
fn tokens(source: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = match first {
            c if is_word(c) => rest.find(|c: char| !is_word(c)),
            c if c.is_whitespace() => rest.find(|c: char| !c.is_whitespace()),
            '"' => rest[1..].find('"').map(|n| n + 2),
            '-' if rest.starts_with("--") => rest.find('\n'),
            c => Some(c.len_utf8()),
        };
        let (token, more) = rest.split_at(length.unwrap_or(rest.len()));
        tokens.push(token);
        rest = more;
    }
    tokens
}

/// The program with one token left out, written twice, or with two letters swapped; none where that changes nothing.
fn broken(source: &str, choice: usize) -> Option<String> {
    let mut tokens: Vec<String> = tokens(source).into_iter().map(str::to_owned).collect();
    let solid = |t: &str| !t.starts_with(char::is_whitespace) && !t.starts_with("--");
    let places: Vec<usize> = (0..tokens.len()).filter(|i| solid(&tokens[*i])).collect();
    let token = &mut tokens[places[(choice / 3) % places.len()]];
    let before = token.clone();
    match choice % 3 {
        0 => token.clear(),
        1 => *token = format!("{before} {before}"),
        _ if before.len() > 2 && before.starts_with(|c: char| c.is_ascii_lowercase()) => {
            let (first, rest) = before.split_at(1);
            *token = format!("{}{first}{}", &rest[..1], &rest[1..]);
        }
        _ => return None,
    }
    (*token != before).then(|| tokens.concat())
}

/// A ratchet: of single mistakes in correct programs, how many per hundred may give more than one report.
const REPEATED_MAX: usize = 5;

#[test]
fn a_mistake_is_seldom_more_than_one_report() {
    let dir = root().join("tests/corpus/run");
    let mut cases: Vec<_> = fs::read_dir(dir).expect("cases").flatten().map(|e| e.path()).collect();
    cases.sort();
    let (mut count, mut repeated) = (0, Vec::new());
    for case in &cases {
        let source = fs::read_to_string(case.join("fixture.wo")).expect("source");
        let is_alone = fs::read_dir(case).expect("case").flatten().all(|e| e.path().is_file());
        if !is_alone || case.join("fixture.warn").exists() || source.len() > 3000 {
            continue;
        }
        // From the name, so that a case more changes nothing for the others.
        let name = case.file_name().expect("a name").as_encoded_bytes();
        let seed = name.iter().fold(0_usize, |seed, byte| (seed * 31 + usize::from(*byte)) % 1_000_003);
        for turn in 0..2 {
            let Some(source) = broken(&source, seed + turn * 104_729) else { continue };
            let out = Tree::new(&[("a.wo", source.as_bytes())]).woc(&["check", "--format", "short", "a.wo"]);
            let stderr = out.stderr_text();
            count += 1;
            // One name that is missing in several places is one mistake here.
            let mut titles: Vec<&str> = stderr.lines().filter_map(|l| l.split_once(": error ")).map(|l| l.1).collect();
            titles.dedup();
            if titles.len() > 1 {
                repeated.push(format!("{}:\n{source}\n{stderr}", case.display()));
            }
        }
    }
    assert!(count > 150, "{count}");
    assert!(repeated.len() * 100 <= count * REPEATED_MAX, "{} of {count}\n{}", repeated.len(), repeated.join("\n"));
}

/// Declarations of other languages, one behind the other, are each told what they are called here.
#[test]
fn foreign_declarations_are_reported_one_by_one() {
    let source = b"struct P {\n    x: Int\n}\n\nenum E {\n    A\n    B\n}\n\ndef f(n) {\n    return n\n}\n\n\
        fn main() { struct P { x: 1 } }\n";
    let out = Tree::new(&[("main.wo", source)]).woc(&["check", "main.wo"]);
    let stderr = out.stderr_text();
    for (line, help) in [(1, "a class is"), (5, "a union is"), (10, "a function is"), (14, "")] {
        assert!(stderr.contains(&format!("main.wo:{line}:")) && stderr.contains(help), "{stderr}");
    }
    assert_eq!(reports(&stderr).len(), 4, "{stderr}");
}
