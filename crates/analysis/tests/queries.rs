//! Rows and queries are checked in full (language 8.7, tables 2 to 5), though nothing runs them yet.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use analysis::{Input, InputFile, check};
use diagnostics::span::{FileId, LineIndex};

const SHOP: &str = r#"
@table(name: "bins", index: [zone])
class Bin {
  code: Text @unique
  zone: Int
  lots: backlink Lot.bin
  fn label() -> Text { return self.code .. "/${self.zone}" }
}
@table
class Lot {
  part: Text
  count: Int
  bin: ref Bin
  note: ?Text
  tags: multi Text = []
}
class Visit { page: Text }
typedef Pair = { a: Int, b: Int }
"#;

/// `CODE` or `CODE@LINE` of every report for a body put behind the declarations of `SHOP`.
fn codes(body: &str) -> Vec<String> {
    let source = format!("{SHOP}fn main() {{\n{body}\n}}\n");
    let parsed = syntax::parse(FileId(0), source.as_bytes(), &[]);
    assert!(parsed.diagnostics.is_empty(), "{body}: {:?}", parsed.diagnostics);
    let file =
        InputFile { id: FileId(0), package: None, module: Vec::new(), display: "shop.wo".to_owned(), ast: parsed.file };
    let output = check(&Input { files: vec![file], is_library: false });
    let lines = LineIndex::new(source.as_bytes());
    let first = lines.line_col(u32::try_from(source.find("fn main").unwrap()).unwrap()).0;
    assert_eq!(output.program.is_some(), !output.diagnostics.iter().any(|d| d.is_error()), "{body}");
    if let Some(program) = &output.program {
        assert!(analysis::dump_hir(program).contains("main"));
    }
    output.diagnostics.iter().map(|d| format!("{}@{}", d.code, lines.line_col(d.span.start).0 - first)).collect()
}

#[track_caller]
fn clean(body: &str) {
    assert_eq!(codes(body), Vec::<String>::new(), "{body}");
}

#[track_caller]
fn reports(body: &str, code: &str) {
    assert_eq!(codes(body), vec![code.to_owned()], "{body}");
}

#[test]
fn rows_are_read_written_and_refer() {
    clean(
        r#"let b = insert Bin { code: "B7", zone: 2 }
        let l = insert Lot { part: "bolt", count: 9, bin: b }
        l.count -= 4
        l.note = nil
        l.bin.zone = 3
        l.tags = ["a"]
        print("${l.part} ${l.count} in ${l.bin.code} ${b.label()} ${b}")
        let n: Int = b
        let again: ref Bin = n
        let r = try delete again catch (e) nil
        if r == nil { print("refused") }
        for x in b.lots { print(x.part) }
        print_int(len(b.lots) + count(b.lots))"#,
    );
}

#[test]
fn queries_have_the_types_of_their_projections() {
    clean(
        r#"let rows: multi ref Lot = from x in Lot where x.part == "bolt" and x.bin.zone == 2 select x
        let names: multi Text = from x in Lot order by x.count desc, x.part skip 1 take 10 select x.part
        let sums: multi Int = from x in rows where x.count > 1 select x.count + 1
        let notes: multi ?Text = from x in Lot order by x.note select x.note
        let tags: multi multi Text = from x in Lot select x.tags
        let b = insert Bin { code: "B", zone: 1 }
        let some: multi ref Lot = from x in b.lots select x
        print_int(len(names) + len(sums) + len(notes) + len(tags) + len(some))
        print_int(count(from x in Lot where x.count > 1 select x) + len(from x in Lot select x))"#,
    );
}

#[test]
fn a_class_without_table_is_volatile() {
    reports("let v = insert Visit { page: \"a\" }\nlet w = insert Visit { page: \"b\" }", "WO-W206@1");
    clean("for v in from v in Visit where v.page == \"a\" select v { print(v.page) }");
}

#[test]
fn wrong_sources_clauses_and_projections_are_refused() {
    for (body, code) in [
        ("let q = from x in Pair select x", "WO-E250@1"),
        ("let q = from x in [1, 2] select x", "WO-E250@1"),
        ("let q = from x in Nowhere select x", "WO-E403@1"),
        ("let q = from x in Lot where x.count select x", "WO-E201@1"),
        ("let q = from x in Lot order by x.tags select x", "WO-E250@1"),
        ("let q = from x in Lot skip \"a\" select x", "WO-E201@1"),
        ("let q = from x in Lot group x by x.part into g select x", "WO-E250@1"),
        ("let q = from x in Lot select Pair { a: 1, b: x.count }", "WO-E250@1"),
        ("let q = from x in Lot select [x.count]", "WO-E250@1"),
        ("let q = from x in Lot select x.nope", "WO-E202@1"),
        ("delete 5", "WO-E250@1"),
        ("let p = insert Pair { a: 1, b: 2 }", "WO-E250@1"),
        ("let b = Bin { code: \"a\", zone: 1 }", "WO-E250@1"),
        ("let b = insert Bin { code: \"a\" }", "WO-E206@1"),
        ("let b = insert Bin { code: \"a\", zone: 1, lots: [] }", "WO-E202@1"),
        ("let b = insert Bin { code: nil, zone: 1 }", "WO-E212@1"),
        ("let b = insert Nope { code: 1 }", "WO-E207@1"),
        ("let b = insert Bin { code: \"a\", zone: 1 }\nb.lots = []", "WO-E403@2"),
    ] {
        reports(body, code);
    }
}

#[test]
fn changing_a_copy_of_a_column_warns() {
    let row = "let l = latest(from x in Lot select x)\n";
    for change in ["push(l.tags, \"x\")", "l.tags[0] = \"y\"", "sort(l.tags)"] {
        reports(&format!("{row}{change}"), "WO-W207@2");
    }
    clean(&format!("{row}l.bin.zone = 1\nlet t = l.tags\npush(t, \"x\")\nl.tags = t"));
}
