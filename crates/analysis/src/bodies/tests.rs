//! Tests of the body checker: programs and the reports they get, and the HIR of a few.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use crate::{Input, InputFile, Output};
use diagnostics::span::{FileId, LineIndex};

/// Error-free lines of every case, so that their HIR is looked at too: without the lines that get reports.
fn verify_rest(source: &str) {
    let rest: Vec<&str> = source.lines().filter(|l| !l.contains("--!") || !l.contains(" E")).collect();
    let parsed = syntax::parse(FileId(0), rest.join("\n").as_bytes(), &[]);
    if parsed.diagnostics.is_empty() {
        let _ = check(&rest.join("\n"));
    }
}

/// Checks modules given as (directory, source); a single source is the root module.
fn check_modules(modules: &[(&str, &str)]) -> Output {
    let files = modules
        .iter()
        .enumerate()
        .map(|(i, (dir, source))| {
            let id = FileId(u32::try_from(i).unwrap());
            let parsed = syntax::parse(id, source.as_bytes(), &[]);
            assert!(parsed.diagnostics.is_empty(), "syntax: {:?}\n{source}", parsed.diagnostics);
            InputFile {
                id,
                package: None,
                module: dir.split('/').filter(|d| !d.is_empty()).map(str::to_owned).collect(),
                display: format!("{dir}/f{i}.wo"),
                ast: parsed.file,
            }
        })
        .collect();
    let output = crate::check(&Input { files, is_library: false });
    if let Some(program) = &output.program {
        verify::verify(program);
    }
    output
}

fn check(source: &str) -> Output {
    check_modules(&[("", source)])
}

/// `LINE:CODE` of each report.
fn codes_of(output: &Output, source: &str) -> Vec<String> {
    let index = LineIndex::new(source.as_bytes());
    output
        .diagnostics
        .iter()
        .map(|d| format!("{}:{}", index.line_col(d.span.start).0, d.code.to_string().trim_start_matches("WO-")))
        .collect()
}

/// Each case is a program; the reports expected of a line stand behind it as `--! CODE CODE`.
#[track_caller]
fn expect(source: &str) {
    let mut wanted = Vec::new();
    for (at, line) in source.lines().enumerate() {
        if let Some((_, codes)) = line.split_once("--!") {
            wanted.extend(codes.split_whitespace().map(|c| format!("{}:{c}", at + 1)));
        }
    }
    let output = check(source);
    let mut found = codes_of(&output, source);
    found.sort();
    wanted.sort();
    let detail: Vec<String> = output.diagnostics.iter().map(|d| format!("{} {}", d.code, d.title)).collect();
    assert_eq!(found, wanted, "{detail:#?}\n{source}");
    verify_rest(source);
    for d in &output.diagnostics {
        assert!(
            !d.title.is_empty() && !d.label.is_empty() && !d.notes.is_empty() && d.help.is_some(),
            "incomplete: {d:?}"
        );
    }
}

fn hir_of(source: &str, func: &str) -> String {
    let output = check(source);
    let program = output.program.unwrap_or_else(|| panic!("{:#?}", output.diagnostics));
    let text = crate::dump_hir(&program);
    let start = text.find(&format!(" {func}(")).unwrap_or_else(|| panic!("{func} in\n{text}"));
    let start = text[..start].rfind('\n').map_or(0, |i| i + 1);
    let end = text[start..].find("\n}").map_or(text.len(), |i| start + i + 2);
    text[start..end].to_owned()
}

mod basics;
mod flow;
mod program;
mod verify;
