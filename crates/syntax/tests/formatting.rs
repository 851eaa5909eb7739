//! Section 14, `woc fmt`: what the formatter may do, over every source of the repository and over mutated ones
//! (checklist items 84 and 85). The rules themselves are pinned in `tests/corpus/fmt`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use diagnostics::span::FileId;
use syntax::format::Refusal;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

fn sources() -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut pending = vec![root()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !name.starts_with('.') && name != "target" {
                    pending.push(path);
                }
            } else if name.ends_with(".wo") || name.ends_with(".fmt") {
                let bytes = fs::read(&path).unwrap();
                found.push((path, bytes));
            }
        }
    }
    found.sort();
    assert!(found.len() > 300);
    found
}

fn format(source: &[u8], flags: &[String]) -> Result<Vec<u8>, Refusal> {
    syntax::format(FileId(0), source, flags)
}

fn fmt(source: &str) -> String {
    String::from_utf8(format(source.as_bytes(), &[]).unwrap()).unwrap()
}

/// Formats twice; a refusal must be about the source.
#[track_caller]
fn check(source: &[u8], what: &dyn std::fmt::Display) -> Option<Vec<u8>> {
    match format(source, &[]) {
        Ok(once) => {
            let twice = format(&once, &[]).unwrap_or_else(|e| panic!("{what}: second run: {e:?}"));
            assert!(twice == once, "{what}: not idempotent\n{}", String::from_utf8_lossy(&once));
            Some(once)
        }
        Err(Refusal::Errors(found)) => {
            assert!(!found.is_empty(), "{what}");
            None
        }
        Err(e) => panic!("{what}: {e:?}\n{}", String::from_utf8_lossy(source)),
    }
}

#[test]
fn every_source_is_a_fixed_point_after_one_run() {
    for (path, bytes) in sources() {
        let _ = check(&bytes, &path.display());
    }
}

/// Blanks at line starts and around operators carry no meaning, except in literals and comments.
#[test]
fn the_result_does_not_depend_on_blanks() {
    for (path, bytes) in sources() {
        let text = String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}').to_owned();
        if text.contains('`') || text.contains('\u{fffd}') {
            continue;
        }
        let Some(wanted) = check(&bytes, &path.display()) else { continue };
        let bare: String = text.lines().map(|l| format!("{}\n", l.trim())).collect();
        let deep: String = text.lines().map(|l| format!("\t   \t{l} \t\r\n")).collect();
        for changed in [bare, deep] {
            let found = check(changed.as_bytes(), &path.display()).unwrap_or_else(|| panic!("{}", path.display()));
            assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(&wanted), "{}", path.display());
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(n.max(1)).unwrap()).unwrap()
    }
}

const PIECES: &[&str] = &[
    " ",
    "\n",
    "\n\n\n",
    ";",
    ",",
    " -",
    "-",
    "- ",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "..",
    " . ",
    "--c\n",
    "-- c \r\n",
    ":",
    "<",
    ">",
    ">=",
    ">>",
    "?",
    "\n#if A\n",
    "\n#else\n",
    "\n#end\n",
    " #if A ",
    " #end ",
    "`",
    "\"",
    "${",
    "case ",
    "from x in xs ",
    " select ",
    " switch x {",
    " map<A, B>",
    " catch (e) ",
    "\t",
    "\r",
];

#[test]
fn mutated_sources_are_refused_or_formatted() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut formatted = 0;
    for (path, bytes) in sources().into_iter().filter(|(_, b)| b.len() < 4000) {
        for round in 0..12 {
            let mut changed = bytes.clone();
            for _ in 0..=random.below(2) {
                let at = random.below(changed.len() + 1);
                if random.below(4) == 0 {
                    let end = (at + random.below(3)).min(changed.len());
                    drop(changed.drain(at..end));
                } else {
                    let piece = PIECES[random.below(PIECES.len())];
                    drop(changed.splice(at..at, piece.bytes()));
                }
            }
            let what = format!("{} round {round}\n{}", path.display(), String::from_utf8_lossy(&changed));
            formatted += usize::from(check(&changed, &what).is_some());
        }
    }
    assert!(formatted > 500, "{formatted}");
}

/// Sections that are not compiled may hold anything that lexes.
#[test]
fn discarded_sections_may_hold_anything() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let words = [
        "a",
        "b-c",
        "1",
        "-",
        "- ",
        ".",
        "..",
        ",",
        ";",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "class",
        "typedef",
        "=",
        "switch",
        "case",
        ":",
        "map",
        "<",
        ">",
        ">=",
        ">>",
        "?",
        "->",
        "from",
        "in",
        "select",
        "where",
        "fn",
        "if",
        "use",
        "/",
        "\n",
        "\n",
        "-- c\n",
        "\n#if B\n",
        "#else",
        "#end",
        "\"x\"",
        "`\n y\n`",
        "type",
        "insert",
        "catch",
        "@",
        "try",
    ];
    for round in 0..3000 {
        let mut text = String::new();
        let mut open = 0;
        for _ in 0..random.below(30) {
            let word = words[random.below(words.len())];
            match word {
                "\n#if B\n" => open += 1,
                "#else" | "#end" if open == 0 => continue,
                "#else" => continue,
                "#end" => open -= 1,
                _ => {}
            }
            text.push_str(word);
            text.push_str(["", " ", " ", "  "][random.below(4)]);
        }
        text.push_str(&" #end".repeat(open));
        let source = format!("#if A\n{text}\n#else\n{text}\n#end\nfn main() {{\n}}\n");
        // The second copy is compiled: without it the source has no errors.
        let alone = format!("#if A\n{text}\n#end\nfn main() {{\n}}\n");
        let _ = check(source.as_bytes(), &format!("round {round}\n{source}"));
        let _ = check(alone.as_bytes(), &format!("round {round}\n{alone}"));
    }
}

#[test]
fn refusals_are_the_reports_of_the_parser() {
    for source in ["fn main() { let }", "fn f() {\n#if A\n\"open\n#end\n}", "fn f(", "#if A\n", "`"] {
        match format(source.as_bytes(), &[]) {
            Err(Refusal::Errors(found)) => assert!(!found.is_empty(), "{source}"),
            other => panic!("{source}: {other:?}"),
        }
    }
    // What counts as an error depends on the flags.
    let source = b"#if A\nfn (\n#end\n";
    assert!(format(source, &[]).is_ok());
    assert!(matches!(format(source, &["A".to_owned()]), Err(Refusal::Errors(_))));
}

#[test]
fn small_files() {
    for (source, wanted) in [
        ("", ""),
        ("\n\n\n", ""),
        ("\u{feff}", ""),
        ("  \t", ""),
        ("-- c", "-- c\n"),
        ("\n\n\n-- c\n\n\n", "\n-- c\n"),
        ("\u{feff}\nuse a", "\nuse a\n"),
    ] {
        assert_eq!(fmt(source), wanted, "{source:?}");
    }
}

#[test]
fn large_and_deep_files_take_linear_time() {
    let started = Instant::now();
    let operands = "\"a\" ..\n".repeat(100_000);
    let _ = check(format!("fn f() {{ return {operands} \"b\" }}").as_bytes(), &"operands");
    let commas = ",".repeat(300_000);
    assert_eq!(fmt(&format!("class A {{\na: Int{commas}\n{commas}\n}}")), "class A {\n  a: Int\n  ,\n}\n");
    let sections = "#if A\n(((((({{{{\n".repeat(20_000);
    let ends = "#end ".repeat(20_000);
    match format(format!("{sections}{ends}").as_bytes(), &[]) {
        Ok(_) | Err(Refusal::TooLong) => {}
        other => panic!("{other:?}"),
    }
    let lines = "a\n".repeat(100_000);
    let _ = check(format!("fn f() {{\n{lines}{lines}}}").as_bytes(), &"lines");
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}
