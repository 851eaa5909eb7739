//! What the corpus must use at least once: every builtin that is available, every trap text that a program can meet,
//! every item of the checklist (language specification 16). `checklist.txt` maps items to cases.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::{KINDS, cases, entries, name, report, root, short, sources};

const ITEMS: u32 = 85;

/// Items that come with a later part: `deflate`. An entry that has cases must go.
const LATER_ITEMS: &[u32] = &[70];

/// The texts of section 13 and of 8 to 11, by number. Left out: those of builtins that are not available yet,
/// `internal error at …`, and the two length limits that need gigabytes to reach.
const TRAP_TEXTS: &[(u32, &str)] = &[
    (1, "division by zero"),
    (1, "INT64_MIN / -1 overflows"),
    (3, "stack overflow"),
    (4, "out of memory"),
    (4, "out of memory growing a table"),
    (5, "no such row"),
    (5, "row too large"),
    (6, "null receiver"),
    (6, "null text"),
    (6, "multi index out of range"),
    (6, "map slot out of range"),
    (6, "json: nesting too deep"),
    (6, "byte index out of range"),
    (6, "`split` needs a non-empty separator"),
    (6, "trunc: float has no integer value"),
    (6, "latest of an empty multi"),
    (6, "`pop` on an empty multi"),
    (6, "`shift` on an empty multi"),
    (6, "bytes index out of range"),
    (6, "negative count"),
    (6, "send: nil actor address"),
    (6, "send: nil message"),
    (6, "call: nil actor address"),
    (6, "call: nil message"),
    (6, "monitor: nil actor address"),
    (6, "monitor: nil notice message"),
    (6, "time.after: nil actor address"),
    (6, "time.after: nil message"),
    (6, "instant out of range"),
    (6, "text too long for a path"),
    (6, "nul byte in path"),
    (6, "negative offset or length"),
    (6, "port out of range"),
    (6, "nul byte in argument"),
    (6, "unix socket path too long"),
    (7, "missing map key"),
    (8, "assertion failed"),
    (9, "No such file or directory"),
    (9, "Argument list too long"),
    (9, "process deadline exceeded after "),
    (9, "process stdout cap 5 bytes exceeded"),
    (9, "process stderr cap 5 bytes exceeded"),
    (9, "process id is not a live child"),
    (9, "child already has a waiter"),
    (9, "child has no terminal to resize"),
    (9, "process ceiling: "),
    (9, "send_fd needs a unix socket"),
    (10, "unique index violation"),
    (11, "referenced row does not exist"),
    (11, "row is still referenced (restrict)"),
    (12, "shift count out of range 0..63"),
    (13, "actor mailbox full"),
    (13, "actor died during call"),
    (13, "actor calls itself"),
];

/// The sources of all cases that run, without comments.
fn running_code() -> Vec<String> {
    let dirs: Vec<_> = cases().into_iter().filter(|c| matches!(c.0, "run" | "trap")).map(|c| c.2).collect();
    let of_a_case = |path: &Path| dirs.iter().any(|dir| path.starts_with(dir));
    let code =
        |text: &str| text.lines().map(|l| l.split("--").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
    sources("wo").into_iter().filter(|(path, _)| of_a_case(path)).map(|(_, text)| code(&text)).collect()
}

/// `(namespace, member)` of everything that `stdlib/` declares and does not call unavailable.
fn available() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for path in entries(&root().join("stdlib")) {
        let text = fs::read_to_string(&path).expect("signatures");
        let (mut namespace, mut later) = (String::new(), false);
        for line in text.lines().map(str::trim) {
            if let Some(head) = line.strip_prefix("interface ") {
                head.trim_end_matches(" {").clone_into(&mut namespace);
            } else if line.starts_with("--") {
                later |= line.contains("Not available yet");
            } else if let Some(signature) = line.strip_prefix("fn ") {
                let member = signature.split('(').next().unwrap_or_default();
                if !std::mem::take(&mut later) {
                    found.push((namespace.clone(), member.to_owned()));
                }
            }
        }
    }
    found
}

/// Whether `code` has `call` followed by `(`, not as the end of a longer name.
fn calls(code: &str, call: &str) -> bool {
    let head = format!("{call}(");
    code.match_indices(&head).any(|(at, _)| {
        let before = code.get(..at).and_then(|c| c.chars().next_back());
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
    })
}

#[test]
fn every_builtin_is_used() {
    let code = running_code();
    let available = available();
    assert!(available.len() > 90, "the signatures were not found: {available:?}");
    let mut faults = Vec::new();
    for (namespace, member) in available {
        let call = if namespace == "builtins" { member } else { format!("{namespace}.{member}") };
        if !code.iter().any(|c| calls(c, &call)) {
            faults.push(format!("`{call}` is used by no case that runs"));
        }
    }
    report(&faults);
}

#[test]
fn every_trap_text_is_met() {
    let mut met = String::new();
    for (kind, _, dir) in cases() {
        for file in ["fixture.trap", "fixture.out"] {
            if matches!(kind, "run" | "trap") {
                met.push_str(&fs::read_to_string(dir.join(file)).unwrap_or_default());
            }
        }
    }
    let faults: Vec<String> = TRAP_TEXTS
        .iter()
        .filter(|(_, text)| !met.contains(text))
        .map(|(number, text)| format!("trap {number} `{text}` is met by no case"))
        .collect();
    report(&faults);
}

/// Names of the tests that are Rust functions.
fn scripted() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, text) in sources("rs").iter().filter(|(path, _)| short(path).starts_with("tests")) {
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2) {
            if pair[0].trim() == "#[test]" {
                found.extend(pair[1].trim().strip_prefix("fn ").and_then(|l| l.split('(').next()).map(str::to_owned));
            }
        }
    }
    found
}

/// Every item has a case, every case that is named exists.
#[test]
fn every_checklist_item_has_a_case() {
    let corpus: BTreeSet<String> = cases().iter().map(|(kind, _, dir)| format!("{kind}/{}", name(dir))).collect();
    let scripted = scripted();
    let list = fs::read_to_string(root().join("tests/tidy/checklist.txt")).expect("checklist");
    let mut items: BTreeMap<u32, usize> = BTreeMap::new();
    let mut faults = Vec::new();
    for line in list.lines().filter(|l| !l.trim().is_empty() && !l.starts_with('#')) {
        let Some((number, named)) = line.split_once(':').and_then(|(n, c)| Some((n.parse::<u32>().ok()?, c))) else {
            faults.push(format!("`{line}` is not ITEM: CASE…"));
            continue;
        };
        for case in named.split_whitespace() {
            let exists = match case.split_once('/') {
                Some(("test", function)) => scripted.contains(function),
                Some((kind, _)) => KINDS.iter().any(|k| k.0 == kind) && corpus.contains(case),
                None => false,
            };
            if !exists {
                faults.push(format!("{number}: there is no {case}"));
            }
            *items.entry(number).or_default() += 1;
        }
    }
    for number in 1..=ITEMS {
        match (items.contains_key(&number), LATER_ITEMS.contains(&number)) {
            (false, false) => faults.push(format!("{number} has no case")),
            (true, true) => faults.push(format!("{number} has a case: take it off the list of gaps")),
            _ => {}
        }
    }
    faults.extend(items.keys().filter(|n| !(1..=ITEMS).contains(*n)).map(|n| format!("there is no item {n}")));
    report(&faults);
}
