//! Rendering of diagnostics by the command (12.1) and determinism (14).

use std::time::Duration;

use corpus::{command, finish, reports, root};

use crate::json::{Json, parse};
use crate::{Tree, assert_status};

/// Three errors and a warning over two files, in an order that is not that of discovery.
fn faulty() -> Tree {
    Tree::new(&[
        ("p/b.wo", b"use time\nfn f(a: Int) -> Int {\n  return a + \"t\xc3\xa4\\\"\"\n}\n"),
        ("p/a.wo", b"fn main() {\n  print(zz)\n  print(yy)\n}\n"),
    ])
}

#[test]
fn human_reports_have_an_excerpt_and_are_separated() {
    let out = faulty().woc(&["check", "p"]);
    assert_status(&out, 1);
    let text = out.stderr_text();
    assert!(text.starts_with("p/a.wo:2:9: error WO-E403: "), "{text}");
    assert!(text.contains("\n\np/a.wo:3:9: error WO-E403: "), "{text}");
    assert!(text.contains("\n\np/b.wo:1:1: warning WO-W202: "), "{text}");
    assert!(text.contains("print(zz)"), "{text}");
    assert!(!text.contains('\u{1b}') && !text.ends_with("\n\n"));
    assert!(out.stdout.is_empty());
}

#[test]
fn short_reports_are_first_lines() {
    let tree = faulty();
    let short = tree.woc(&["check", "--format", "short", "p"]).stderr_text();
    assert_eq!(short.lines().count(), reports(&short).len());
    let human = tree.woc(&["check", "--format=human", "p"]).stderr_text();
    for line in short.lines() {
        assert!(human.lines().any(|l| l == line), "{line}");
    }
}

#[test]
fn json_is_one_object_per_line() {
    let tree = faulty();
    let text = tree.woc(&["--format", "json", "check", "p"]).stderr_text();
    let short = reports(&tree.woc(&["check", "--format", "short", "p"]).stderr_text());
    assert_eq!(text.lines().count(), short.len());
    for (line, report) in text.lines().zip(short) {
        let value = parse(line);
        let Json::Object(map) = &value else { panic!("{line}") };
        let keys: Vec<&str> = map.keys().map(String::as_str).collect();
        let wanted =
            ["code", "col", "end_col", "end_line", "file", "help", "labels", "line", "notes", "severity", "title"];
        assert_eq!(keys, wanted);
        assert_eq!(value.get("code").text(), report.code);
        assert_eq!(value.get("line"), &Json::Number(report.line.into()));
        assert_eq!(value.get("col"), &Json::Number(report.col.into()));
        let severity = if report.code.starts_with("WO-E") { "error" } else { "warning" };
        assert_eq!(value.get("severity").text(), severity);
        let Json::List(labels) = value.get("labels") else { panic!("{line}") };
        for label in labels {
            let Json::Object(map) = label else { panic!("{line}") };
            let keys: Vec<&str> = map.keys().map(String::as_str).collect();
            assert_eq!(keys, ["col", "end_col", "end_line", "file", "line", "text"]);
        }
        assert!(!line.contains('\u{1b}'));
    }
}

/// Codes whose titles have nothing to name: the span says which literal (12.2).
const NAMED_BY_SPAN: [&str; 3] = ["WO-E002", "WO-E004", "WO-E005"];

/// What is wrong with the parts of a report.
fn faults(report: &Json) -> Vec<&'static str> {
    let texts = |key: &str| match report.get(key) {
        Json::List(list) => list.clone(),
        _ => Vec::new(),
    };
    let (labels, notes) = (texts("labels"), texts("notes"));
    let mut all: Vec<&str> = vec![report.get("title").text()];
    all.extend(labels.iter().map(|l| l.get("text").text()));
    all.extend(notes.iter().map(Json::text));
    let help = report.get("help");
    all.extend((help != &Json::Null).then(|| help.text()));
    let same_place =
        |l: &Json| ["file", "line", "col", "end_line", "end_col"].iter().all(|k| l.get(k) == report.get(k));
    let title = report.get("title").text();
    let article = |t: &&str| ["A", "E", "I", "O"].iter().any(|vowel| t.contains(&format!(" a `{vowel}")));
    let mut faults = Vec::new();
    let mut check = |is_fault: bool, what| faults.extend(is_fault.then_some(what));
    check(!labels.first().is_some_and(same_place), "no primary label");
    check(notes.is_empty(), "no note");
    check(help == &Json::Null, "no help");
    check(all.iter().any(|t| t.trim().is_empty()), "an empty part");
    check(all.iter().skip(1).any(|t| *t == title), "the title is repeated");
    let names = title.contains('`') || title.ends_with("end of line") || title.ends_with("end of file");
    check(!names && !NAMED_BY_SPAN.contains(&report.get("code").text()), "the title names nothing");
    check(all.iter().any(|t| t.contains("unknown type") && t != &title), "a type that is not known");
    check(all.iter().any(article), "a wrong article");
    check(all.iter().any(|t| t.ends_with('.')), "a full stop");
    check(all.iter().any(|t| t.chars().count() > 250), "too long");
    faults
}

/// The reports of all `compile-fail` cases are complete and name what they are about.
#[test]
fn every_report_has_its_parts() {
    let mut wrong = Vec::new();
    let cases = std::fs::read_dir(root().join("tests/corpus/compile-fail")).expect("cases");
    for case in cases.flatten() {
        let flags = std::fs::read_to_string(case.path().join("fixture.flags")).unwrap_or_default();
        let mut command = command(root()).expect("woc");
        let _ = command.args(["check", "--format", "json"]).arg(case.path());
        let _ = command.args(flags.split_whitespace().flat_map(|name| ["-D", name]));
        let out = finish(&mut command, Duration::from_secs(60)).expect("woc runs");
        for line in out.stderr_text().lines() {
            let faults = faults(&parse(line));
            if !faults.is_empty() {
                wrong.push(format!("{}: {}\n  {line}", case.path().display(), faults.join(", ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn two_runs_give_the_same_bytes() {
    let tree = faulty();
    for format in ["human", "short", "json"] {
        let first = tree.woc(&["check", "--format", format, "p"]).stderr;
        for _ in 0..5 {
            assert_eq!(tree.woc(&["check", "--format", format, "p"]).stderr, first, "{format}");
        }
    }
}

#[test]
fn the_root_argument_is_part_of_the_name() {
    let tree = faulty();
    for (root, file) in [("p/", "p/a.wo"), ("./p", "./p/a.wo"), ("p/a.wo", "p/a.wo")] {
        let out = tree.woc(&["check", "--format", "short", root]);
        assert!(out.stderr_text().starts_with(&format!("{file}:2:9: ")), "{}", out.stderr_text());
    }
}

/// Sources with their one report: where it is in bytes, and the bytes it is about (1.1).
const ODD: [(&str, u32, u32, &str); 12] = [
    ("fn f() { print(\"👨‍👩‍👧\" .. zz) }\n", 1, 40, "zz"),
    ("-- ⚠️\nfn f() { print(\"⚠️\" .. zz) } -- ⚠️\n", 2, 28, "zz"),
    ("fn f() { print(\"é\" .. zz .. \"日本\") }", 1, 24, "zz"),
    ("fn f() {\n\t\tprint(\"a\tb\" .. zz)\n}\n", 2, 18, "zz"),
    ("fn f() {\r\n  print(zz)\r\n}\r\n", 2, 9, "zz"),
    ("fn f() {\r\n  let s = \"é\r\n}\r\n", 2, 11, "\"é"),
    ("\u{feff}fn f() { print(zz) }\n", 1, 16, "zz"),
    ("fn f() { let größe = 1 }\n", 1, 16, "öß"),
    ("Ϥ fn f() {}\n", 1, 1, "Ϥ"),
    ("fn f() { print(\"\u{202e}\u{1}\" .. zz) }\n", 1, 26, "zz"),
    ("fn f() { print(\"é\")", 1, 21, ""),
    ("fn f() {\n  print(\"é\")\n", 3, 1, ""),
];

#[test]
fn places_are_right_in_odd_text() {
    for (source, line, col, about) in ODD {
        let tree = Tree::new(&[("a.wo", source.as_bytes())]);
        let text = tree.woc(&["check", "--format", "json", "a.wo"]).stderr_text();
        assert_eq!(text.lines().count(), 1, "{source:?}\n{text}");
        let report = parse(text.trim_end());
        let number = |key: &str| match report.get(key) {
            Json::Number(n) => usize::try_from(*n).expect("a position"),
            other => panic!("{other:?}"),
        };
        assert_eq!((number("line"), number("col")), (line as usize, col as usize), "{source:?}");
        let bytes = source
            .trim_start_matches('\u{feff}')
            .split_inclusive('\n')
            .nth(line as usize - 1)
            .unwrap_or_default()
            .as_bytes();
        let bytes = bytes.get(number("col") - 1..number("end_col") - 1).unwrap_or_default();
        assert_eq!(bytes, about.as_bytes(), "{source:?}");
        let human = tree.woc(&["check", "a.wo"]).stderr_text();
        assert!(!human.contains(['\u{202e}', '\u{1}', '\r', '\t']), "{human:?}");
    }
}

/// The mark of an excerpt stands below what it is about, whatever stands before it on the line.
#[test]
fn marks_stand_below_their_text() {
    for before in ["", "é", "\t", "x\ty", "日本", "e\u{301}", "\u{202e}"] {
        let source = format!("fn f() {{\n  print(\"{before}\" .. zz)\n}}\n");
        let human = Tree::new(&[("a.wo", source.as_bytes())]).woc(&["check", "a.wo"]).stderr_text();
        let lines: Vec<&str> = human.lines().collect();
        let at = lines.iter().position(|l| l.contains("zz)")).expect("the line");
        // Wide characters take two columns, combining ones none.
        let width = |text: &str| -> usize {
            text.chars().map(|c| if c == '\u{301}' { 0 } else { 1 + usize::from(('一'..='龥').contains(&c)) }).sum()
        };
        let (text, _) = lines[at].split_once("zz)").expect("the name");
        let (mark, _) = lines[at + 1].split_once('─').expect("the mark");
        assert_eq!(width(text), width(mark), "{human}");
    }
}
