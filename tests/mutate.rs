//! Mutated corpus files: whatever the text, `woc check` ends with status 0, 1 or 2 in time (language specification 16,
//! entry 85), and what passes the checker runs without crashing the process. Deterministic; `FUZZ_CASES` sets how many,
//! `FUZZ_SEED` where to start.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use corpus::{Finished, command, finish, root};

const CASES: u64 = 150;
const LIMIT: Duration = Duration::from_secs(10);
/// A mutated program may loop for ever, so its time is short and no fault.
const RUN_LIMIT: Duration = Duration::from_millis(1500);
/// Status of an internal failure of `woc`.
const INTERNAL: i32 = 70;
/// Pieces that steer mutations towards the grammar's corners.
const PIECES: &[&[u8]] = &[
    b"{",
    b"}",
    b"(",
    b")",
    b"[",
    b"]",
    b"\"",
    b"`",
    b"${",
    b"{{",
    b"}}",
    b"\n",
    b";",
    b",",
    b"..",
    b"--",
    b"->",
    b"?",
    b"nil",
    b"fn ",
    b"class ",
    b"switch ",
    b"case ",
    b"default",
    b"try ",
    b"catch",
    b"from x in y ",
    b"multi ",
    b"map<",
    b"ref ",
    b"actor ",
    b"#if A\n",
    b"#end\n",
    b"\xff",
    b"\0",
    b"9223372036854775808",
    b"1e999",
    b"self",
    b"spawn ",
    b"insert ",
    b"delete ",
    b"use a/b\n",
    b"pub ",
    b"static ",
    b"as ",
    b"take ",
    b"mut ",
    b"return ",
];

/// xorshift64*: small, and the same everywhere.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() >> 16).expect("64-bit") % n.max(1)
    }
}

fn corpus_files() -> Vec<PathBuf> {
    let list =
        |dir: &Path| -> Vec<PathBuf> { fs::read_dir(dir).expect("corpus").flatten().map(|e| e.path()).collect() };
    let mut files: Vec<PathBuf> = list(&root().join("tests/corpus"))
        .iter()
        .flat_map(|kind| list(kind))
        .map(|case| case.join("fixture.wo"))
        .filter(|f| f.is_file())
        .collect();
    files.sort();
    files
}

fn mutate(rng: &mut Rng, source: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..=rng.below(4) {
        let at = rng.below(source.len() + 1);
        let end = (at + rng.below(12)).min(source.len());
        match rng.below(6) {
            0 => drop(source.drain(at..end)),
            1 => drop(source.splice(at..at, PIECES[rng.below(PIECES.len())].iter().copied())),
            2 => drop(source.splice(at..end, PIECES[rng.below(PIECES.len())].iter().copied())),
            3 => {
                let copy = source[at..end].to_vec();
                let to = rng.below(source.len() + 1);
                drop(source.splice(to..to, copy));
            }
            4 => {
                let from = rng.below(other.len() + 1);
                let to = (from + rng.below(80)).min(other.len());
                drop(source.splice(at..at, other[from..to].iter().copied()));
            }
            _ => {
                if let Some(byte) = source.get_mut(at) {
                    *byte ^= 1 << rng.below(8);
                }
            }
        }
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

#[test]
fn mutated_programs_end_with_a_status() {
    let files = corpus_files();
    let first = number("FUZZ_SEED", 1);
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("mutated.wo");
    for seed in first..first + number("FUZZ_CASES", CASES) {
        let mut rng = Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut source = fs::read(&files[rng.below(files.len())]).expect("case");
        let other = fs::read(&files[rng.below(files.len())]).expect("case");
        mutate(&mut rng, &mut source, &other);
        fs::write(&path, &source).expect("written");
        let mut command = command(dir.path()).unwrap_or_else(|e| panic!("{e}"));
        let out = finish(command.arg("check").arg(&path), LIMIT).expect("woc runs");
        let fault = |stage: &str, out: &Finished| {
            format!(
                "seed {seed}: woc {stage}: status {:?}, timed out: {}\n{}\n--- source\n{}",
                out.status,
                out.timed_out,
                out.stderr_text(),
                String::from_utf8_lossy(&source)
            )
        };
        assert!(matches!(out.status, Some(0..=2)), "{}", fault("check", &out));
        if out.status != Some(0) {
            continue;
        }
        let mut command = corpus::command(dir.path()).unwrap_or_else(|e| panic!("{e}"));
        let _ = command.env("WO_EPHEMERAL", "1").env("WO_HEAP_MB", "512");
        let out = finish(command.arg("run").arg(&path), RUN_LIMIT).expect("woc runs");
        let crashed = (out.status.is_none() && !out.timed_out) || out.status == Some(INTERNAL);
        let internal = out.stderr_text().contains("internal error at");
        assert!(!crashed && !internal, "{}", fault("run", &out));
    }
}
