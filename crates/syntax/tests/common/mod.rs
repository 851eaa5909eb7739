//! Helpers of the front end's tests: parse a snippet, look at its tree or its reports.
#![allow(dead_code, reason = "every test binary uses a part")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use diagnostics::Diagnostic;
use diagnostics::span::{FileId, LineIndex};

/// Tree dump of a source without errors.
pub fn tree(source: &str) -> String {
    let parsed = syntax::parse(FileId(0), source.as_bytes(), &[]);
    assert!(parsed.diagnostics.is_empty(), "{source}\n{:#?}", parsed.diagnostics);
    syntax::dump_ast(&parsed.file)
}

/// `LINE:COL WO-Ennn` of every report.
pub fn reports(source: &str) -> Vec<String> {
    reports_of(source.as_bytes(), &[])
}

pub fn reports_of(source: &[u8], flags: &[&str]) -> Vec<String> {
    let flags: Vec<String> = flags.iter().map(|f| (*f).to_owned()).collect();
    let parsed = syntax::parse(FileId(0), source, &flags);
    let index = LineIndex::new(source);
    for d in &parsed.diagnostics {
        assert!(!d.title.is_empty() && !d.label.is_empty(), "{d:?}");
        assert!(!d.notes.is_empty() && d.help.as_ref().is_some_and(|h| !h.is_empty()), "{d:?}");
        assert!(d.span.start <= d.span.end && d.span.end as usize <= source.len(), "{d:?}");
    }
    let at = |d: &Diagnostic| index.line_col(d.span.start);
    parsed.diagnostics.iter().map(|d| format!("{}:{} {}", at(d).0, at(d).1, d.code)).collect()
}

/// The single report of a source.
pub fn report(source: &str) -> Diagnostic {
    let mut found = syntax::parse(FileId(0), source.as_bytes(), &[]).diagnostics;
    assert_eq!(found.len(), 1, "{source}\n{found:#?}");
    found.pop().unwrap()
}

/// Tree of one expression, as the value of a `return`.
pub fn expr(source: &str) -> String {
    let text = tree(&format!("fn f() {{ return {source}\n}}"));
    let text = text.strip_prefix("(fn f ()\n  (return ").unwrap_or_else(|| panic!("{text}"));
    text.strip_suffix("))\n").unwrap_or_else(|| panic!("{text}")).to_owned()
}

/// Tree of the statements of a body.
pub fn body(source: &str) -> String {
    let text = tree(&format!("fn f() {{\n{source}\n}}"));
    text.strip_prefix("(fn f ()\n").unwrap_or(&text).strip_suffix(")\n").unwrap_or(&text).to_owned()
}

/// Reports of the statements of a body; line 1 is its first line.
pub fn body_reports(source: &str) -> Vec<String> {
    reports(&format!("fn f() {{ {source}\n}}"))
}
