//! Section 2.4: recovery, limits, hostile input (checklist items 14 and 85).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod common;
use std::time::Instant;

use common::{reports, reports_of, tree};
use diagnostics::span::FileId;

fn survivors(source: &str) -> (usize, String) {
    let parsed = syntax::parse(FileId(0), source.as_bytes(), &[]);
    (parsed.diagnostics.len(), syntax::dump_ast(&parsed.file))
}

#[test]
fn of_a_broken_statement_only_a_mark_is_left() {
    for (source, wanted) in [
        ("let x = 1 1\n a", "  a"),
        ("f(1 2); a", "  a"),
        ("f(1 2,\n 3)\n a", "  a"),
        ("f(1\n let b = 2\n a", "  (let b 2)\n  a"),
        ("let x = C { a: 1 b: 2\n }\n a", "  a"),
        ("let x = (1\n a", "  a"),
        ("if x ( {\n b\n }\n a", "  a"),
        ("if c {\n let = 1\n d\n }\n a", "  (if c then\n    d)\n  a"),
        ("let f = fn(x) {\n return x\n }\n a", "  a"),
        ("f(1 let b = 2\n a", "  a"),
        ("x = \"${a b}\"; a", "  (= x \"\")\n  a"),
        (
            "switch x {\n case 1: let = 2\n a\n case 2: b\n }",
            "  (switch x\n    (case 1 :\n      a)\n    (case 2 :\n      b))",
        ),
        ("f(1 \"${g({})}\")\n a", "  a"),
    ] {
        let source = format!("fn f() {{\n{source}\n}}\nconst Z = 1");
        let (count, dump) = survivors(&source);
        assert_eq!(count, 1, "{source}\n{:?}", reports(&source));
        let dump = dump.lines().filter(|l| l.trim() != "(unread)").collect::<Vec<_>>().join("\n");
        let wanted = if wanted.is_empty() { "(fn f ())".to_owned() } else { format!("(fn f ()\n{wanted})") };
        assert_eq!(dump.trim_end().trim_end_matches("(const Z 1)").trim_end(), wanted, "{source}");
    }
}

#[test]
fn a_missing_brace_is_one_report() {
    for source in [
        "fn f() {\n if a {\n b\n}\n\nfn g() { }\n",
        "fn f() {\n if a {\n b\n",
        "class A {\n fn f() {\n  a\n\n fn g() { }\n}\nfn h() { }\n",
        "fn f() {\n while a {\n switch b {\n case 1: c\n",
        "fn f() {\n let x = C { a: 1\n",
        "class A {\n a: Int\n\nfn g() { }\n",
    ] {
        let found = reports(source);
        assert_eq!(found.len(), 1, "{source}: {found:?}");
    }
    assert_eq!(survivors("fn f() {\n a\n\nfn g() { }\n").1, "(fn f ()\n  a)\n(fn g ())\n");
}

#[test]
fn a_broken_declaration_is_left_out() {
    let source = "class A { a: Int = , b: Int\n fn m() { const x }\n}\nfn g() { }\ntypedef R = { a }\nconst C = 1\n";
    assert_eq!(survivors(source), (2, "(fn g ())\n(const C 1)\n".to_owned()));
}

#[test]
fn nesting_is_limited() {
    let deep = |open: &str, middle: &str, close: &str, n: usize| {
        format!("fn f() {{ let x = {}{middle}{}\n }}", open.repeat(n), close.repeat(n))
    };
    let blocks = |n: usize| format!("fn f() {{ {}{} }}", "while a {".repeat(n), "}".repeat(n));
    let types = |word: &str, n: usize| format!("fn f(a: {}Int) {{ }}", word.repeat(n));
    for n in [10_000, 100_000] {
        for source in [
            deep("(", "1", ")", n),
            deep("[", "1", "]", n),
            deep("f(", "1", ")", n),
            deep("- ", "1", "", n),
            deep("not ", "a", "", n),
            deep("a[", "1", "]", n),
            deep("C { a: ", "1", "}", n),
            deep("\"${", "1", "}\"", n),
            deep("try a catch (e) ", "1", "", n),
            deep("delete ", "1", "", n),
            deep("switch ", "1", "{}", n),
            deep("switch a { case 1: ", "1", "}", n),
            deep("from a in ", "b", "", n),
            deep("from a in b where ", "b", "", n),
            deep("insert A { a: ", "b", "}", n),
            blocks(n),
            format!("fn f() {{ {}{} }}", "if a { } else { ".repeat(n), "}".repeat(n)),
            types("multi ", n),
            types("? multi ", n),
            format!("fn f(a: {}Int{}) {{ }}", "map<Int, ".repeat(n), ">".repeat(n)),
            deep("(", "", "", n),
            blocks(n).replace('}', ""),
        ] {
            let started = Instant::now();
            let parsed = syntax::parse(FileId(0), source.as_bytes(), &[]);
            let shown: String = source.chars().take(60).collect();
            assert!(!parsed.diagnostics.is_empty(), "{shown}");
            assert!(parsed.diagnostics.iter().all(|d| d.code.number == 101), "{shown} {:?}", parsed.diagnostics);
            let limit = parsed.diagnostics.iter().any(|d| d.title.contains("500"));
            assert!(limit, "{shown}: {:?}", parsed.diagnostics);
            // Blocks that are not closed either are a second problem.
            let unclosed = !source.contains("}}");
            assert!(parsed.diagnostics.len() <= 1 + usize::from(unclosed), "{shown}: {:?}", parsed.diagnostics);
            assert!(started.elapsed().as_secs() < 20, "{shown}");
        }
    }
    for source in [deep("(", "1", ")", 500), deep("f(", "1", ")", 450), blocks(490), types("multi ", 499)] {
        assert_eq!(reports(&source), Vec::<String>::new());
    }
    assert_eq!(reports(&deep("(", "1", ")", 501)).len(), 1);
}

#[test]
fn chains_are_not_nesting() {
    let chain = |op: &str| format!("fn f() {{ let x = a{} }}", format!(" {op} a").repeat(100_000));
    for op in ["..", "+", "*", "and", "or", "==", "-", "|"] {
        let parsed = syntax::parse(FileId(0), chain(op).as_bytes(), &[]);
        assert!(parsed.diagnostics.is_empty(), "{op}: {:?}", parsed.diagnostics);
        let _ = syntax::dump_ast(&parsed.file);
    }
    // A failure behind a long chain drops the chain.
    assert_eq!(reports(&chain("+").replace(" }", " + }")).len(), 1);
    let ladder = format!("fn f() {{ if a {{ }}{} }}", " else if a { }".repeat(100_000));
    assert_eq!(reports(&ladder), Vec::<String>::new());
    assert_eq!(reports(&format!("fn f() {{ a{} }}", ".b(1)".repeat(2400))), Vec::<String>::new());
    assert!(tree(&format!("fn f() {{ a{} }}", ".b(1)".repeat(2400))).len() > 10_000);
    assert_eq!(reports(&format!("fn f() {{ a{} }}", ".b(1)".repeat(100_000))).len(), 1);
    assert_eq!(reports(&format!("fn f() {{ let x = a{} }}", " as Int".repeat(100_000))).len(), 1);
}

#[test]
fn hostile_inputs_end() {
    let size = 1 << 18;
    for source in [
        vec![b'\xff'; size],
        vec![0; size],
        b"\xff ".repeat(size / 2),
        vec![b'"'; size],
        vec![b'`'; size],
        vec![b'{'; size],
        vec![b'}'; size],
        vec![b'\n'; size],
        vec![b'a'; size],
        vec![b'9'; size],
        vec![b'-'; size],
        vec![b'@'; size],
        [b"\"${".repeat(size / 8), b"`{{".repeat(size / 8)].concat(),
        b"#if ".repeat(size / 4),
        b"#if A ".repeat(size / 8),
        b"\"${".repeat(size / 4),
        b"\"${`{{".repeat(size / 8),
        b"fn ".repeat(size / 4),
        b"fn f() { f(\n".repeat(size / 16),
        b"fn f() { f(1 2\n }\n".repeat(size / 16),
        b"class A { a: Int = ".repeat(size / 16),
        b"?".repeat(size),
        b"'\\".repeat(size / 2),
        b"\"\n".repeat(size / 2),
        [b"fn f() {\n".as_slice(), &b"f(1 2\n".repeat(size / 8)].concat(),
        [b"fn f() {\n".as_slice(), &b"\"${a b}\";".repeat(size / 8)].concat(),
        [b"fn f() { let x = 1".as_slice(), &b" + 1".repeat(size)].concat(),
    ] {
        let started = Instant::now();
        let parsed = syntax::parse(FileId(0), &source, &[]);
        let shown = String::from_utf8_lossy(&source[..20]).into_owned();
        assert!(parsed.diagnostics.len() <= syntax::MAX_DIAGNOSTICS, "{shown:?}");
        assert!(started.elapsed().as_secs() < 20, "{shown:?}: {:?}", started.elapsed());
        let _ = syntax::dump_tokens(&source[..1000], &[]);
    }
    assert_eq!(reports_of(&vec![b'\xff'; size], &[]), ["1:1 WO-E001"]);
}

#[test]
fn nested_failures_cost_no_more_than_their_text() {
    let inner = "a\n".repeat(200_000);
    let source = format!("fn f() {{ {}{inner}{} }}", "do { ".repeat(450), "} x\n".repeat(450));
    let started = Instant::now();
    assert_eq!(reports(&source).len(), 450);
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
}

fn stdlib() -> Vec<(String, Vec<u8>)> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../stdlib");
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "wo"))
        .map(|p| (p.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&p).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn the_standard_library_parses() {
    let files = stdlib();
    assert!(files.len() >= 10);
    for (name, source) in &files {
        let source = std::str::from_utf8(source).unwrap();
        assert!(!tree(source).is_empty(), "{name}");
    }
    let parsed = syntax::parse(FileId(0), &files.iter().find(|f| f.0 == "proc.wo").unwrap().1, &[]);
    let syntax::ast::Decl::Interface(proc) = &parsed.file.decls[0] else { panic!() };
    assert!(proc.sigs.iter().any(|s| s.name.name == "spawn" && s.doc.contains("pipes")));
    assert_eq!(proc.doc, "");
}

/// Pieces a mutation may splice in.
const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "\"",
    "'",
    "`",
    "${",
    "{{",
    "}}",
    "\n",
    ";",
    ",",
    ":",
    "..",
    "?",
    "@",
    "#if A",
    "#else",
    "#end",
    "fn ",
    "class A {",
    "let x = ",
    "if a {",
    "else",
    "switch x {",
    "case 1:",
    "from x in C ",
    "select ",
    "try ",
    "catch (e)",
    "as ",
    "-",
    "not ",
    "multi ",
    "map<",
    ">>",
    "9223372036854775808",
    "0x",
    "1e5",
    "\\",
    "\0",
    "\u{ff}",
    "--",
    "pub ",
    "static ",
    "typedef R = {",
    "type U = A |",
    "return ",
    "insert C {",
    "delete ",
    "spawn ",
    "order by ",
    "group ",
];

struct XorShift(u64);

impl XorShift {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (n.max(1) as u64)).unwrap()
    }
}

const PROGRAM: &str = r#"
use fs
@table(name: "v", index: [day])
pub class Visit {
  page: Text @unique = "x"
  pub(read) day: Int = -1
  m: map<Text, map<Text, Int>>= {}
  static fn make(take p: Text, mut q: multi ?Int) ?-> Visit {
    let a = try f(p) catch (e) { print("${e.msg} at ${e.line}") nil }
    for k, v in m { if k == "a" and not v { continue } else if x { break } else { return nil } }
    do { a.b[1] += 2 * -3 } while a >= b >> 1
    return switch a { case Step(n), 2: n default: C { a: 1, b: [1 2, 3] } }
  }
}
type U = A | B(n: Int)
fn page(t: Text) -> Text { return `
    <p>{{ t }}</p>
      ${from v in Visit where v.day == 1 order by v.day desc skip 1 take 2 select v.page}
  ` .. "end" }
test "it" { spawn P { a: insert Q { b: delete r } } }
"#;

#[test]
fn mutants_do_not_break_the_parser() {
    let mut sources: Vec<Vec<u8>> = stdlib().into_iter().map(|f| f.1).collect();
    assert_eq!(
        reports(PROGRAM.replace(") nil }", "); nil }").replace(": n default", ": n\n default").as_str()),
        Vec::<String>::new()
    );
    for _ in 0..8 {
        sources.push(PROGRAM.as_bytes().to_vec());
    }
    let mut random = XorShift(0x9E37_79B9_7F4A_7C15);
    for round in 0..6000 {
        let mut source = sources[round % sources.len()].clone();
        for _ in 0..=random.below(4) {
            let at = random.below(source.len() + 1);
            let end = (at + random.below(30)).min(source.len());
            match random.below(5) {
                0 => drop(source.drain(at..end)),
                1 => drop(source.splice(at..at, PIECES[random.below(PIECES.len())].bytes())),
                2 => drop(source.splice(at..end, PIECES[random.below(PIECES.len())].bytes())),
                3 => {
                    let copy = source[at..end].to_vec();
                    let to = random.below(source.len() + 1);
                    drop(source.splice(to..to, copy));
                }
                _ => {
                    if let Some(b) = source.get_mut(at) {
                        *b = u8::try_from(random.below(256)).unwrap();
                    }
                }
            }
        }
        let flags: &[&str] = if round % 2 == 0 { &[] } else { &["A"] };
        let _ = reports_of(&source, flags);
    }
}
