//! What `woc check` says to the mistakes of newcomers (12.1): each file below `tests/reports/FEATURE/` shows a program
//! and its report. `BLESS=1` in the environment writes the reports anew; a file begins as a line that says where the
//! mistake comes from, and a program behind `==== main.wo`.

use std::fs;
use std::path::{Path, PathBuf};

use corpus::{reports, root};

use crate::Tree;

const REPORT: &str = "report";

/// The first line, and what stands behind each `==== NAME`.
fn sections(text: &str) -> (&str, Vec<(&str, &str)>) {
    let mut parts = text.split("==== ");
    let intro = parts.next().unwrap_or_default();
    (intro, parts.filter_map(|part| part.split_once('\n')).collect())
}

fn files() -> Vec<PathBuf> {
    let entries =
        |dir: &Path| -> Vec<PathBuf> { fs::read_dir(dir).expect("directory").flatten().map(|e| e.path()).collect() };
    let mut files: Vec<PathBuf> = entries(&root().join("tests/reports")).iter().flat_map(|dir| entries(dir)).collect();
    files.sort();
    files
}

/// The report that the file shows must be what the command says, and be one; its sources are in canonical form where
/// they have one. Gives what is wrong.
fn fault(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).expect("file");
    let (intro, sections) = sections(&text);
    let sources: Vec<(&str, &[u8])> =
        sections.iter().filter(|s| s.0 != REPORT).map(|(name, text)| (*name, text.as_bytes())).collect();
    if intro.lines().count() != 1 || sources.is_empty() {
        return Some("begins with one line and `==== main.wo`".to_owned());
    }
    let tree = Tree::new(&sources);
    let report = tree.woc(&["check", "."]).stderr_text().replace("./", "");
    let mut wanted = intro.to_owned();
    for (name, source) in sections.iter().filter(|s| s.0 != REPORT).chain([&(REPORT, report.as_str())]) {
        wanted.push_str(&format!("==== {name}\n{source}"));
    }
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, &wanted).expect("the file can be written");
    } else if wanted != text {
        return Some(format!("differs (`BLESS=1` writes it anew):\n{report}"));
    }
    let count = reports(&report).len();
    let unformatted = tree.woc(&["fmt", "--check", "."]).stdout_text();
    if count != 1 || !unformatted.is_empty() {
        return Some(format!("{count} reports; not canonical: {unformatted}"));
    }
    None
}

#[test]
fn mistakes_of_newcomers() {
    let files = files();
    let fault = |path: &PathBuf| fault(path).map(|fault| format!("{}: {fault}", path.display()));
    let faults: Vec<String> = files.iter().filter_map(fault).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(files.len() >= 100, "only {} files", files.len());
}
