//! The programs in the documents compile and print what stands below them, or are refused with it.

use std::path::{Path, PathBuf};

use corpus::root;

use crate::{Tree, assert_status};

/// Every Markdown file that users read.
fn documents() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md")];
    let mut pending = vec![root().join("docs")];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir).expect("folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                found.push(path);
            }
        }
    }
    found
}

/// The fenced blocks of a document: language, text, and the line of the fence.
fn blocks(text: &str) -> Vec<(&str, String, usize)> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> = lines.by_ref().map(|l| l.1).take_while(|l| *l != "```").collect();
        blocks.push((language, body.join("\n") + "\n", number + 1));
    }
    blocks
}

/// A program of a document; its files stand in `p/`.
struct Program {
    tree: Tree,
    /// The `text` block below it.
    below: Option<String>,
    refused: bool,
    /// Document and line.
    place: String,
}

/// The programs of the document at `path`: each block `wo`, or `wo refused`, and each row of blocks `wo FILE.wo`.
fn programs(path: &Path) -> Vec<Program> {
    let text = std::fs::read_to_string(path).expect("document");
    let mut blocks = blocks(&text).into_iter().peekable();
    let mut programs = Vec::new();
    while let Some((language, source, line)) = blocks.next() {
        let Some(kind) = language.strip_prefix("wo").map(str::trim) else { continue };
        let mut files = vec![(if kind.ends_with(".wo") { kind } else { "main.wo" }, source)];
        while let Some((language, source, _)) = blocks.next_if(|b| kind.ends_with(".wo") && b.0.ends_with(".wo")) {
            files.push((language.trim_start_matches("wo").trim(), source));
        }
        let place = format!("{}:{line}", path.strip_prefix(root()).unwrap_or(path).display());
        assert!(kind.is_empty() || kind == "refused" || kind.ends_with(".wo"), "{place}: a block `{language}`");
        let below = blocks.next_if(|b| b.0 == "text").map(|b| b.1);
        programs.push(Program { tree: project(&files), below, refused: kind == "refused", place });
    }
    programs
}

fn project(files: &[(&str, String)]) -> Tree {
    let porch = root().join("docs/examples/porch");
    let manifest = format!("name = \"document\"\n[deps]\nporch = {{ path = \"{}\" }}\n", porch.display());
    let needs_porch = files.iter().any(|f| f.1.contains("use porch"));
    let manifest = if needs_porch { manifest } else { "name = \"document\"\n".to_owned() };
    let tree = Tree::new(&[("p/wo.toml", manifest.as_bytes())]);
    for (path, source) in files {
        tree.write(&format!("p/{path}"), source.as_bytes());
    }
    tree
}

#[test]
fn programs_compile_and_print_what_they_say() {
    let (mut checked, mut run, mut refused) = (0, 0, 0);
    for Program { tree, below, refused: is_refused, place } in documents().iter().flat_map(|path| programs(path)) {
        let out = tree.woc(&["check", "--format", "short", "p"]);
        let report = out.stderr_text();
        if is_refused {
            assert_eq!(Some(report.replace("p/main.wo:", "main.wo:")), below, "{place}");
            assert_status(&out, 1);
            refused += 1;
            continue;
        }
        assert!(report.is_empty(), "{place}: {report}");
        assert_status(&out, 0);
        checked += 1;
        if let Some(wanted) = below {
            let out = tree.woc(&["run", "p"]);
            assert_eq!(out.stdout_text(), wanted, "{place}: {}", out.stderr_text());
            assert_status(&out, 0);
            run += 1;
        }
    }
    assert!(checked >= 25 && run >= 20 && refused >= 5, "{checked} programs, {run} with output, {refused} refused");
}
