//! Tests of the walk: exact places of reports, what is accepted, and cost.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use crate::{Input, InputFile, Output};
use diagnostics::span::{FileId, LineIndex};
use std::fmt::Write;
use std::time::{Duration, Instant};

fn check(source: &str) -> Output {
    let parsed = syntax::parse(FileId(0), source.as_bytes(), &[]);
    assert!(parsed.diagnostics.is_empty(), "syntax: {:?}\n{source}", parsed.diagnostics);
    let file =
        InputFile { id: FileId(0), package: None, module: Vec::new(), display: "f.wo".to_owned(), ast: parsed.file };
    crate::check(&Input { files: vec![file], is_library: true })
}

/// Functions over a few classes; expected codes stand behind their line as `--! CODE CODE`.
#[track_caller]
fn expect(functions: &str) {
    let source = format!(
        "class Pen {{ ink: Int }} class Case {{ pen: Pen, pens: multi Pen = [] }} class Node {{ n: Int, pen: Pen, next: ?Node }}\n\
         fn keep(take p: Pen) -> Int {{ return p.ink }}\nfn look(p: Pen) -> Int {{ return p.ink }}\n\
         fn fill(mut c: Case) {{ }}\nfn pen() -> Pen {{ return Pen {{ ink: 1 }} }}\n\
         fn case_() -> Case {{ return Case {{ pen: pen() }} }}\n{functions}"
    );
    let output = check(&source);
    let index = LineIndex::new(source.as_bytes());
    let mut found: Vec<(u32, String)> = output
        .diagnostics
        .iter()
        .map(|d| (index.line_col(d.span.start).0, d.code.to_string().trim_start_matches("WO-").to_owned()))
        .collect();
    found.sort();
    let mut wanted = Vec::new();
    for (line, text) in (1_u32..).zip(source.lines()) {
        let codes = text.split_once("--!").map_or("", |p| p.1);
        wanted.extend(codes.split_whitespace().map(|c| (line, c.to_owned())));
    }
    wanted.sort();
    assert_eq!(found, wanted, "{:#?}\n{source}", output.diagnostics);
}

#[test]
fn a_move_is_reported_once() {
    expect(
        "fn f(c: Bool) {
  let p = pen()
  let n = keep(p)
  if c { n += p.ink } else { n += look(p) } --! E301
  n += p.ink
}
fn g() {
  let p = pen()
  while true {
    let n = look(p) + 1 --! E301
    if n == 3 { break }
    keep(p)
  }
}",
    );
}

#[test]
fn branches_that_leave_do_not_count() {
    expect(
        "fn f(c: Bool) -> Int {
  let p = pen()
  if c { return keep(p) }
  let q = pen()
  while c {
    if q.ink > 3 {
      keep(q)
      break
    }
    q.ink += 1
  }
  let r = pen()
  if c {
    keep(r)
    trap(\"gone\")
  }
  return p.ink + r.ink
}
fn g(c: Bool) -> Int {
  let p = pen()
  let n = switch c {
    case true: keep(p)
    case false: return p.ink
  }
  return n + p.ink --! E301
}",
    );
}

#[test]
fn assignment_makes_live_again() {
    expect(
        "fn f(c: Bool) {
  let p = pen()
  for n in [1, 2, 3] {
    keep(p)
    p = pen()
  }
  if c { keep(p) } else { p = pen() }
  p = pen()
  keep(p)
}
fn g(c: Bool) -> Pen {
  let p: ?Pen = nil
  while p == nil { p = pen() }
  if p != nil { return p }
  return pen()
}",
    );
}

#[test]
fn borrows_end_with_their_last_use() {
    expect(
        "fn f() {
  let c = case_()
  let p = c.pen
  look(p)
  c.pen = pen()
  fill(c)
  let q = c.pen
  c = case_()
  let r = c.pen
  let s = r
  fill(c) --! E303
  look(s)
  c.pen = pen()
  r = pen()
  look(r)
}
fn g(c: Case) {
  for p in c.pens {
    let q = p
    c.pen = pen()
    look(q)
  }
  let p = c.pen
  while p.ink < 4 {
    fill(c) --! E303
  }
}
fn h() -> Case {
  let c = case_()
  for p in c.pens {
    if look(p) == 1 { return c }
  }
  return c
}",
    );
}

#[test]
fn writing_through_a_borrow_is_no_conflict_with_it() {
    expect(
        "class Desk { case_: Case }
fn f(d: Desk) {
  let c = d.case_
  let p = c.pen
  p.ink = 3
  c.pens = []
  look(p)
  c.pen = pen() --! E303
  look(p)
}",
    );
}

#[test]
fn operands_of_one_call() {
    expect(
        "fn two(a: Pen, mut b: Pen) { }
fn pair(take a: Pen, n: Int) { }
fn part(mut c: Case, n: Int) { }
fn f(c: Case, i: Int, j: Int) {
  two(c.pen, c.pens[0])
  two(c.pens[i], c.pens[j])
  two(c.pens[1], c.pens[1]) --! E303
  two(c.pen, c.pen) --! E303
  part(c, c.pen.ink)
  let p = c.pen
  part(c, p.ink)
  let q = pen()
  pair(q, q.ink) --! E301
}",
    );
}

#[test]
fn traced_objects_are_exempt() {
    expect(
        "fn f(n: Node) -> Node {
  let at = n
  let last = at
  while at.next != nil {
    let p = at.pen
    last = at
    at = last
    look(p)
  }
  let all = [n, at, last, at]
  push(all, n)
  return all[0]
}
fn g() -> Pen {
  let n = Node { n: 1, pen: pen() }
  return n.pen --! E305
}",
    );
}

#[test]
fn bodies_with_errors_raise_no_follow_ups() {
    expect(
        "fn f() -> Int {
  let p = pen()
  keep(p)
  p = nowhere() --! E403
  return p.ink
}",
    );
}

/// Well over the time a linear walk takes, well under that of a quadratic one.
#[track_caller]
fn quick(source: &str) {
    let started = Instant::now();
    let _ = check(source);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

const PEN: &str = "class Pen { ink: Int }\nfn keep(take p: Pen) { }\nfn fill(mut ps: multi Pen) { }\nfn f() {\n";

#[test]
fn many_locals_and_borrows() {
    let mut source = format!("{PEN}let ps = [Pen {{ ink: 1 }}]\n");
    for i in 0..5_000 {
        let _ = write!(source, "let a{i} = ps[0]\na{i}.ink = {i}\nif a{i}.ink == 3 {{ fill(ps) }}\n");
    }
    quick(&(source + "}\n"));
}

#[test]
fn many_exits_of_a_loop() {
    let mut source = PEN.to_owned();
    for i in 0..2_000 {
        let _ = writeln!(source, "let a{i} = Pen {{ ink: 1 }}");
    }
    source.push_str("let i = 0\nwhile i < 3 {\n");
    for i in 0..2_000 {
        let _ = write!(source, "if i == {i} {{ break }}\nkeep(a{i})\na{i} = Pen {{ ink: 1 }}\n");
    }
    quick(&(source + "}\n}\n"));
}

#[test]
fn loops_in_loops() {
    let mut source = PEN.to_owned();
    for i in 0..60 {
        let _ = write!(source, "let a{i} = Pen {{ ink: 1 }}\nfor n{i} in [1] {{\n");
    }
    for i in 0..60 {
        let _ = write!(source, "a{} = Pen {{ ink: a{i}.ink }}\nkeep(a{i})\n", (i * 7) % 60);
    }
    quick(&(source + &"}\n".repeat(61)));
}

#[test]
fn chains_of_demands() {
    let mut source = String::new();
    for i in 0..2_000 {
        let next = (i + 1) % 2_000;
        let _ = write!(
            source,
            "class C{i} {{ n: Int }}\nclass H{i} {{\n c: C{i}\n fn get() -> C{i} {{ return self.c }}\n \
             fn next(h: H{next}) -> Int {{ return h.get().n }}\n}}\n"
        );
    }
    quick(&source);
}
