//! Rendering of diagnostics by the command (12.1) and determinism (14).

use corpus::reports;

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

#[test]
fn every_report_has_label_note_and_help() {
    let text = faulty().woc(&["check", "--format", "json", "p"]).stderr_text();
    for line in text.lines() {
        let value = parse(line);
        let Json::List(labels) = value.get("labels") else { panic!("{line}") };
        let Json::List(notes) = value.get("notes") else { panic!("{line}") };
        assert!(!labels.is_empty() && !notes.is_empty() && value.get("help") != &Json::Null, "{line}");
    }
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
