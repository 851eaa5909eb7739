//! The programs in the documents compile, and print what stands below them.

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

fn project(source: &str) -> Tree {
    let porch = root().join("docs/examples/porch");
    let manifest = format!("name = \"document\"\n[deps]\nporch = {{ path = \"{}\" }}\n", porch.display());
    let manifest = if source.contains("use porch") { manifest } else { "name = \"document\"\n".to_owned() };
    Tree::new(&[("p/wo.toml", manifest.as_bytes()), ("p/main.wo", source.as_bytes())])
}

fn place(path: &Path, line: usize) -> String {
    format!("{}:{line}", path.strip_prefix(root()).unwrap_or(path).display())
}

#[test]
fn programs_compile_and_print_what_they_say() {
    let (mut checked, mut run) = (0, 0);
    for path in documents() {
        let text = std::fs::read_to_string(&path).expect("document");
        let blocks = blocks(&text);
        for (at, (language, source, line)) in blocks.iter().enumerate() {
            if *language != "wo" {
                continue;
            }
            let tree = project(source);
            let out = tree.woc(&["check", "--format", "short", "p"]);
            assert!(out.stderr.is_empty(), "{}: {}", place(&path, *line), out.stderr_text());
            assert_status(&out, 0);
            checked += 1;
            if let Some((_, wanted, _)) = blocks.get(at + 1).filter(|b| b.0 == "text") {
                let out = tree.woc(&["run", "p"]);
                assert_eq!(out.stdout_text(), *wanted, "{}: {}", place(&path, *line), out.stderr_text());
                assert_status(&out, 0);
                run += 1;
            }
        }
    }
    assert!(checked >= 7 && run >= 5, "{checked} programs, {run} with output");
}
