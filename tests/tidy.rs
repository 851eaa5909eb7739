//! Gates over the repository itself: shape of the corpus, of the sources, and of the list of codes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

#[path = "tidy/coverage.rs"]
mod coverage;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use corpus::root;

/// Codes of the language specification, 12.2.
const ERRORS: &[&str] = &[
    "001", "002", "003", "004", "005", "006", "101", "102", "103", "104", "105", "106", "107", "108", "109", "201",
    "202", "203", "205", "206", "207", "208", "209", "210", "211", "212", "213", "214", "215", "216", "217", "218",
    "219", "220", "221", "222", "223", "224", "225", "226", "227", "250", "251", "252", "301", "302", "303", "304",
    "305", "403", "405", "406",
];
const WARNINGS: &[&str] = &["202", "203", "204", "205", "206", "207"];

/// Tested by scripts under `tests/cli/` (15).
const SCRIPTED: &[&str] = &["WO-E106", "WO-E107", "WO-E108", "WO-E109"];

/// Traps of section 13 that need no case: 2 is never raised, 4 cannot be forced portably.
const UNFORCED_TRAPS: &[u32] = &[2, 4];

const KINDS: [(&str, &str); 4] =
    [("run", "fixture.out"), ("compile-fail", "fixture.code"), ("trap", "fixture.trap"), ("fmt", "fixture.fmt")];
const OPTIONAL: &[&str] = &[
    "fixture.args",
    "fixture.env",
    "fixture.exit",
    "fixture.warn",
    "fixture.flags",
    "fixture.diag",
    "fixture.out",
    "wo.toml",
];

/// Packages outside the workspace.
const OUTSIDE: &[&str] = &["fuzz", "bench/peers"];

/// Crates that reach no file, clock, environment, process or network, and print nothing: `clippy.toml` lists what they
/// may not call.
const PURE: &[&str] =
    &["crates/diagnostics", "crates/syntax", "crates/analysis", "crates/mir", "crates/codegen", "runtime/codec"];

const LINES_MAX: usize = 1_200;

#[track_caller]
fn report(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

fn short(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(dir).map(|e| e.flatten().map(|e| e.path()).collect()).unwrap_or_default();
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn sources(extension: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut pending = vec![root().to_path_buf()];
    while let Some(dir) = pending.pop() {
        for path in entries(&dir) {
            if path.is_dir() {
                if !name(&path).starts_with('.') && name(&path) != "target" {
                    pending.push(path);
                }
            } else if path.extension().is_some_and(|e| e == extension) {
                let text = String::from_utf8_lossy(&fs::read(&path).expect("source")).into_owned();
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

/// `(kind, the kind's own file, directory)` of every case.
fn cases() -> Vec<(&'static str, &'static str, PathBuf)> {
    let of = |(kind, file): (&'static str, &'static str)| {
        let dirs = entries(&root().join("tests/corpus").join(kind));
        dirs.into_iter().map(move |dir| (kind, file, dir))
    };
    KINDS.into_iter().flat_map(of).collect()
}

#[test]
fn cases_have_their_files() {
    let mut faults = Vec::new();
    for kind in entries(&root().join("tests/corpus")) {
        if !KINDS.iter().any(|(k, _)| *k == name(&kind)) {
            faults.push(format!("{}: no kind of case", short(&kind)));
        }
    }
    for (_, own, dir) in cases() {
        let fault = |what: &str| format!("{}: {what}", short(&dir));
        if !dir.is_dir() {
            faults.push(fault("not a directory"));
            continue;
        }
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !name(&dir).chars().all(plain) {
            faults.push(fault("names are lower case with dashes"));
        }
        for file in ["fixture.wo", own] {
            if !dir.join(file).is_file() {
                faults.push(fault(&format!("no {file}")));
            }
        }
        for path in entries(&dir).iter().filter(|p| p.is_file()) {
            let file = name(path);
            if file != "fixture.wo" && file != own && !OPTIONAL.contains(&file.as_str()) {
                faults.push(fault(&format!("stray {file}")));
            }
        }
    }
    report(&faults);
}

/// The first comment line says which section (`7.2`), checklist entry or rule (`OWN-1`) the case pins.
#[test]
fn cases_cite_a_section() {
    let mut faults = Vec::new();
    for (_, _, dir) in cases() {
        let text = String::from_utf8_lossy(&fs::read(dir.join("fixture.wo")).unwrap_or_default()).into_owned();
        let comment = text.lines().find_map(|l| l.split_once("--").map(|(_, c)| c)).unwrap_or_default();
        let section = comment
            .split(|c: char| !c.is_ascii_digit() && c != '.')
            .any(|w| w.trim_matches('.').split_once('.').is_some_and(|(a, b)| !a.is_empty() && !b.is_empty()));
        let rule = comment.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|w| {
            w.split_once('-').is_some_and(|(tag, n)| {
                tag.len() >= 2 && tag.bytes().all(|b| b.is_ascii_uppercase()) && n.parse::<u32>().is_ok()
            })
        });
        let chapter = comment.trim_start().split_once([':', ' ']).is_some_and(|(n, _)| n.parse::<u32>().is_ok());
        if !section && !rule && !chapter {
            faults.push(format!("{}: the first comment line cites no section", short(&dir)));
        }
    }
    report(&faults);
}

/// Codes that have a case: the one of a `compile-fail` case, or one that a `fixture.warn` or `fixture.diag` lists.
fn covered() -> BTreeSet<String> {
    let mut codes = BTreeSet::new();
    for (_, _, dir) in cases() {
        for file in ["fixture.code", "fixture.warn", "fixture.diag"] {
            let text = fs::read_to_string(dir.join(file)).unwrap_or_default();
            codes.extend(text.split_whitespace().filter(|w| w.starts_with("WO-")).map(str::to_owned));
        }
    }
    codes
}

fn all_codes() -> Vec<String> {
    let errors = ERRORS.iter().map(|n| format!("WO-E{n}"));
    errors.chain(WARNINGS.iter().map(|n| format!("WO-W{n}"))).collect()
}

#[test]
fn every_code_has_a_case() {
    let covered = covered();
    let mut faults = Vec::new();
    for code in all_codes() {
        if !covered.contains(&code) && !SCRIPTED.contains(&code.as_str()) {
            faults.push(format!("{code} has no case"));
        }
    }
    let scripts: String =
        sources("rs").into_iter().filter(|(p, _)| short(p).starts_with("tests/cli")).map(|(_, t)| t).collect();
    faults.extend(SCRIPTED.iter().filter(|c| !scripts.contains(**c)).map(|c| format!("{c} has no scripted case")));
    faults.extend(covered.difference(&all_codes().into_iter().collect()).map(|c| format!("{c} is no code of 12.2")));
    report(&faults);
}

/// Every code that a source names is one of the table.
#[test]
fn mentioned_codes_exist() {
    let known = all_codes();
    let mut faults = Vec::new();
    for (path, text) in sources("rs").iter().filter(|(p, _)| short(p).starts_with("crates")) {
        for at in text.match_indices("WO-").map(|(i, _)| i) {
            let code = text.get(at..at + "WO-E000".len()).unwrap_or_default();
            let numbered = code.len() == 7 && code.bytes().skip(4).all(|b| b.is_ascii_digit());
            if numbered && !known.iter().any(|k| k == code) {
                faults.push(format!("{}: {code} is no code of 12.2", short(path)));
            }
        }
    }
    report(&faults);
}

#[test]
fn every_trap_has_a_case() {
    let mut covered = BTreeSet::new();
    for (kind, own, dir) in cases() {
        if kind == "trap" {
            let text = fs::read_to_string(dir.join(own)).unwrap_or_default();
            covered.extend(text.split_whitespace().next().and_then(|n| n.parse::<u32>().ok()));
        }
    }
    let wanted = (1..=13).filter(|n| !UNFORCED_TRAPS.contains(n));
    let faults: Vec<String> =
        wanted.filter(|n| !covered.contains(n)).map(|n| format!("trap {n} has no case")).collect();
    report(&faults);
}

#[test]
fn sources_are_small_and_say_what_they_are() {
    let mut faults = Vec::new();
    for (path, text) in sources("rs") {
        let lines = text.lines().count();
        if lines > LINES_MAX {
            faults.push(format!("{}: {lines} lines, at most {LINES_MAX}", short(&path)));
        }
        if !text.starts_with("//!") {
            faults.push(format!("{}: does not open with `//!`", short(&path)));
        }
    }
    report(&faults);
}

/// Unsafe code is confined to the runtime and code generation.
#[test]
fn unsafe_is_confined() {
    let mut faults = Vec::new();
    for (path, text) in sources("rs") {
        let file = short(&path);
        if file.starts_with("runtime") || file.starts_with("crates/codegen") || file == "tests/tidy.rs" {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let uses = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "unsafe(", "allow(unsafe_code"];
            if uses.iter().any(|u| code.contains(u)) {
                faults.push(format!("{file}:{}: unsafe code", number + 1));
            }
        }
    }
    report(&faults);
}

/// Purity is the linter's to enforce, on everything but tests.
#[test]
fn pure_crates_deny_input_and_output() {
    let denial = "#![cfg_attr(\n    not(test),\n    deny(clippy::disallowed_methods, clippy::disallowed_types, \
                  clippy::print_stderr, clippy::print_stdout)\n)]\n";
    let mut faults = Vec::new();
    for package in PURE {
        let path = root().join(package).join("src");
        for (file, text) in sources("rs").iter().filter(|(p, _)| p.starts_with(&path)) {
            if name(file) == "lib.rs" && !text.contains(denial) {
                faults.push(format!("{}: does not deny what clippy.toml lists", short(file)));
            }
            if text.contains("allow(clippy::disallowed") || text.contains("allow(clippy::print") {
                faults.push(format!("{}: allows what a pure crate may not do", short(file)));
            }
        }
    }
    report(&faults);
}

/// Packages follow the workspace's lints.
#[test]
fn packages_inherit_the_lints() {
    let manifests = sources("toml").into_iter().filter(|(p, t)| name(p) == "Cargo.toml" && t.contains("[package]"));
    let faults: Vec<String> = manifests
        .filter(|(p, t)| !t.contains("[lints]\nworkspace = true") && !OUTSIDE.iter().any(|o| short(p).starts_with(o)))
        .map(|(p, _)| format!("{}: no `[lints] workspace = true`", short(&p)))
        .collect();
    report(&faults);
}
